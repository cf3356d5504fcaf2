#include "compiler/lower/store_nest.h"

#include <algorithm>
#include <set>

#include "compiler/arith/conjuncts.h"
#include "compiler/arith/evaluate.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::lower {

using ir::Expr;
using ir::ForNode;
using ir::Stmt;

namespace {

constexpr int64_t kMostElements = 4096;

}  // namespace

StoreNest NestOf(Stmt stmt) {
  StoreNest nest;
  for (;;) {
    if (const auto* loop = ir::As<ForNode>(stmt)) {
      if (!ir::AsInt(loop->extent) || !ir::IsConstInt(loop->min, 0)) break;
      nest.loops.push_back(loop);
      stmt = loop->body;
    } else if (const auto* branch = ir::As<ir::IfNode>(stmt);
               branch != nullptr && branch->else_case == nullptr) {
      for (const Expr& part : arith::Conjuncts(branch->condition)) {
        nest.conditions.push_back(part);
      }
      stmt = branch->then_case;
    } else {
      nest.store = ir::As<ir::StoreNode>(stmt);
      break;
    }
  }
  return nest;
}

std::optional<std::vector<Expr>> WideIndices(const ir::BufferNode& buffer,
                                             const std::vector<Expr>& indices) {
  std::vector<Expr> wide;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (buffer.shape[d] > 1) {
      wide.push_back(indices[d]);
    } else if (!ir::IsConstInt(indices[d], 0)) {
      return std::nullopt;
    }
  }
  return wide;
}

bool CoversBuffer(const StoreNest& nest, const ir::BufferNode& buffer,
                  const std::vector<Expr>& indices) {
  std::vector<const ForNode*> loops;
  int64_t count = 1;
  for (const ForNode* loop : nest.loops) {
    const bool used = std::ranges::any_of(indices, [&](const Expr& index) {
      return ir::UsesVar(index, loop->var.get());
    });
    if (!used) continue;
    loops.push_back(loop);
    count *= *ir::AsInt(loop->extent);
    if (count > kMostElements) return false;
  }
  if (count != buffer.num_elements()) return false;
  std::set<int64_t> elements;
  arith::VarValues values;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    for (const ForNode* loop : loops) {
      const int64_t extent = *ir::AsInt(loop->extent);
      values[loop->var.get()] = rest % extent;
      rest /= extent;
    }
    int64_t element = 0;
    for (size_t d = 0; d < indices.size(); ++d) {
      const auto at = arith::Evaluate(indices[d], values);
      if (!at || *at < 0 || *at >= buffer.shape[d]) return false;
      element = element * buffer.shape[d] + *at;
    }
    elements.insert(element);
  }
  return static_cast<int64_t>(elements.size()) == count;
}

}  // namespace tilefarm::lower
