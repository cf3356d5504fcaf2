// What the farm says about its devices, and what operators decide about them.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "server/farm/farm.h"

namespace tilefarm::farm {

LeaseTable::Holder Farm::HolderOf(const Device& device) const {
  return {.name = device.name(),
          .device_id = device.device_id,
          .capacity = device.capacity};
}

void Farm::Refresh(const std::string& name) {
  scheduler_.SetAvailability(name,
                             registry_.Refresh(name, leases_.CountOf(name)));
}

void Farm::Classify(const std::string& name) {
  const Device& device = *registry_.Find(name);
  if (device.device_id.empty()) return;
  scheduler_.SetDevice(name, {.target = device.target,
                              .properties = device.properties,
                              .reserved_for = device.known.reserved_for});
}

bool Farm::Admits(const Device& device, const QueueTerms& terms) {
  return (device.known.reserved_for.empty() ||
          device.known.reserved_for == terms.user) &&
         FirstUnmet(terms.requirements, device.name(), device.properties) ==
             nullptr;
}

// --- Answers -----------------------------------------------------------------

int Farm::SlotsFor(const target::Target& target,
                   const QueueTerms& terms) const {
  MutexLock lock(mutex_);
  const absl::Duration now = clock_.Monotonic();
  const std::string key = target.Key();
  int64_t slots = scheduler_.SlotsFor(target, terms);
  // Their rest may have ended since the scheduler was told.
  for (const std::string& name : registry_.resting()) {
    const Device& device = *registry_.Find(name);
    if (device.is_promising(now) && Admits(device, terms) &&
        scheduler_.Fits(name, target, key)) {
      slots += device.capacity;
    }
  }
  return static_cast<int>(slots);
}

std::vector<Farm::Choice> Farm::Choices(const target::Target& target,
                                        const QueueTerms& terms) const {
  MutexLock lock(mutex_);
  const absl::Duration now = clock_.Monotonic();
  const std::string key = target.Key();
  std::vector<std::pair<int, Choice>> found;  // with the number of leases
  for (const auto& [name, device] : registry_.devices()) {
    if (!device.is_promising(now) || !Admits(device, terms) ||
        !scheduler_.Fits(name, target, key)) {
      continue;
    }
    const int leases = leases_.CountOf(name);
    found.emplace_back(leases,
                       Choice{.name = name,
                              .device_class = DeviceClass(device.properties),
                              .device_model = device.device_model,
                              .idle = leases == 0,
                              .unsteady = device.health.state() ==
                                          DeviceHealth::State::kUnsteady});
  }
  std::stable_sort(
      found.begin(), found.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Choice> choices;
  for (auto& [leases, choice] : found) choices.push_back(std::move(choice));
  return choices;
}

const Farm::Device* Farm::FirstFit(const target::Target& target,
                                   const QueueTerms& terms) const {
  const absl::Duration now = clock_.Monotonic();
  const std::string key = target.Key();
  for (const auto& [name, device] : registry_.devices()) {
    if (device.is_promising(now) && scheduler_.Fits(name, target, key) &&
        Admits(device, terms)) {
      return &device;
    }
  }
  return nullptr;
}

std::optional<target::CacheSizes> Farm::CachesFor(
    const target::Target& target, const QueueTerms& terms) const {
  MutexLock lock(mutex_);
  const Device* const device = FirstFit(target, terms);
  if (device == nullptr) return std::nullopt;
  return device->properties.caches();
}

std::optional<std::vector<std::string>> Farm::LibrariesFor(
    const target::Target& target, const QueueTerms& terms) const {
  MutexLock lock(mutex_);
  const Device* const device = FirstFit(target, terms);
  if (device == nullptr) return std::nullopt;
  std::vector<std::string> libraries;
  for (const auto& [library, version] : device->properties.libraries) {
    libraries.push_back(library);
  }
  return libraries;
}

std::string Farm::WhyNoDevice(const target::Target& target,
                              const QueueTerms& terms) const {
  MutexLock lock(mutex_);
  const absl::Duration now = clock_.Monotonic();
  const std::string key = target.Key();
  std::vector<std::string> reasons;
  for (const auto& [name, device] : registry_.devices()) {
    const Requirement* unmet =
        FirstUnmet(terms.requirements, name, device.properties);
    std::string reason;
    if (!device.connected()) {
      reason = "is offline";
    } else if (!device.incompatible.empty()) {
      reason = device.incompatible;
    } else if (device.known.order != Order::kNone) {
      reason = absl::StrCat("is ", std::string(OrderName(device.known.order)),
                            " ", device.known.order_reason);
    } else if (device.draining) {
      reason = "is draining";
    } else if (!scheduler_.Fits(name, target, key)) {
      reason = absl::StrCat("is ", device.target.Key());
    } else if (unmet != nullptr) {
      reason = absl::StrCat("has not ", unmet->text);
    } else if (!Admits(device, terms)) {
      reason = absl::StrCat("is reserved for ", device.known.reserved_for);
    } else if (!device.health.promising(now)) {
      reason = absl::StrCat("rests: ", device.health.reason(now));
    } else if (device.capacity == 0) {
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
  std::vector<DeviceStatus> devices;
  for (const auto& [name, device] : registry_.devices()) {
    devices.push_back(registry_.Status(name, leases_.CountOf(name)));
  }
  return devices;
}

FarmFigures Farm::Figures() const {
  MutexLock lock(mutex_);
  FarmFigures figures{leases_.Figures(), {}};
  for (const auto& [name, device] : registry_.devices()) {
    const double seconds = device.health.known_seconds();
    if (seconds > 0) figures.canary_seconds.emplace_back(name, seconds);
  }
  return figures;
}

// --- What operators decide ---------------------------------------------------

void Farm::Know(const KnownDevice& device) {
  MutexLock lock(mutex_);
  registry_.Know(device);
}

void Farm::KnowCanary(const std::string& device_id, double seconds) {
  MutexLock lock(mutex_);
  registry_.SetCanarySeconds(device_id, seconds);
}

double Farm::CanarySeconds(const std::string& device_id) const {
  MutexLock lock(mutex_);
  return registry_.CanarySeconds(device_id);
}

absl::Status Farm::SetOrder(const std::string& name, Order order,
                            const std::string& reason) {
  MutexLock lock(mutex_);
  TF_RETURN_IF_ERROR(registry_.SetOrder(name, order, reason));
  Refresh(name);
  GrantAll();
  return absl::OkStatus();
}

absl::Status Farm::Reserve(const std::string& name, const std::string& user,
                           absl::Time until) {
  MutexLock lock(mutex_);
  TF_RETURN_IF_ERROR(registry_.Reserve(name, user, until));
  Classify(name);
  GrantAll();
  return absl::OkStatus();
}

absl::Status Farm::Forget(const std::string& name) {
  MutexLock lock(mutex_);
  TF_RETURN_IF_ERROR(registry_.CheckForget(name));
  for (const std::string& id : leases_.LeasesOf(name)) {
    Lose(id, Loss::kWorkerGone);
  }
  // Results of the device that are being committed are not acknowledged.
  registry_.Forget(name);
  scheduler_.ForgetDevice(name);
  GrantAll();
  return absl::OkStatus();
}

}  // namespace tilefarm::farm
