#include "compiler/arith/evaluate.h"

#include "compiler/arith/canonical.h"

namespace tilefarm::arith {

std::optional<int64_t> Evaluate(const ir::Expr& e, const VarValues& values) {
  if (const auto constant = ir::AsInt(e)) return constant;
  if (const auto* var = ir::As<ir::VarNode>(e)) {
    const auto found = values.find(var);
    if (found == values.end()) return std::nullopt;
    return found->second;
  }
  const auto* binary = ir::As<ir::BinaryNode>(e);
  if (binary == nullptr) return std::nullopt;
  const auto a = Evaluate(binary->a, values), b = Evaluate(binary->b, values);
  if (!a || !b) return std::nullopt;
  switch (binary->op) {
    case ir::BinaryOp::kAdd:
      return *a + *b;
    case ir::BinaryOp::kSub:
      return *a - *b;
    case ir::BinaryOp::kMul:
      return *a * *b;
    case ir::BinaryOp::kFloorDiv:
      if (*b <= 0) return std::nullopt;
      return FloorDivInt(*a, *b);
    case ir::BinaryOp::kFloorMod:
      if (*b <= 0) return std::nullopt;
      return FloorModInt(*a, *b);
    default:
      return std::nullopt;
  }
}

}  // namespace tilefarm::arith
