// Nests of ir::kWarpMatrix "wgmma" as code for the matrix unit of a warpgroup
// (ir/warpgroup_product.h):
//
//   for k, i, j:                       a0 = fragment(load_matrix(A..)), a1 = ..
//     C[i, j] = C[i, j] + A * B   ->   product_fence(C)
//                                      warpgroup_product(C, a0, B[0])
//                                      warpgroup_product(C, a1, B[16]) ..
//                                      product_commit(), product_wait(C)
//
// B is in a tile that the copy engine filled (warpgroup_chain.h), and A may be.
#ifndef TILEFARM_COMPILER_LOWER_WARPGROUP_CODE_H_
#define TILEFARM_COMPILER_LOWER_WARPGROUP_CODE_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/lower/warp_matrix_nest.h"

namespace tilefarm::lower {

struct WarpgroupWay {
  bool starts = false;         // the sums are those of the nest alone
  bool first_in_tile = false;  // A is in a tile
  std::string tile;            // the name of B; empty: any
  ir::Var warp;                // of threadIdx.y; null: there is none
};

// The lane's fragment of A of a step.
using LoadFragment = std::function<ir::Expr(const WarpMatrixNest::Rows&,
                                            const WarpMatrixNest::Step&)>;

// InvalidArgument if operands or sums are not as the unit wants them.
absl::StatusOr<ir::Stmt> MakeWarpgroupCode(IndexMath& math,
                                           const WarpMatrixNest& nest,
                                           const WarpgroupWay& way,
                                           const LoadFragment& load);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_WARPGROUP_CODE_H_
