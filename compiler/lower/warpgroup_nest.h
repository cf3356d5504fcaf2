// Recognises a loop that matrix units of warpgroups and the copy engine can
// run. In plain form, with threads t of one axis:
//
//   for k0 in range(..):                      annotated: ir::kWarpgroupStages
//     alloc A_shared, B_shared
//     for r, c: A_shared[r, c] = A[.. + r, k0 * 64 + c]
//     for r, c: B_shared[r, c] = B[.. + r, k0 * 64 + c]
//     for k, registers:
//       sums[..] = sums[..] + cast(A_shared[row, k]) * cast(B_shared[column,
//       k])
//
// Tiles may have k first as well, and be other copies that the engine can make
// (warpgroup_fetch.h). Conditions that keep accesses inside of the tensors are
// allowed: the engine fetches zeros from outside.
#ifndef TILEFARM_COMPILER_LOWER_WARPGROUP_NEST_H_
#define TILEFARM_COMPILER_LOWER_WARPGROUP_NEST_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/warpgroup_product.h"
#include "compiler/lower/warpgroup_fetch.h"

namespace tilefarm::lower {

// How ir::WarpgroupProduct distributes the sums over threads: those that are
// beside each other in a thread's registers and in a row; columns, and rows,
// after which the distribution repeats.
inline constexpr int64_t kSumsPair = 2, kSumsPeriod = 8;

struct WarpgroupNest {
  const ir::WarpgroupUnit* unit = nullptr;
  WarpgroupOperand a, b;
  ir::Buffer sums;
  int64_t warpgroups = 0;
  int64_t products = 0;  // of 64 rows, of a warpgroup
  int64_t columns = 0;
  int64_t depth = 0;
  // The first row of a product in the tile of a: warpgroup_step for each
  // warpgroup, product_step for each product.
  int64_t warpgroup_step = 0, product_step = 0;
  // Where a product's registers are: product * sums_step, and the others as in
  // ir::WarpgroupProduct.
  int64_t sums_step = 0, row_step = 0, column_step = 0, pair_step = 0;
  // Conditions on the loop as a whole.
  std::vector<ir::Expr> conditions;
};

// `around`: the loops around it, those of blocks included. InvalidArgument with
// the loop's name and the reason if it is something else.
absl::StatusOr<WarpgroupNest> MatchWarpgroupNest(
    const ir::ForNode& loop, const std::vector<const ir::ForNode*>& around,
    const ir::Var& thread, int64_t threads);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_WARPGROUP_NEST_H_
