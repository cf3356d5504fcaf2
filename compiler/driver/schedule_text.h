// What a stored schedule makes of its program, as texts for people.
#ifndef TILEFARM_COMPILER_DRIVER_SCHEDULE_TEXT_H_
#define TILEFARM_COMPILER_DRIVER_SCHEDULE_TEXT_H_

#include <string>

#include "absl/status/statusor.h"

namespace tilefarm::driver {

// A program and the trace of a schedule of it, as records have them.
struct StoredSchedule {
  std::string program, trace;
  std::string target;  // key
};

// The scheduled program. Errors of parsing and of the replay.
absl::StatusOr<std::string> ScheduledProgram(const StoredSchedule& stored);
// Its machine code as assembly; PTX of a GPU's kernels. Also errors of lowering
// and code generation.
absl::StatusOr<std::string> Assembly(const StoredSchedule& stored);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_SCHEDULE_TEXT_H_
