// tunec for models. Private to tunec.
#ifndef TILEFARM_COMPILER_DRIVER_TUNEC_MODEL_H_
#define TILEFARM_COMPILER_DRIVER_TUNEC_MODEL_H_

#include "absl/status/statusor.h"
#include "compiler/driver/tunec_flags.h"

namespace tilefarm::driver {

// Imports, schedules and builds the model; with --run also runs it once. The
// exit code, or an error.
absl::StatusOr<int> RunModel(const TunecFlags& flags);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_TUNEC_MODEL_H_
