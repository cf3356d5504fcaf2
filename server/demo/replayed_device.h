// A device of a recorded run: takes leases as a worker does, waits as long as
// building and running took, and reports what was measured then.
#ifndef TILEFARM_SERVER_DEMO_REPLAYED_DEVICE_H_
#define TILEFARM_SERVER_DEMO_REPLAYED_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/demo/recording.h"
#include "server/farm/farm.h"

namespace tilefarm::demo {

// Owns a thread.
class ReplayedDevice {
 public:
  // Connects to the farm, which outlives it, and works until it is destroyed.
  // `speed`: how many times as fast as recorded.
  static absl::StatusOr<std::unique_ptr<ReplayedDevice>> Start(
      farm::Farm& farm, std::shared_ptr<const Recording> recording,
      const std::string& name, double speed);
  virtual ~ReplayedDevice() = default;
};

// What was measured of a piece of work; NotFound: it is not in the recording.
// `finalists`: how often this candidate was measured again so far.
absl::StatusOr<farm::Measurement> RecordedMeasurement(
    const Recording& recording, const farm::WorkItem& item, int finalists);

}  // namespace tilefarm::demo

#endif  // TILEFARM_SERVER_DEMO_REPLAYED_DEVICE_H_
