// What primitives that rewrite a whole reduction ask of the loops above it.
#ifndef TILEFARM_COMPILER_SCHEDULE_OWN_LOOPS_H_
#define TILEFARM_COMPILER_SCHEDULE_OWN_LOOPS_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/schedule_state.h"

namespace tilefarm::schedule {

// The loops above a reduction, outermost first: plain, serial, one for each of
// its variables, and nothing else below them. FailedPrecondition otherwise.
absl::StatusOr<std::vector<ir::ForPtr>> CheckOwnLoops(
    const ScheduleState& state, std::string_view primitive,
    const ir::BlockPtr& block);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_OWN_LOOPS_H_
