// Measures a tuned model on this machine.
#ifndef TILEFARM_SERVER_CLI_MEASURED_MODEL_H_
#define TILEFARM_SERVER_CLI_MEASURED_MODEL_H_

#include "absl/status/statusor.h"
#include "server/cli/commands.h"
#include "server/cli/format.h"

namespace tilefarm::cli {

// Whether MeasureModel can measure what the job tunes: a model, for this
// machine alone.
bool CanMeasureModel(const JobOptions& options);

// Compiles the model with the server's best records and measures it
// (driver::TimeModel). Errors of the lookup, of the compiler and of the model's
// run.
absl::StatusOr<ModelLatency> MeasureModel(const Common& common,
                                          const JobOptions& options);

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_MEASURED_MODEL_H_
