// blockize on loops instead of trace variables, for tensorize.
#ifndef TILEFARM_COMPILER_SCHEDULE_BLOCKIZE_H_
#define TILEFARM_COMPILER_SCHEDULE_BLOCKIZE_H_

#include "absl/status/statusor.h"
#include "compiler/schedule/schedule_state.h"

namespace tilefarm::schedule {

// Returns the new outer block; errors as for blockize.
absl::StatusOr<ir::BlockPtr> BlockizeLoop(ScheduleState& state,
                                          const ir::ForPtr& loop);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_BLOCKIZE_H_
