// Shared by split and fuse.
#ifndef TILEFARM_COMPILER_SCHEDULE_LOOP_REWRITE_H_
#define TILEFARM_COMPILER_SCHEDULE_LOOP_REWRITE_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/schedule/schedule_state.h"

namespace tilefarm::schedule {

// The constant extent of a loop that starts at 0 and has no annotations or
// thread axis; else FailedPrecondition. The loops made of it are serial.
absl::StatusOr<int64_t> CheckPlainLoop(const ScheduleState& state,
                                       const ir::ForPtr& loop);

// Simplifies the bindings of the nearest blocks below `stmt` as iteration maps
// of the loops in `outer` and below. With `preserve_unit_iters`, loops of
// extent 1 stay in the bindings.
ir::Stmt SimplifyBindings(const ir::Stmt& stmt, const arith::VarRanges& outer,
                          bool preserve_unit_iters);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_LOOP_REWRITE_H_
