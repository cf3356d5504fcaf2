// Measures compiled models on this machine.
#ifndef TILEFARM_COMPILER_DRIVER_TIME_MODEL_H_
#define TILEFARM_COMPILER_DRIVER_TIME_MODEL_H_

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "compiler/driver/choose_schedule.h"
#include "compiler/driver/loaded_model.h"
#include "compiler/graph/graph.h"
#include "compiler/target/target.h"

namespace tilefarm::driver {

// Median seconds of a run. What the stages gain: fusion from `unfused` to
// `untuned`, tuning from there to `tuned`.
struct ModelTimes {
  double unfused_seconds = 0;  // no fused calls, default schedules
  double untuned_seconds = 0;  // default schedules
  double tuned_seconds = 0;    // the schedules that were chosen
};

// The schedules of a model's functions.
using ChooseSchedules =
    std::function<absl::StatusOr<ScheduledModule>(const ir::IRModule& module)>;

// Compiles the model in the three ways and measures them; nothing else should
// run meanwhile. The target must be this machine's. `dims` as in ParseDims: for
// several sizes, the times are sums over them. `floats` is for the default
// schedules. Inputs are random floats in [-1, 1) with 32 or 64 bits, and zeros
// of other types. InvalidArgument: the model cannot be read. Errors of `tuned`,
// of CompileModel, and of the model's run.
absl::StatusOr<ModelTimes> TimeModel(const std::string& path,
                                     const std::vector<std::string>& dims,
                                     const target::Target& target,
                                     ir::FloatRule floats,
                                     const ChooseSchedules& tuned);

// The median time of each model. Their runs take turns, so that a slow moment
// of the machine affects all. `graph` has the types of the inputs and outputs,
// which are the same for all models.
absl::StatusOr<std::vector<double>> TimeRuns(
    std::span<const LoadedModel> models, const graph::Graph& graph,
    Clock& clock);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_TIME_MODEL_H_
