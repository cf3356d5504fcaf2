#include "server/jobs/measure_options.h"

#include <algorithm>

#include "cost_model/features.h"

namespace tilefarm::jobs {
namespace {

// Upper bound on the copies of the parameters in a verified run: inputs,
// outputs, the reference, and guarded and poisoned copies of them.
constexpr int64_t kBufferCopies = 6;
// A candidate with this rate or a better one finishes in time. A scalar loop
// nest needs a few nanoseconds for an operation.
constexpr double kSlowestFlops = 0.5e9;
// Runs of one candidate: the first, the timed, and the checked ones.
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
