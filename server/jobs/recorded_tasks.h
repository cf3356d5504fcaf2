// What the database has of tasks, for the jobs that have no run: queued ones,
// and those that ended before the server started.
#ifndef TILEFARM_SERVER_JOBS_RECORDED_TASKS_H_
#define TILEFARM_SERVER_JOBS_RECORDED_TASKS_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "database/store.h"
#include "server/jobs/job.h"

namespace tilefarm::jobs {

struct RecordedTask {
  using ByStatus = std::map<std::string, int64_t>;
  std::map<std::string, ByStatus> trials;  // by job
  double best_seconds = 0;                 // that the job may use; 0: none
  double unscheduled_seconds = 0;          // 0: not measured
  double default_seconds = 0;           // with the default schedule; 0: unknown
  std::vector<std::string> algorithms;  // as in TaskSnapshot
  bool keeps_floats = true;
};

// The blob that says which candidate has the default schedule of a task: its
// id, a line feed, and the fingerprint of the compiler that chose it.
std::string DefaultKey(const std::string& task_id);

// Reads each task from the store once for all jobs that may use the same of its
// records. It does not see what is recorded afterwards, so it lives for one
// answer to a client. Not thread-safe. A task that cannot be read has no
// records.
class RecordedTasks {
 public:
  // The store outlives it.
  RecordedTasks(const database::Store& store, std::string fingerprint);
  // Valid until the object ends.
  const RecordedTask& Find(const TaskSpec& task, const JobSpec& job);

 private:
  RecordedTask Read(const TaskSpec& task, const JobSpec& job) const;

  const database::Store& store_;
  const std::string fingerprint_;
  // By task id and what the job permits.
  std::map<std::tuple<std::string, bool, ir::FloatRule>, RecordedTask> read_;
};

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_RECORDED_TASKS_H_
