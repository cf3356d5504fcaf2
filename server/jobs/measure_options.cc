#include "server/jobs/measure_options.h"

#include <algorithm>

#include "cost_model/features.h"

namespace tilefarm::jobs {
namespace {

// Copies of the parameters that a verified run needs at most: inputs, outputs,
// reference, their guarded and poisoned twins.
constexpr int64_t kBufferCopies = 6;
// A candidate at this rate or better finishes in time; a scalar loop nest does
// one operation in a few nanoseconds.
constexpr double kSlowestFlops = 0.5e9;
// Runs of one candidate: first, timed, checked.
constexpr double kRuns = 4;

}  // namespace

farm::MeasureOptions MeasureOptionsFor(const ir::PrimFunc& function) {
  farm::MeasureOptions options;
  int64_t bytes = 0;
  for (const ir::Buffer& buffer : function.params) {
    bytes += buffer->memory_elements() * buffer->dtype.bytes();
  }
  options.run_memory_bytes += kBufferCopies * bytes;
  const double slow_seconds =
      cost_model::CountFlops(function) / kSlowestFlops * kRuns;
  options.run_timeout += absl::Seconds(std::clamp(slow_seconds, 0.0, 600.0));
  return options;
}

}  // namespace tilefarm::jobs
