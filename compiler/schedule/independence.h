// Whether iterations of loops access the same elements: one iteration writes an
// element that another one reads or writes.
#ifndef TILEFARM_COMPILER_SCHEDULE_INDEPENDENCE_H_
#define TILEFARM_COMPILER_SCHEDULE_INDEPENDENCE_H_

#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/schedule_state.h"

namespace tilefarm::schedule {

// Whether each iteration of the loop has its own copy of the buffer (schedule
// semantics, and what lowering allocates): every access lies below the loop,
// an iteration writes every element before it reads it, and the loop's
// iterations are not threads that share the buffer.
bool IsPrivate(const ScheduleState& state, const BlockScope& scope,
               const ir::ForPtr& loop, const ir::BufferNode* buffer);

// Whether no two iterations of `loops`, which surround both blocks, access the
// same element by these two accesses to a buffer, each of which is one of its
// block's regions. Loops that surround all of `loops` keep their values.
bool AreApart(const ScheduleState& state, std::vector<ir::ForPtr> loops,
              const ir::BlockNode& a, const ir::BufferRegion& of_a,
              const ir::BlockNode& b, const ir::BufferRegion& of_b);

// FailedPrecondition where two different blocks below `inner` access the same
// element in different iterations of `loops` (`inner` and loops around it), and
// one of them writes it. Conflicts of a block with itself are not checked.
absl::Status CheckIterationsIndependent(const ScheduleState& state,
                                        const BlockScope& scope,
                                        const ir::ForPtr& inner,
                                        const std::vector<ir::ForPtr>& loops);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_INDEPENDENCE_H_
