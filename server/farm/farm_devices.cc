// What the farm says about its devices.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/farm/farm.h"
#include "server/farm/farm_state.h"

namespace tilefarm::farm {

int Farm::SlotsFor(const target::Target& target) const {
  MutexLock lock(mutex_);
  int slots = 0;
  for (const auto& [name, worker] : workers_) {
    if (worker->takes_leases() && DeviceFits(worker->target, target)) {
      slots += worker->capacity;
    }
  }
  return slots;
}

std::optional<target::CacheSizes> Farm::CachesFor(
    const target::Target& target) const {
  MutexLock lock(mutex_);
  for (const auto& [name, worker] : workers_) {
    if (worker->takes_leases() && DeviceFits(worker->target, target)) {
      return worker->properties.caches();
    }
  }
  return std::nullopt;
}

std::optional<std::vector<std::string>> Farm::LibrariesFor(
    const target::Target& target) const {
  MutexLock lock(mutex_);
  for (const auto& [name, worker] : workers_) {
    if (!worker->takes_leases() || !DeviceFits(worker->target, target)) {
      continue;
    }
    std::vector<std::string> libraries;
    for (const auto& [library, version] : worker->properties.libraries) {
      libraries.push_back(library);
    }
    return libraries;
  }
  return std::nullopt;
}

std::string Farm::WhyNoDevice(const target::Target& target) const {
  MutexLock lock(mutex_);
  std::vector<std::string> reasons;
  for (const auto& [name, worker] : workers_) {
    std::string reason;
    if (worker->session == 0) {
      reason = "is offline";
    } else if (!worker->incompatible.empty()) {
      reason = worker->incompatible;
    } else if (worker->draining) {
      reason = "is draining";
    } else if (!DeviceFits(worker->target, target)) {
      reason = absl::StrCat("is ", worker->target.Key());
    } else if (worker->capacity == 0) {
      reason = "takes no leases now";
    } else {
      continue;
    }
    reasons.push_back(absl::StrCat(name, " ", reason));
  }
  const std::string what =
      absl::StrCat("waits for a device that matches ", target.Key());
  if (reasons.empty()) return absl::StrCat(what, ": none is connected");
  return absl::StrCat(what, ": ", absl::StrJoin(reasons, "; "));
}

std::vector<DeviceStatus> Farm::Devices() const {
  MutexLock lock(mutex_);
  const absl::Duration now = clock_.Monotonic();
  std::vector<DeviceStatus> devices;
  for (const auto& [name, worker] : workers_) {
    DeviceStatus status;
    status.name = name;
    status.model = worker->properties.brand.empty() ? worker->properties.cpu
                                                    : worker->properties.brand;
    status.target = worker->target.Key();
    status.last_seen = worker->last_seen;
    status.libraries = worker->properties.libraries;
    status.leases = static_cast<int>(worker->leases.size());
    const auto recent =
        std::count_if(worker->reported_at.begin(), worker->reported_at.end(),
                      [&](absl::Duration at) {
                        return now - at <= options_.timeouts.rate_window;
                      });
    if (recent > 1) {
      const absl::Duration span =
          std::max(now - worker->reported_at.front(), absl::Seconds(1));
      status.trials_per_second =
          static_cast<double>(recent) /
          absl::ToDoubleSeconds(std::min(span, options_.timeouts.rate_window));
    }
    if (worker->session == 0) {
      status.state = DeviceState::kOffline;
      status.reason = worker->offline_reason;
    } else if (!worker->incompatible.empty()) {
      status.state = DeviceState::kIncompatible;
      status.reason = worker->incompatible;
    } else if (worker->draining) {
      status.state = DeviceState::kDraining;
      status.reason = "finishes what it holds";
    } else {
      status.state =
          worker->leases.empty() ? DeviceState::kIdle : DeviceState::kBusy;
    }
    devices.push_back(std::move(status));
  }
  return devices;
}

}  // namespace tilefarm::farm
