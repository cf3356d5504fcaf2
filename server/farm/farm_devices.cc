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
namespace {

// What it gets no work for, where there are several reasons, is the one that
// people can do something about.
std::string Both(const std::string& first, const std::string& second) {
  return first.empty() || second.empty() ? absl::StrCat(first, second)
                                         : absl::StrCat(first, "; ", second);
}

}  // namespace

void Farm::FillState(const Worker& worker, absl::Duration now,
                     DeviceStatus& status) const {
  const std::string health = worker.health.reason(now);
  const bool idle = worker.leases.empty();
  std::string& reason = status.reason;
  if (!worker.known.reserved_for.empty()) {
    reason = absl::StrCat(
        "reserved for ", worker.known.reserved_for, " until ",
        absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", worker.known.reserved_until,
                         absl::UTCTimeZone()));
  }
  const std::string order =
      worker.known.order == Order::kNone
          ? ""
          : absl::StrCat(std::string(OrderName(worker.known.order)), " ",
                         worker.known.order_reason);
  if (worker.session == 0) {
    status.state = DeviceState::kOffline;
    reason = Both(Both(worker.offline_reason, order), reason);
  } else if (!worker.incompatible.empty()) {
    status.state = DeviceState::kIncompatible;
    reason = worker.incompatible;
  } else if (worker.known.order == Order::kQuarantined) {
    status.state = DeviceState::kQuarantined;
    reason = Both(order, reason);
  } else if (worker.known.order == Order::kDrained) {
    status.state = idle ? DeviceState::kDrained : DeviceState::kDraining;
    reason = Both(order, reason);
  } else if (worker.draining) {
    status.state = DeviceState::kDraining;
    reason = "finishes what it holds";
  } else if (worker.health.state() == DeviceHealth::State::kQuarantined) {
    status.state = DeviceState::kQuarantined;
    reason = Both(health, reason);
  } else if (!worker.health.promising(now)) {
    status.state = DeviceState::kPaused;
    reason = Both(health, reason);
  } else if (!worker.health.works(now)) {
    status.state = DeviceState::kChecking;
    reason = Both(health, reason);
  } else {
    status.state = idle ? DeviceState::kIdle : DeviceState::kBusy;
    reason =
        Both(health.empty() ? "" : absl::StrCat("unsteady: ", health), reason);
  }
}

int Farm::SlotsFor(const target::Target& target,
                   const QueueTerms& terms) const {
  MutexLock lock(mutex_);
  const absl::Duration now = clock_.Monotonic();
  int64_t slots = index_.SlotsFor(terms.user, terms.requirements, target);
  // Whose rest is over since it was looked at.
  for (const std::string& name : resting_) {
    const Worker& worker = *workers_.at(name);
    if (worker.is_promising(now) && Admits(worker, terms) &&
        index_.Fits(name, target, target.Key())) {
      slots += worker.capacity;
    }
  }
  return static_cast<int>(slots);
}

std::optional<target::CacheSizes> Farm::CachesFor(
    const target::Target& target, const QueueTerms& terms) const {
  MutexLock lock(mutex_);
  const absl::Duration now = clock_.Monotonic();
  const std::string key = target.Key();
  for (const auto& [name, worker] : workers_) {
    if (worker->is_promising(now) && index_.Fits(name, target, key) &&
        Admits(*worker, terms)) {
      return worker->properties.caches();
    }
  }
  return std::nullopt;
}

std::optional<std::vector<std::string>> Farm::LibrariesFor(
    const target::Target& target, const QueueTerms& terms) const {
  MutexLock lock(mutex_);
  const absl::Duration now = clock_.Monotonic();
  const std::string key = target.Key();
  for (const auto& [name, worker] : workers_) {
    if (!worker->is_promising(now) || !index_.Fits(name, target, key) ||
        !Admits(*worker, terms)) {
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

std::string Farm::WhyNoDevice(const target::Target& target,
                              const QueueTerms& terms) const {
  MutexLock lock(mutex_);
  const absl::Duration now = clock_.Monotonic();
  const std::string key = target.Key();
  std::vector<std::string> reasons;
  for (const auto& [name, worker] : workers_) {
    const Requirement* unmet =
        FirstUnmet(terms.requirements, name, worker->properties);
    std::string reason;
    if (worker->session == 0) {
      reason = "is offline";
    } else if (!worker->incompatible.empty()) {
      reason = worker->incompatible;
    } else if (worker->known.order != Order::kNone) {
      reason = absl::StrCat("is ", std::string(OrderName(worker->known.order)),
                            " ", worker->known.order_reason);
    } else if (worker->draining) {
      reason = "is draining";
    } else if (!index_.Fits(name, target, key)) {
      reason = absl::StrCat("is ", worker->target.Key());
    } else if (unmet != nullptr) {
      reason = absl::StrCat("has not ", unmet->text);
    } else if (!Admits(*worker, terms)) {
      reason = absl::StrCat("is reserved for ", worker->known.reserved_for);
    } else if (!worker->health.promising(now)) {
      reason = absl::StrCat("rests: ", worker->health.reason(now));
    } else if (worker->capacity == 0) {
      reason = "takes no leases now";
    } else {
      continue;
    }
    reasons.push_back(absl::StrCat(name, " ", reason));
  }
  std::string what =
      absl::StrCat("waits for a device that matches ", target.Key());
  for (const Requirement& one : terms.requirements) {
    absl::StrAppend(&what, ", ", one.text);
  }
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
    const DeviceProperties& properties = worker->properties;
    if (properties.target.empty()) {  // not seen by this process
      status.model = worker->known.model;
      status.target = worker->known.target;
    } else {
      status.model = PeoplesModel(properties);
      status.target = worker->target.Key();
    }
    status.labels = properties.labels;
    status.isolation = properties.isolation;
    status.reserved_for = worker->known.reserved_for;
    status.reserved_until = worker->known.reserved_until;
    status.device_state = worker->device_state;
    status.unsteady = worker->health.state() == DeviceHealth::State::kUnsteady;
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
    FillState(*worker, now, status);
    devices.push_back(std::move(status));
  }
  return devices;
}

}  // namespace tilefarm::farm
