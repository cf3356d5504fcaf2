// A lane and a task within a run; private to job_run*.cc.
#ifndef TILEFARM_SERVER_JOBS_JOB_RUN_TASK_H_
#define TILEFARM_SERVER_JOBS_JOB_RUN_TASK_H_

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/stmt.h"
#include "cost_model/cost_model.h"
#include "database/record.h"
#include "server/jobs/contender.h"
#include "server/jobs/job_run.h"
#include "server/jobs/similar_tasks.h"
#include "server/jobs/task_scheduler.h"
#include "server/search/search.h"

namespace tilefarm::jobs {

// Whether a measurement of the program as written is final: a time, or the fact
// that it takes too long, which would not change.
inline bool IsBaseline(database::Status status) {
  return status == database::Status::kOk ||
         status == database::Status::kRunTimeout;
}

struct JobRun::Task {
  int index = 0;  // in the snapshot
  int place = 0;  // in its lane, and for the lane's scheduler
  std::string id;
  TaskSpec spec;
  Lane* lane = nullptr;
  ir::PrimFuncPtr function;
  ProgramKind kind;
  std::unique_ptr<search::Search> search;
  std::vector<database::Record> known;  // at the start; empty afterwards
  int64_t done = 0;                     // trials of this job
  int64_t pending = 0;
  int64_t next_sequence = 1;
  double best_seconds = 0;
  bool has_baseline = false;
  bool exhausted = false;   // nothing more to propose
  std::string failure;      // why there is no search for it
  int64_t failed = 0;       // trials without a measurement
  std::string first_error;  // of the failed trials, with its status
  Contenders contenders;
  std::optional<cost_model::RankingMetrics> metrics;
  // The candidate with the default schedule; empty: not known yet.
  std::string default_id;
};

// What the job does for one of its targets.
struct JobRun::Lane {
  enum class Phase { kWaiting, kOpen, kClosing, kFinished };

  Phase phase = Phase::kWaiting;
  std::string key;    // of the target
  std::string queue;  // in the farm
  farm::QueueTerms terms;
  target::Target target;  // with the caches that the searches are made for
  // Libraries whose kernels are candidates; nullopt: not known yet.
  std::optional<std::vector<std::string>> libraries;
  std::shared_ptr<cost_model::CostModel> model;
  absl::Duration model_saved_at = -absl::InfiniteDuration();
  bool model_changed = false;
  // Digest of the stored model, if it holds nothing that `model` lacks.
  std::string stored_model;
  std::vector<Task*> tasks;
  std::unique_ptr<TaskScheduler> scheduler;  // of `tasks`
  // When waiting for finalists ends; infinite before any were requested.
  absl::Duration finalists_until = absl::InfiniteDuration();
  int finalist_rounds = 0;
  int outstanding = 0;  // in the farm, at the start of a step
  std::string waits;    // why no device can take its work; empty: one can

  int64_t done() const {
    int64_t sum = 0;
    for (const Task* task : tasks) sum += task->done;
    return sum;
  }
  int64_t pending() const {
    int64_t sum = 0;
    for (const Task* task : tasks) sum += task->pending;
    return sum;
  }
  // Nothing more can be proposed.
  bool exhausted() const {
    return std::all_of(tasks.begin(), tasks.end(),
                       [](const Task* task) { return task->exhausted; });
  }
  void Exhaust(Task& task) const {
    task.exhausted = true;
    scheduler->Exhaust(task.place);
  }
};

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_JOB_RUN_TASK_H_
