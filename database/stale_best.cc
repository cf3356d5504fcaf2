#include "database/stale_best.h"

#include <algorithm>
#include <utility>

namespace tilefarm::database {

double StaleBest::SecondsOf(const Record& record) {
  // The latest measurement is what lookups go by.
  for (auto it = record.remeasured.rbegin(); it != record.remeasured.rend();
       ++it) {
    if (it->status == Status::kOk && !it->stopped_early) {
      return it->median_seconds;
    }
  }
  return record.median_seconds;
}

void StaleBest::Add(Record record) {
  const double seconds = SecondsOf(record);
  if (record.status != Status::kOk || !record.verified ||
      record.stopped_early || record.emulated || record.protocol.cold_cache ||
      !(seconds > 0) || !record.library().empty()) {
    return;
  }
  Task& task =
      tasks_[{record.workload_hash, record.target, record.device_model}];
  if (record.fingerprint == fingerprint_) {
    if (task.fresh_seconds == 0 || seconds < task.fresh_seconds) {
      task.fresh_seconds = seconds;
    }
    return;
  }
  const auto same = std::ranges::find_if(task.stale, [&](const Record& other) {
    return other.trace == record.trace && other.program == record.program;
  });
  if (same != task.stale.end()) {
    if (SecondsOf(*same) <= seconds) return;
    task.stale.erase(same);
  }
  const auto at = std::ranges::upper_bound(task.stale, seconds, {}, SecondsOf);
  task.stale.insert(at, std::move(record));
  if (task.stale.size() > most_) task.stale.pop_back();
}

std::vector<Record> StaleBest::Take() && {
  std::vector<Record> taken;
  for (auto& [key, task] : tasks_) {
    for (Record& record : task.stale) {
      if (task.fresh_seconds > 0 && SecondsOf(record) >= task.fresh_seconds) {
        break;
      }
      taken.push_back(std::move(record));
    }
  }
  return taken;
}

}  // namespace tilefarm::database
