// The result of warpgroup products through shared memory and the copy engine,
// which writes whole rows of 128 bytes while the threads go on:
//
//   for registers:                        for each 64 x 128 bytes of a product:
//     C[row, column] = f(sums[..])  ->      wait until the tile is free
//                                           tile[..] = f(sums[..])
//                                           one thread: copy tile to C
#ifndef TILEFARM_COMPILER_LOWER_WARPGROUP_STORES_H_
#define TILEFARM_COMPILER_LOWER_WARPGROUP_STORES_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/lower/warpgroup_nest.h"

namespace tilefarm::lower {

struct WarpgroupStores {
  ir::Buffer tiles;  // to be allocated, shared
  ir::Stmt body;     // instead of the loops
  ir::Stmt end;      // when a thread has done all of its stores
};

// `stmt` is the nest that stores the sums; `warpgroup` has the number of the
// thread's warpgroup. InvalidArgument with the reason if the copy engine cannot
// write such a result.
absl::StatusOr<WarpgroupStores> StoreByBoxes(const ir::Stmt& stmt,
                                             const WarpgroupNest& nest,
                                             const ir::Var& thread,
                                             const ir::Var& warpgroup);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_WARPGROUP_STORES_H_
