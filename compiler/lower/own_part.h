// Local buffers with a part for each thread, where a thread accesses its own
// part alone.
#ifndef TILEFARM_COMPILER_LOWER_OWN_PART_H_
#define TILEFARM_COMPILER_LOWER_OWN_PART_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/ir/thread_axis.h"

namespace tilefarm::lower {

struct OwnPart {
  // The allocation of what one thread accesses.
  ir::Stmt alloc;
  // The axes of threads (as numbers of ir::ThreadAxis) each of which has a part
  // of its own.
  std::vector<size_t> axes;
};

// Of a buffer whose allocation is around loops of threads, such as the partial
// sums that loops over threads make and then add up:
//
//   alloc P[64, 8] (local)                   alloc P[1, 8] (local)
//   for t in threadIdx.x: P[t, b] = ...   -> for t: P[0, b] = ...
//   for u in threadIdx.x: S[b] += P[u, b]    for u: S[b] += P[0, b]
//
// nullopt if there are no dimensions in which all loads and stores start from
// the same place of the thread, once each loop of threads is its axis, or if
// what they reach from there overlaps. `vars` and `extents` are those of the
// axes in this kernel (0: no loop).
std::optional<OwnPart> FindOwnPart(
    const ir::AllocNode& alloc,
    const std::array<ir::Var, ir::kThreadAxes>& vars,
    const std::array<int64_t, ir::kThreadAxes>& extents);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_OWN_PART_H_
