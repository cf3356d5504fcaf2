// What users have used of devices, and what they may.
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "server/jobs/jobs.h"
#include "server/jobs/jobs_state.h"

namespace tilefarm::jobs {
namespace {

constexpr char kDeviceTimeKey[] = "device-time";
// A crash forgets at most so much of what was used.
constexpr absl::Duration kStoreInterval = absl::Seconds(30);

}  // namespace

absl::Status Jobs::LoadDeviceTime() {
  if (!options_.quotas.BoundDeviceTime()) return absl::OkStatus();
  const auto stored = store_.GetBlob(kDeviceTimeKey);
  if (absl::IsNotFound(stored.status())) return absl::OkStatus();
  TF_RETURN_IF_ERROR(stored.status());
  auto parsed = DeviceTime::Parse(*stored);
  if (parsed.ok()) {
    device_time_ = *std::move(parsed);
  } else {
    // Counting starts again: the server serves in spite of it.
    Log(LogLevel::kError, "jobs", std::string(parsed.status().message()));
  }
  return absl::OkStatus();
}

void Jobs::NoteDeviceTime(bool store_now) {
  const auto used = farm_.TakeDeviceTime();
  if (!options_.quotas.BoundDeviceTime()) return;
  std::string changed;  // what is to be stored
  {
    MutexLock lock(mutex_);
    const absl::Time now = options_.clock->Now();
    for (const auto& [user, time] : used) device_time_.Add(user, now, time);
    device_time_changed_ |= !used.empty();
    const absl::Duration monotonic = options_.clock->Monotonic();
    if (device_time_changed_ &&
        (store_now || monotonic - device_time_stored_ >= kStoreInterval)) {
      device_time_.Forget(now, options_.quotas.days);
      changed = device_time_.Print();
      // A failure is tried again after the same time.
      device_time_stored_ = monotonic;
    }
    for (Entry* entry : running_) {
      const absl::Status may = CheckUser(entry->spec.user);
      if (!may.ok()) entry->run->EndEarly(std::string(may.message()));
    }
  }
  // Clients do not wait for the disk.
  if (changed.empty() || !store_.PutBlob(kDeviceTimeKey, changed).ok()) return;
  MutexLock lock(mutex_);
  device_time_changed_ = false;
}

absl::Status Jobs::CheckUser(const std::string& user) {
  if (!options_.quotas.BoundDeviceTime()) return absl::OkStatus();
  return CheckDeviceTime(
      options_.quotas, user,
      device_time_.Used(user, options_.clock->Now(), options_.quotas.days));
}

}  // namespace tilefarm::jobs
