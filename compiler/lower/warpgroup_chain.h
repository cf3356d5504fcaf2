// Kernels whose loop fetches tiles by the copy engine and computes with them
// what it likes: chains of products, such as attention. With threads of two
// axes, y (a multiple of four) around the lanes x of a warp:
//
//   Q_shared = Q[..]                           init barriers; barrier
//   for k in range(n):   annotated             if y == warps:  one more warp
//     K_shared = K[.. k ..]            ->        fetch Q, then for each k K, V
//     V_shared = V[.. k ..]                    else:           (stage_ring.h)
//     sums += Q_shared * K_shared                wait for Q
//     ..                                         for k in range(n):
//   use(sums)                                      wait for K, V
//                                                  sums += Q_shared * K_shared
//                                                  ..
//                                                  release K, V
//                                                use(sums)
//
// Products that use the tiles are annotated kWarpMatrix "wgmma"; they become
// the unit's in LowerWarpMatrices. Nothing else reads tiles, and in the loop
// nothing else is shared. What is shared before the loop is such a tile if the
// engine can fetch it, else the threads fetch it before the barrier.
#ifndef TILEFARM_COMPILER_LOWER_WARPGROUP_CHAIN_H_
#define TILEFARM_COMPILER_LOWER_WARPGROUP_CHAIN_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/gpu.h"

namespace tilefarm::lower {

// How many products the statement has that are annotated so.
int CountChainProducts(const ir::Stmt& stmt);

// The kernel with the axes' loops around `body`, in which `path` leads to the
// loop, outermost first. InvalidArgument says what does not fit.
absl::StatusOr<ir::Stmt> LowerWarpgroupChain(
    const ir::ForNode& loop, const std::vector<ir::Stmt>& path,
    const std::vector<ir::ForPtr>& axes, const ir::Stmt& body,
    const target::GpuLimits& limits);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_WARPGROUP_CHAIN_H_
