// Watching jobs: subscriptions, and when their watchers are called.
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/jobs/jobs.h"
#include "server/jobs/jobs_state.h"

namespace tilefarm::jobs {

absl::StatusOr<int64_t> Jobs::Watch(const std::string& job_id,
                                    Watcher watcher) {
  MutexLock lock(mutex_);
  Entry* entry = Find(job_id);
  if (entry == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no job ", job_id));
  }
  const JobSnapshot snapshot = SnapshotOf(*entry);
  MutexLock watch_lock(watch_mutex_);
  const int64_t subscription = next_subscription_++;
  watcher(snapshot);
  if (!Ended(snapshot.state)) {
    watchers_[subscription] = {.job_id = job_id,
                               .watcher = std::move(watcher),
                               .message = snapshot.message,
                               .told_at = options_.clock->Monotonic()};
  }
  return subscription;
}

void Jobs::Unwatch(int64_t subscription) {
  MutexLock lock(watch_mutex_);
  watchers_.erase(subscription);
}

void Jobs::Publish() {
  MutexLock lock(mutex_);
  MutexLock watch_lock(watch_mutex_);
  const absl::Duration now = options_.clock->Monotonic();
  const std::string problem = writer_->problem();
  for (auto it = watchers_.begin(); it != watchers_.end();) {
    Watching& watching = it->second;
    Entry* entry = Find(watching.job_id);
    const int64_t version = entry->run != nullptr ? entry->run->version() : -1;
    const bool due =
        now - watching.told_at >= options_.timeouts.watch_idle_interval;
    bool ended = Ended(entry->state);
    const bool problem_changed = watching.problem != problem;
    watching.problem = problem;
    if (ended || due || problem_changed || version != watching.version) {
      const JobSnapshot snapshot = SnapshotOf(*entry);
      ended = Ended(snapshot.state);
      watching.version = version;
      watching.told_at = now;
      watching.watcher(snapshot);
    }
    it = ended ? watchers_.erase(it) : std::next(it);
  }
}

}  // namespace tilefarm::jobs
