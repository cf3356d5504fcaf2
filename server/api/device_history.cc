#include "server/api/device_history.h"

#include <algorithm>
#include <set>
#include <utility>

#include "server/services/convert.h"
#include "server/services/device_clock.h"

namespace tilefarm::api {

void DeviceHistory::Ring::Add(const DeviceSample& sample, size_t most) {
  if (samples.size() < most) {
    samples.push_back(sample);
    return;
  }
  samples[next] = sample;
  next = (next + 1) % most;
}

std::vector<DeviceSample> DeviceHistory::Ring::InOrder() const {
  std::vector<DeviceSample> all(samples.begin() + static_cast<long>(next),
                                samples.end());
  all.insert(all.end(), samples.begin(),
             samples.begin() + static_cast<long>(next));
  return all;
}

void DeviceHistory::Sample(std::span<const farm::DeviceStatus> devices,
                           absl::Time now) {
  MutexLock lock(mutex_);
  // Also where the clock was set back.
  if (now >= last_ && now - last_ < kFineStep) return;
  const double elapsed = absl::ToDoubleSeconds(now - last_);
  const bool coarse = now < last_coarse_ || now - last_coarse_ >= kCoarseStep;
  last_ = now;
  if (coarse) last_coarse_ = now;
  std::set<std::string> seen;
  for (const farm::DeviceStatus& status : devices) {
    seen.insert(status.name);
    const auto [it, is_new] = devices_.try_emplace(status.name);
    Device& device = it->second;
    DeviceSample sample{
        .at = now,
        .state = status.state,
        .unsteady = status.unsteady,
        .trials_per_second = status.trials_per_second,
        .clock_mhz = static_cast<float>(
            services::ClockOf(status.target, status.device_state).mhz),
        .temperature_c = static_cast<float>(
            services::NumberIn(status.device_state, "temperature_c"))};
    if (!is_new && elapsed > 0) {
      sample.busy = std::clamp(
          (status.busy_seconds - device.busy_seconds) / elapsed, 0.0, 1.0);
    }
    device.busy_seconds = status.busy_seconds;
    device.fine.Add(sample, kFineSamples);
    device.busy += sample.busy;
    device.rate += sample.trials_per_second;
    ++device.count;
    if (!coarse) continue;
    sample.busy = std::exchange(device.busy, 0) / device.count;
    sample.trials_per_second = std::exchange(device.rate, 0) / device.count;
    device.count = 0;
    device.coarse.Add(sample, kCoarseSamples);
  }
  std::erase_if(devices_,
                [&](const auto& one) { return !seen.contains(one.first); });
}

std::map<std::string, std::vector<DeviceSample>> DeviceHistory::Read(
    Step step, const std::string& device) const {
  MutexLock lock(mutex_);
  std::map<std::string, std::vector<DeviceSample>> all;
  for (const auto& [name, one] : devices_) {
    if (!device.empty() && name != device) continue;
    all[name] = (step == Step::kFine ? one.fine : one.coarse).InOrder();
  }
  return all;
}

}  // namespace tilefarm::api
