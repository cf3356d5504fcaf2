// What loops that are bound to the threads of a GPU must satisfy, besides that
// their iterations may run at the same time (for_kind.cc).
//
//   for bx in thread_binding("blockIdx.x"):       the blocks of a kernel
//     for tx in thread_binding("threadIdx.x"):    the threads of a block
//       for k_0:
//         for ax in thread_binding("threadIdx.x"):  the same threads
//           A_shared[...] = A[...]                  fetch together
//         C_local[...] += A_shared[...]
//
// A loop inside of another one of the same axis runs on the same threads. As
// written, every iteration of the outer loop runs all iterations of the inner
// one; a GPU runs each of them once. Both give the same where what the inner
// loop computes does not depend on the outer one, and is visible to all threads
// of the block.
#ifndef TILEFARM_COMPILER_SCHEDULE_THREAD_BINDING_H_
#define TILEFARM_COMPILER_SCHEDULE_THREAD_BINDING_H_

#include <string_view>

#include "absl/status/status.h"
#include "compiler/schedule/schedule_state.h"

namespace tilefarm::schedule {

// "blockIdx.x", "threadIdx.y", ...; false for the empty tag of other loops.
bool IsBlockAxis(std::string_view thread_tag);
bool IsClusterAxis(std::string_view thread_tag);
bool IsThreadAxis(std::string_view thread_tag);

// Checks all bound loops of the function; FailedPrecondition if
// - a loop over blocks is inside of a loop over threads, or of another one of
//   the same axis,
// - a loop is inside of one of the same thread axis and is longer, or runs
//   blocks that depend on it,
// - threads share a reduction that is no known commutative one,
// - one thread's "local" buffer is used by others.
absl::Status CheckThreadBindings(const ScheduleState& state,
                                 const ir::PrimFunc& function);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_THREAD_BINDING_H_
