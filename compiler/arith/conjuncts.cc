#include "compiler/arith/conjuncts.h"

namespace tilefarm::arith {
namespace {

void Collect(const ir::Expr& condition, std::vector<ir::Expr>& out) {
  const auto* node = ir::As<ir::BinaryNode>(condition);
  if (node != nullptr && node->op == ir::BinaryOp::kAnd) {
    Collect(node->a, out);
    Collect(node->b, out);
  } else if (!ir::IsConstInt(condition, 1)) {
    out.push_back(condition);
  }
}

}  // namespace

std::vector<ir::Expr> Conjuncts(const ir::Expr& condition) {
  std::vector<ir::Expr> out;
  Collect(condition, out);
  return out;
}

}  // namespace tilefarm::arith
