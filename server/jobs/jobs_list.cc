// What clients see of jobs: snapshots, those that pass a filter, why one waits.
#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/jobs/jobs.h"
#include "server/jobs/jobs_state.h"
#include "server/jobs/recorded_tasks.h"

namespace tilefarm::jobs {

JobSnapshot Jobs::FromRecords(const Entry& entry, RecordedTasks& recorded) {
  JobSnapshot snapshot;
  snapshot.id = entry.id;
  snapshot.state = entry.state;
  snapshot.user = entry.spec.user;
  snapshot.program_name = entry.spec.program_name;
  for (const JobTarget& target : entry.spec.targets) {
    snapshot.targets.push_back(target.key);
  }
  snapshot.trials = entry.spec.trials;
  snapshot.error = entry.error;
  for (const TaskSpec& spec : entry.spec.tasks) {
    const RecordedTask& known = recorded.Find(spec, entry.spec);
    TaskSnapshot task;
    task.function = spec.function;
    task.target = spec.target;
    task.workload_hash = spec.workload_hash;
    task.flops = spec.flops;
    task.weight = spec.weight;
    task.shape = spec.shape;
    task.state = Ended(entry.state) ? "ended" : "waiting";
    const auto trials = known.trials.find(entry.id);
    if (trials != known.trials.end()) {
      for (const auto& [status, count] : trials->second) {
        task.trials_done += count;
        snapshot.by_status[status] += count;
      }
    }
    task.best_seconds = known.best_seconds;
    task.unscheduled_seconds = known.unscheduled_seconds;
    task.default_seconds = known.default_seconds;
    task.algorithms = known.algorithms;
    task.keeps_floats = known.keeps_floats;
    snapshot.trials_done += task.trials_done;
    snapshot.tasks.push_back(std::move(task));
  }
  return snapshot;
}

std::string Jobs::WhyQueued(const Entry& entry, const HeldTasks& held) {
  if (!entry.error.empty()) {
    return absl::StrCat("waits for the database: ", entry.error);
  }
  const absl::Status user = CheckUser(entry.spec.user);
  if (!user.ok()) {
    return absl::StrCat("waits: ", std::string(user.message()));
  }
  const Entry* other = WaitsFor(entry, held);
  if (other == nullptr) return "waits for its turn";
  return absl::StrCat("waits for job ", other->id,
                      ", which tunes the same program and target");
}

JobSnapshot Jobs::SnapshotOf(Entry& entry, RecordedTasks& recorded,
                             const HeldTasks& held) {
  if (entry.run != nullptr) {
    JobSnapshot snapshot = entry.run->Snapshot();
    const std::string problem = writer_->problem();
    if (!problem.empty() && !Ended(snapshot.state)) snapshot.message = problem;
    return snapshot;
  }
  if (entry.final.has_value()) return *entry.final;
  JobSnapshot snapshot = FromRecords(entry, recorded);
  if (Ended(entry.state)) {
    Conclude(entry, snapshot);
  } else {
    snapshot.error.clear();
    snapshot.message = WhyQueued(entry, held);
  }
  return snapshot;
}

JobSnapshot Jobs::SnapshotOf(Entry& entry) {
  RecordedTasks recorded(store_, options_.fingerprint);
  return SnapshotOf(entry, recorded, FindHeldTasks());
}

bool Jobs::Passes(const Entry& entry, const JobFilter& filter) {
  const auto& targets = entry.spec.targets;
  const auto is_target = [&](const JobTarget& target) {
    return absl::StrContains(target.key, filter.target);
  };
  return (filter.states.empty() ||
          absl::c_linear_search(filter.states, entry.state)) &&
         (filter.user.empty() || entry.spec.user == filter.user) &&
         absl::StrContains(entry.spec.program_name, filter.program) &&
         (filter.target.empty() || absl::c_any_of(targets, is_target)) &&
         absl::StartsWith(entry.id, filter.id_prefix);
}

absl::StatusOr<std::vector<JobSnapshot>> Jobs::List(const JobFilter& filter) {
  MutexLock lock(mutex_);
  std::vector<Entry*> passed;  // the latest first
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    if (!Passes(**entry, filter)) continue;
    passed.push_back(entry->get());
    if (static_cast<int64_t>(passed.size()) == filter.limit) break;
  }
  RecordedTasks recorded(store_, options_.fingerprint);
  const HeldTasks held = FindHeldTasks();
  std::vector<JobSnapshot> all;
  for (auto entry = passed.rbegin(); entry != passed.rend(); ++entry) {
    all.push_back(SnapshotOf(**entry, recorded, held));
  }
  return all;
}

absl::StatusOr<JobSnapshot> Jobs::Get(const std::string& job_id) {
  MutexLock lock(mutex_);
  Entry* entry = Find(job_id);
  if (entry == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no job ", job_id));
  }
  return SnapshotOf(*entry);
}

}  // namespace tilefarm::jobs
