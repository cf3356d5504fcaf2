// Products with a softmax, such as attention, block by block: what
// online_product rewrites.
//
//   for i, j: S[i, j] = ..                                    scores, any block
//   for i, j: M[i] = max(M[i], x[i, j])                  largest; x made from S
//   for i, j: D[i] += exp(x[i, j] - M[i]) total for i, j: P[i, j] = exp(x[i, j]
//   - M[i]) / D[i]                         shares for i, d, j: O[i, d] += P[i,
//   j] * V[j, d]                             product
#ifndef TILEFARM_COMPILER_SCHEDULE_SOFTMAX_PRODUCT_H_
#define TILEFARM_COMPILER_SCHEDULE_SOFTMAX_PRODUCT_H_

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/schedule_state.h"
#include "compiler/schedule/softmax_match.h"

namespace tilefarm::schedule {

// The blocks.
struct SoftmaxProduct {
  Softmax softmax;
  // Makes what the exponents read, with variables of its own; null: they read
  // only what is there before.
  ir::BlockPtr scores;
  std::vector<ir::ForPtr> scores_loops;
  ir::BlockPtr shares;  // of the sum: P
  std::vector<ir::ForPtr> shares_loops;
  RowReduction product;
  ir::Expr share;  // the load of P in the product's terms
};

// What the product's variables are. Those of other blocks have the role of the
// product's variable to which they correspond.
struct ProductRoles {
  const ir::IterVar* rows = nullptr;
  const ir::IterVar* terms = nullptr;
  std::vector<const ir::IterVar*> common, columns;
  // A variable of another block -> that of the product. Those of one iteration
  // may be missing.
  std::unordered_map<const ir::VarNode*, const ir::IterVar*> of;

  const ir::IterVar* Of(const ir::VarNode* var) const {
    const auto found = of.find(var);
    return found == of.end() ? nullptr : found->second;
  }
};

inline bool IsUnit(const ir::IterVar& iter) {
  return ir::IsConstInt(iter.dom.extent, 1);
}
inline int64_t DomainSize(const ir::IterVar& iter) {
  return *ir::AsInt(iter.dom.extent);
}

// What the casts around an expression convert.
const ir::Expr& WithoutCasts(const ir::Expr& e);

// FailedPrecondition: `product` is no such product, not all loops are bound to
// one variable of their block, or another block reads or overwrites what the
// chain makes or reads.
struct MatchedProduct {
  SoftmaxProduct chain;
  ProductRoles roles;
};
absl::StatusOr<MatchedProduct> MatchSoftmaxProduct(const ScheduleState& state,
                                                   const ir::BlockPtr& product);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_SOFTMAX_PRODUCT_H_
