// The schedule of a function without records: the best one that can be found
// without measuring.
#ifndef TILEFARM_COMPILER_DRIVER_DRAFT_SCHEDULE_H_
#define TILEFARM_COMPILER_DRIVER_DRAFT_SCHEDULE_H_

#include "absl/status/statusor.h"
#include "compiler/ir/float_rule.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/schedule.h"
#include "compiler/target/target.h"

namespace tilefarm::driver {

// The heuristic schedule (space::DefaultSchedule) or, if the estimate in cycles
// says that it is faster, the best of a fixed number of points of the design
// space. Deterministic for a program and a target; takes some tenths of a
// second. Never fails on a legal program.
absl::StatusOr<schedule::Schedule> DraftSchedule(
    const ir::PrimFuncPtr& function, const target::Target& target,
    ir::FloatRule floats);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_DRAFT_SCHEDULE_H_
