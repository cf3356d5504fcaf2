#include "server/jobs/recorded_tasks.h"

#include <utility>
#include <vector>

#include "server/jobs/contender.h"
#include "server/jobs/result_writer.h"

namespace tilefarm::jobs {

RecordedTasks::RecordedTasks(const database::Store& store,
                             std::string fingerprint)
    : store_(store), fingerprint_(std::move(fingerprint)) {}

const RecordedTask& RecordedTasks::Find(const TaskSpec& task) {
  const std::string id = TaskId(task);
  const auto found = read_.find(id);
  if (found != read_.end()) return found->second;
  return read_.emplace(id, Read(task)).first->second;
}

RecordedTask RecordedTasks::Read(const TaskSpec& task) const {
  RecordedTask recorded;
  const auto records = store_.FindRecords(task.workload_hash, task.target);
  if (records.ok()) {
    Contenders all, without_library;
    bool has_library = false;
    for (const database::Record& record : *records) {
      ++recorded.trials[record.job_id]
                       [std::string(database::StatusName(record.status))];
      if (!MayCountAsBest(record, fingerprint_)) continue;
      all.Add(record);
      if (record.library().empty()) {
        without_library.Add(record);
      } else {
        has_library = true;
      }
    }
    without_library.NoteStored(store_, fingerprint_);
    recorded.best_without_library = without_library.best_seconds();
    recorded.best_with_library = recorded.best_without_library;
    if (has_library) {
      all.NoteStored(store_, fingerprint_);
      recorded.best_with_library = all.best_seconds();
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
