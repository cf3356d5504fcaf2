// The tables of Jobs; private to jobs*.cc.
#ifndef TILEFARM_SERVER_JOBS_JOBS_STATE_H_
#define TILEFARM_SERVER_JOBS_JOBS_STATE_H_

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "server/jobs/jobs.h"

namespace tilefarm::jobs {

struct Jobs::Entry {
  std::string id;
  JobSpec spec;
  JobState state = JobState::kQueued;
  // Why an ended job failed, or why a queued job could not be started.
  std::string error;
  // A former process started it: the store says that it runs.
  bool recovered = false;
  std::set<std::string> task_ids;
  std::unique_ptr<JobRun> run;       // while running
  std::optional<JobSnapshot> final;  // once ended, when first asked for
};

struct Jobs::Watching {
  std::string job_id;
  Watcher watcher;
  int64_t version = -1;  // of the run, as last told
  std::string message;   // of a queued job, as last told
  std::string problem;   // of storing results, as last told
  absl::Duration told_at;
};

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_JOBS_STATE_H_
