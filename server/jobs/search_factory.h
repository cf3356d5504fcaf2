// Makes the search of a task. Injected, so that tests of jobs need no search.
#ifndef TILEFARM_SERVER_JOBS_SEARCH_FACTORY_H_
#define TILEFARM_SERVER_JOBS_SEARCH_FACTORY_H_

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"
#include "cost_model/cost_model.h"
#include "database/record.h"
#include "server/jobs/job.h"
#include "server/search/search.h"

namespace tilefarm::jobs {

struct SearchRequest {
  const JobSpec& job;
  std::string task_id;
  ir::PrimFuncPtr function;
  target::Target target;
  std::string fingerprint;
  std::shared_ptr<cost_model::CostModel> model;  // shared by a lane's tasks
  std::span<const database::Record> known;
  // Libraries whose kernels are candidates as well.
  std::vector<std::string> libraries = {};
};

struct SearchFactory {
  std::function<std::unique_ptr<cost_model::CostModel>(const JobSpec&)>
      make_model;
  std::function<absl::StatusOr<std::unique_ptr<search::Search>>(
      const SearchRequest&)>
      make_search;
};

// The factory of the server: the rules of the design space or the job's own
// sketch, the search that the job names, and its cost model.
SearchFactory RealSearchFactory();

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_SEARCH_FACTORY_H_
