// What split and fuse share.
#ifndef TILEFARM_COMPILER_SCHEDULE_LOOP_REWRITE_H_
#define TILEFARM_COMPILER_SCHEDULE_LOOP_REWRITE_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/schedule/schedule_state.h"

namespace tilefarm::schedule {

// The constant extent of a loop from 0 without annotations or thread axis;
// else FailedPrecondition. The loops made of it are serial, whatever it was.
absl::StatusOr<int64_t> CheckPlainLoop(const ScheduleState& state,
                                       std::string_view primitive,
                                       const ir::ForPtr& loop);

// The bindings of the blocks next below `stmt`, simplified as iteration maps
// of the loops in `outer` and below. Loops of extent 1 stay in them where
// `preserve_unit_iters`.
ir::Stmt SimplifyBindings(const ir::Stmt& stmt, const arith::VarRanges& outer,
                          bool preserve_unit_iters);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_LOOP_REWRITE_H_
