#include "server/jobs/search_factory.h"

#include <utility>

#include "base/hash.h"
#include "base/status_macros.h"
#include "compiler/driver/draft_schedule.h"
#include "compiler/schedule/trace.h"
#include "compiler/space/design_space.h"

namespace tilefarm::jobs {
namespace {

std::unique_ptr<cost_model::CostModel> MakeModel(const JobSpec& job) {
  return job.model == "random" ? cost_model::MakeRandomModel(job.seed)
                               : cost_model::MakeXgboostModel(job.seed);
}

absl::StatusOr<std::unique_ptr<search::Search>> MakeSearch(
    const SearchRequest& request) {
  const ir::FloatRule floats = FloatsOf(request.job);
  std::unique_ptr<space::DesignSpace> space;
  if (request.job.space_trace.empty()) {
    TF_ASSIGN_OR_RETURN(space, space::DesignSpace::Create(
                                   request.function, request.target, floats));
  } else {
    TF_ASSIGN_OR_RETURN(schedule::Trace sketch,
                        schedule::Trace::Parse(request.job.space_trace));
    TF_ASSIGN_OR_RETURN(
        space, space::DesignSpace::FromTrace(request.function, request.target,
                                             std::move(sketch), floats));
  }
  search::SearchOptions options;
  // Each task of a job has its own random stream.
  options.seed = request.job.seed ^ Sha256Prefix(request.task_id);
  options.strategy = request.job.search == "random"
                         ? search::Strategy::kRandom
                         : search::Strategy::kEvolutionary;
  options.fingerprint = request.fingerprint;
  // The schedule that a user without records gets; where the job may round, the
  // same without its restriction; and that of the heuristic, which does not
  // depend on the estimate that ranks the first candidates. With a sketch by
  // hand, only that sketch is searched.
  if (request.job.space_trace.empty()) {
    for (const auto& schedule :
         {driver::DraftSchedule(request.function, request.target,
                                ir::FloatRule::kAsWritten),
          driver::DraftSchedule(request.function, request.target, floats),
          space::DefaultSchedule(ir::IRModule{{request.function}},
                                 request.target, floats)}) {
      if (schedule.ok()) {
        options.first_traces.push_back(schedule->trace().Print());
      }
    }
    for (const schedule::Schedule& schedule : space::LibrarySchedules(
             request.function, request.target, request.libraries, floats)) {
      options.first_traces.push_back(schedule.trace().Print());
    }
  }
  return search::Search::Create(std::move(space), request.target,
                                request.task_id, request.model, options,
                                request.known);
}

}  // namespace

SearchFactory RealSearchFactory() {
  return {.make_model = MakeModel, .make_search = MakeSearch};
}

}  // namespace tilefarm::jobs
