// A task within a run; private to job_run*.cc.
#ifndef TILEFARM_SERVER_JOBS_JOB_RUN_TASK_H_
#define TILEFARM_SERVER_JOBS_JOB_RUN_TASK_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/stmt.h"
#include "cost_model/cost_model.h"
#include "database/record.h"
#include "server/jobs/contender.h"
#include "server/jobs/job_run.h"
#include "server/search/search.h"

namespace tilefarm::jobs {

// Whether a measurement of the program as written settles the matter: where it
// takes too long, it would the next time as well.
inline bool IsBaseline(database::Status status) {
  return status == database::Status::kOk ||
         status == database::Status::kRunTimeout;
}

struct JobRun::Task {
  int index = 0;  // in the snapshot
  std::string id;
  TaskSpec spec;
  ir::PrimFuncPtr function;
  std::unique_ptr<search::Search> search;
  std::vector<database::Record> known;  // at the start; dropped then
  int64_t done = 0;                     // trials of this job
  int64_t pending = 0;
  int64_t next_sequence = 1;
  double best_seconds = 0;
  bool has_baseline = false;
  bool exhausted = false;  // nothing more to propose
  Contenders contenders;
  std::optional<cost_model::RankingMetrics> metrics;
};

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_JOB_RUN_TASK_H_
