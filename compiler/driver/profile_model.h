// Times each kernel call of a model: a variant of its library calls a hook
// around every step (codegen::ModelDescription::profiled), so that the library
// that is shipped has no such calls.
#ifndef TILEFARM_COMPILER_DRIVER_PROFILE_MODEL_H_
#define TILEFARM_COMPILER_DRIVER_PROFILE_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/driver/compile_model.h"
#include "compiler/driver/loaded_model.h"

namespace tilefarm::driver {

// When the steps of one run began, and the end of the last: one more than the
// model has steps. In nanoseconds of a clock of the caller.
using RunTimes = std::vector<int64_t>;

// Calls `run`, which runs the profiled model, once untimed, since first calls
// start threads and touch memory, and then `runs` times. `now` gives
// nanoseconds. Errors of `run`.
absl::StatusOr<std::vector<RunTimes>> TimeSteps(
    const LoadedModel& model, const std::function<absl::Status()>& run,
    int runs, const std::function<int64_t()>& now);

// What the steps of one kernel cost, all runs together.
struct KernelTime {
  std::string kernel;    // name of the function, or "(copy)"
  std::string workload;  // hash, empty for copies
  int64_t calls = 0;
  double total_seconds = 0;
  double share = 0;   // of the sum over all kernels
  double gflops = 0;  // 0 if the kernel has no arithmetic
};

// The most expensive kernels first. `steps` are those of the graph that ran;
// `flops` gives the arithmetic operations of one call of a function
// (cost_model::CountFlops).
std::vector<KernelTime> SumByKernel(
    std::span<const ModelArtifact::Step> steps, const ModelKernels& kernels,
    std::span<const RunTimes> runs,
    const std::function<double(const ir::PrimFunc&)>& flops);

// A table for people, one line for each kernel.
std::string PrintProfile(std::span<const KernelTime> kernels, size_t runs);

// All calls in the format of chrome://tracing and Perfetto: a JSON object with
// "traceEvents", one complete event ("ph": "X") for each call, in microseconds
// since the first.
std::string ChromeTrace(std::span<const ModelArtifact::Step> steps,
                        const ModelKernels& kernels,
                        std::span<const RunTimes> runs);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_PROFILE_MODEL_H_
