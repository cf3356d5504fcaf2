// What operators decide about devices.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/farm/farm.h"
#include "server/farm/farm_state.h"

namespace tilefarm::farm {
namespace {

absl::Status Unknown(const std::string& name) {
  return absl::NotFoundError(absl::StrCat("there is no device '", name, "'"));
}

}  // namespace

void Farm::Know(const KnownDevice& device) {
  MutexLock lock(mutex_);
  std::unique_ptr<Worker>& slot = workers_[device.name];
  if (slot == nullptr) {
    slot = std::make_unique<Worker>();
    slot->name = device.name;
    slot->last_seen = device.last_seen;
    slot->offline_reason = "not connected since the server started";
  }
  slot->known = device;
}

void Farm::KnowCanary(const std::string& device_id, double seconds) {
  MutexLock lock(mutex_);
  canary_seconds_[device_id] = seconds;
}

double Farm::CanarySeconds(const std::string& device_id) const {
  MutexLock lock(mutex_);
  const auto found = canary_seconds_.find(device_id);
  return found == canary_seconds_.end() ? 0 : found->second;
}

absl::Status Farm::SetOrder(const std::string& name, Order order,
                            const std::string& reason) {
  MutexLock lock(mutex_);
  const auto found = workers_.find(name);
  if (found == workers_.end()) return Unknown(name);
  Worker& worker = *found->second;
  worker.known.order = order;
  worker.known.order_reason = order == Order::kNone ? "" : reason;
  if (order == Order::kNone) {
    worker.health.Reset(clock_.Monotonic());
    canary_seconds_.erase(worker.device_id);
  }
  Refresh(worker);
  Grant();
  return absl::OkStatus();
}

absl::Status Farm::Reserve(const std::string& name, const std::string& user,
                           absl::Time until) {
  MutexLock lock(mutex_);
  const auto found = workers_.find(name);
  if (found == workers_.end()) return Unknown(name);
  found->second->known.reserved_for = user;
  found->second->known.reserved_until = until;
  Classify(*found->second);
  Grant();
  return absl::OkStatus();
}

absl::Status Farm::Forget(const std::string& name) {
  MutexLock lock(mutex_);
  const auto found = workers_.find(name);
  if (found == workers_.end()) return Unknown(name);
  Worker& worker = *found->second;
  if (worker.session != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "device '", name, "' is connected; stop its rpc-worker first"));
  }
  const std::set<std::string> leases = worker.leases;
  for (const std::string& lease : leases) Lose(lease);
  // Results that are being committed find no one to acknowledge.
  canary_seconds_.erase(worker.device_id);
  index_.ForgetDevice(name);
  workers_.erase(found);
  Grant();
  return absl::OkStatus();
}

void Farm::ExpireReservations() {
  const absl::Time now = clock_.Now();
  for (auto& [name, worker] : workers_) {
    if (worker->known.reserved_for.empty() ||
        now < worker->known.reserved_until) {
      continue;
    }
    Note(*worker, "release",
         absl::StrCat("the time of ", worker->known.reserved_for, " is over"));
    worker->known.reserved_for.clear();
    Classify(*worker);
  }
}

bool Farm::Admits(const Worker& worker, const QueueTerms& terms) const {
  return (worker.known.reserved_for.empty() ||
          worker.known.reserved_for == terms.user) &&
         FirstUnmet(terms.requirements, worker.name, worker.properties) ==
             nullptr;
}

}  // namespace tilefarm::farm
