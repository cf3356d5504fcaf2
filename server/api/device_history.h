// What devices did in the last hours, sampled regularly. In memory: the audit
// log has the changes of state, records have what was measured.
//
//   fine    a sample each 10 s, for an hour
//   coarse  a sample each 5 min, for a day
#ifndef TILEFARM_SERVER_API_DEVICE_HISTORY_H_
#define TILEFARM_SERVER_API_DEVICE_HISTORY_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "server/farm/device.h"

namespace tilefarm::api {

struct DeviceSample {
  absl::Time at;
  farm::DeviceState state = farm::DeviceState::kOffline;
  bool unsteady = false;
  double busy = 0;  // share of the time since the sample before, 0 to 1
  double trials_per_second = 0;
  float clock_mhz = 0, temperature_c = 0;  // 0: not known
};

// Thread-safe.
class DeviceHistory {
 public:
  static constexpr absl::Duration kFineStep = absl::Seconds(10);
  static constexpr absl::Duration kCoarseStep = absl::Minutes(5);
  static constexpr size_t kFineSamples = 360, kCoarseSamples = 288;

  // Takes a sample of every device, if kFineStep has passed since the last one.
  // Devices that are not among these are forgotten.
  void Sample(std::span<const farm::DeviceStatus> devices, absl::Time now);

  enum class Step { kFine, kCoarse };
  // By device name, oldest first. `device`: of this one alone; empty: of all.
  std::map<std::string, std::vector<DeviceSample>> Read(
      Step step, const std::string& device) const;

 private:
  // The latest samples, in a circle.
  struct Ring {
    std::vector<DeviceSample> samples;
    size_t next = 0;
    void Add(const DeviceSample& sample, size_t most);
    std::vector<DeviceSample> InOrder() const;
  };
  struct Device {
    Ring fine, coarse;
    // Since the last coarse sample: its means.
    double busy = 0, rate = 0;
    int count = 0;
    double busy_seconds = 0;  // DeviceStatus::busy_seconds, as last seen
  };

  mutable Mutex mutex_;
  absl::Time last_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time last_coarse_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::map<std::string, Device> devices_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tilefarm::api

#endif  // TILEFARM_SERVER_API_DEVICE_HISTORY_H_
