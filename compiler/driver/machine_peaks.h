// What this machine reaches: rates of arithmetic and of each level of memory,
// measured by small programs that our own compiler makes for the target, and
// kept in a file.
#ifndef TILEFARM_COMPILER_DRIVER_MACHINE_PEAKS_H_
#define TILEFARM_COMPILER_DRIVER_MACHINE_PEAKS_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "compiler/target/target.h"
#include "cost_model/estimate.h"

namespace tilefarm::driver {

// All positive. Of one core unless it says otherwise.
struct MachinePeaks {
  double clock_hz = 0;           // by a chain of dependent integer additions
  double float32_flops = 0;      // a second, multiply-adds count as two
  double all_float32_flops = 0;  // of all cores of the target
  double latency_seconds = 0;    // from a multiply-add to the next on its sum
  double bytes_from_l1 = 0;      // a second
  double bytes_from_l2 = 0;
  double bytes_from_l3 = 0;
  double bytes_from_memory = 0;
  double all_bytes_from_memory = 0;  // of all cores
};

// Takes two or three seconds. The machine should be idle; the best of several
// runs counts. InvalidArgument: the target is a GPU, or its code does not run
// here.
absl::StatusOr<MachinePeaks> MeasurePeaks(const target::Target& target,
                                          Clock& clock);

// Those of the file of this target, device and compiler in `folder`, which is
// made if it does not exist; where there is no such file, or it is damaged,
// they are measured and stored. A file that cannot be written is no error.
absl::StatusOr<MachinePeaks> CachedPeaks(const std::string& folder,
                                         const target::Target& target,
                                         bool measure_again, Clock& clock);
// $XDG_CACHE_HOME/tilefarm, or ~/.cache/tilefarm; empty: there is no home.
std::string PeaksFolder();

// The same in cycles, for the model.
cost_model::CoreModel CoreOf(const MachinePeaks& peaks,
                             const target::Target& target);

// JSON, and back. InvalidArgument: not such a text, or a number is not
// positive.
std::string PeaksToJson(const MachinePeaks& peaks);
absl::StatusOr<MachinePeaks> PeaksFromJson(const std::string& text);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_MACHINE_PEAKS_H_
