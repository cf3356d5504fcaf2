#include "server/jobs/recorded_tasks.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/driver/kept_floats.h"
#include "server/jobs/contender.h"
#include "server/jobs/result_writer.h"

namespace tilefarm::jobs {

std::string DefaultKey(const std::string& task_id) {
  return absl::StrCat("default/", task_id);
}

RecordedTasks::RecordedTasks(const database::Store& store,
                             std::string fingerprint)
    : store_(store), fingerprint_(std::move(fingerprint)) {}

const RecordedTask& RecordedTasks::Find(const TaskSpec& task,
                                        const JobSpec& job) {
  const auto key = std::tuple(TaskId(task), job.allow_library, FloatsOf(job));
  const auto found = read_.find(key);
  if (found != read_.end()) return found->second;
  return read_.emplace(key, Read(task, job)).first->second;
}

RecordedTask RecordedTasks::Read(const TaskSpec& task,
                                 const JobSpec& job) const {
  RecordedTask recorded;
  const auto chosen = store_.GetBlob(DefaultKey(TaskId(task)));
  const auto records = store_.FindRecords(task.workload_hash, task.target);
  if (records.ok()) {
    Contenders contenders;
    for (const database::Record& record : *records) {
      ++recorded.trials[record.job_id]
                       [std::string(database::StatusName(record.status))];
      if (MayCountAsBest(record, fingerprint_, job)) contenders.Add(record);
      if (chosen.ok() && CountsAsBest(record, fingerprint_) &&
          *chosen == absl::StrCat(record.candidate_id, "\n", fingerprint_)) {
        recorded.default_seconds = record.median_seconds;
      }
    }
    contenders.NoteStored(store_, fingerprint_);
    recorded.best_seconds = contenders.best_seconds();
    if (const Contender* winner = contenders.winner()) {
      const database::Record& best = winner->record;
      recorded.algorithms = driver::AlgorithmsOf(best.trace);
      recorded.keeps_floats = driver::KeepsFloats(best.program, best.trace);
    }
  }
  const auto baseline = store_.GetBlob(BaselineKey(TaskId(task)));
  if (baseline.ok()) {
    const auto record = database::RecordFromJson(*baseline);
    if (record.ok() && record->status == database::Status::kOk) {
      recorded.unscheduled_seconds = record->median_seconds;
    }
  }
  return recorded;
}

}  // namespace tilefarm::jobs
