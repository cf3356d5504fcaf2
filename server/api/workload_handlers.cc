// Workloads: what was tuned, how far each is from its limits, and which
// decisions mattered.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/parser.h"
#include "compiler/target/target.h"
#include "server/api/decision_effects.h"
#include "server/api/handlers.h"
#include "server/api/limits_of_device.h"
#include "server/api/shapes.h"
#include "server/jobs/result_writer.h"
#include "server/search/search.h"
#include "server/services/device_clock.h"

namespace tilefarm::api {
namespace {

constexpr size_t kMostSketches = 4;
constexpr double kMega = 1e6;

// Names that jobs have for a workload: "mm_relu.py: main".
std::map<std::string, std::set<std::string>> NamesOfWorkloads(
    const Parts& parts) {
  std::map<std::string, std::set<std::string>> names;
  const auto all = parts.jobs.List({.limit = 1000});
  if (!all.ok()) return names;
  for (const jobs::JobSnapshot& job : *all) {
    for (const jobs::TaskSnapshot& task : job.tasks) {
      names[task.workload_hash].insert(
          absl::StrCat(job.program_name, ": ", task.function));
    }
  }
  return names;
}

Json NamesJson(const std::set<std::string>& names) {
  Json json = Json::array();
  for (const std::string& name : names) json.push_back(name);
  return json;
}

absl::StatusOr<std::string> TargetOf(const Parts& parts, const Call& call) {
  std::string target = call.query.Text("target");
  TF_ASSIGN_OR_RETURN(const auto tasks, parts.store.ListTasks());
  const std::string& workload = call.path.at("workload");
  for (const database::Task& task : tasks) {
    if (task.workload_hash != workload) continue;
    if (target.empty() || task.target == target) return task.target;
  }
  return absl::NotFoundError(
      absl::StrCat("there are no records of workload ", workload,
                   target.empty() ? "" : " on ", target));
}

// The record with the least rank among those that call a library's kernel, or
// those that do not; 0: none.
int64_t BestOf(const std::vector<database::OutcomeRow>& rows, bool library) {
  const database::OutcomeRow* best = nullptr;
  for (const database::OutcomeRow& row : rows) {
    if (row.rank_seconds <= 0 || row.library != library) continue;
    if (best == nullptr || row.rank_seconds < best->rank_seconds) best = &row;
  }
  return best == nullptr ? 0 : best->id;
}

Json RooflineJson(const Roofline& roofline, bool clock_is_measured) {
  Json bandwidths = Json::array();
  for (const Bandwidth& one : roofline.bandwidths) {
    bandwidths.push_back(
        {{"level", one.level}, {"bytes_per_second", one.bytes_per_second}});
  }
  return {
      {"flops", roofline.flops},
      {"bytes", roofline.bytes},
      {"clock_hertz", NumberOrNull(roofline.clock_hertz)},
      {"clock_is_measured", clock_is_measured},
      {"cores", roofline.cores},
      {"peak_flops_per_second", NumberOrNull(roofline.peak_flops_per_second)},
      {"bandwidths", std::move(bandwidths)}};
}

// The measured time of the program as written; null: not measured.
Json UnscheduledSeconds(const Parts& parts, const std::string& workload,
                        const std::string& target) {
  const auto blob =
      parts.store.GetBlob(jobs::BaselineKey(search::TaskId(workload, target)));
  if (!blob.ok()) return nullptr;
  const auto record = database::RecordFromJson(*blob);
  if (!record.ok() || record->status != database::Status::kOk) return nullptr;
  return NumberOrNull(record->median_seconds);
}

}  // namespace

absl::StatusOr<Json> ListWorkloads(const Parts& parts, const Call& call) {
  TF_RETURN_IF_ERROR(call.query.Allow({}));
  TF_ASSIGN_OR_RETURN(const auto tasks, parts.store.ListTaskFigures());
  const auto names = NamesOfWorkloads(parts);
  Json list = Json::array();
  for (const database::TaskFigures& task : tasks) {
    const auto found = names.find(task.workload_hash);
    list.push_back(
        {{"workload", task.workload_hash},
         {"target", task.target},
         {"names",
          found == names.end() ? Json::array() : NamesJson(found->second)},
         {"records", task.records},
         {"ok", task.ok},
         {"best_seconds", NumberOrNull(task.best_seconds)},
         {"unscheduled_seconds",
          UnscheduledSeconds(parts, task.workload_hash, task.target)},
         {"recorded_at", task.recorded_at}});
  }
  return Json{{"workloads", std::move(list)}};
}

absl::StatusOr<Json> GetWorkload(const Parts& parts, const Call& call) {
  TF_RETURN_IF_ERROR(call.query.Allow({"target"}));
  const std::string& workload = call.path.at("workload");
  TF_ASSIGN_OR_RETURN(const std::string target, TargetOf(parts, call));
  TF_ASSIGN_OR_RETURN(
      const auto rows,
      parts.store.ListOutcomes({.workload_hash = workload, .target = target}));
  const int64_t best = BestOf(rows, /*library=*/false);
  const int64_t library = BestOf(rows, /*library=*/true);
  const int64_t shown = best > 0 ? best : rows.front().id;
  TF_ASSIGN_OR_RETURN(const database::Record record,
                      parts.store.GetRecord(shown));
  TF_ASSIGN_OR_RETURN(const auto function, ir::ParseFunction(record.program));
  TF_ASSIGN_OR_RETURN(const target::Target parsed, target::ParseKey(target));
  const services::DeviceClock clock =
      services::ClockOf(target, record.device_state);
  std::map<std::string, int64_t> by_status;
  std::set<std::string> targets;
  for (const database::OutcomeRow& row : rows) {
    ++by_status[std::string(database::StatusName(row.status))];
  }
  TF_ASSIGN_OR_RETURN(const auto tasks, parts.store.ListTasks());
  for (const database::Task& task : tasks) {
    if (task.workload_hash == workload) targets.insert(task.target);
  }
  const auto names = NamesOfWorkloads(parts);
  const auto named = names.find(workload);
  Json counts = Json::object();
  for (const auto& [status, count] : by_status) counts[status] = count;
  return Json{
      {"workload", workload},
      {"target", target},
      {"targets", NamesJson(targets)},
      {"names",
       named == names.end() ? Json::array() : NamesJson(named->second)},
      {"program", record.program},
      {"records", rows.size()},
      {"by_status", std::move(counts)},
      {"best", best > 0 ? Json(best) : Json(nullptr)},
      {"library", library > 0 ? Json(library) : Json(nullptr)},
      {"unscheduled_seconds", UnscheduledSeconds(parts, workload, target)},
      {"roofline",
       RooflineJson(RooflineOf(*function, parsed, clock.mhz * kMega),
                    clock.measured)}};
}

absl::StatusOr<Json> GetWorkloadCandidates(const Parts& parts,
                                           const Call& call) {
  TF_RETURN_IF_ERROR(call.query.Allow({"target", "after"}));
  database::OutcomeFilter filter{.workload_hash = call.path.at("workload"),
                                 .limit = kMostCandidates};
  TF_ASSIGN_OR_RETURN(filter.target, TargetOf(parts, call));
  TF_ASSIGN_OR_RETURN(filter.after,
                      call.query.Number("after", 0, 0, INT64_MAX));
  TF_ASSIGN_OR_RETURN(const auto rows, parts.store.ListOutcomes(filter));
  return CandidatesJson(rows);
}

absl::StatusOr<Json> GetDecisions(const Parts& parts, const Call& call) {
  TF_RETURN_IF_ERROR(call.query.Allow({"target"}));
  TF_ASSIGN_OR_RETURN(const std::string target, TargetOf(parts, call));
  TF_ASSIGN_OR_RETURN(
      const auto rows,
      parts.store.ListOutcomes({.workload_hash = call.path.at("workload"),
                                .target = target,
                                .decisions = true}));
  struct Sketch {
    std::vector<DecidedCandidate> timed;
    int64_t candidates = 0;
    double best = 0;
  };
  std::map<int64_t, Sketch> sketches;
  for (const database::OutcomeRow& row : rows) {
    Sketch& sketch = sketches[row.sketch];
    ++sketch.candidates;
    // Those that were stopped early are slow; their times are not measured.
    if (row.status != database::Status::kOk || row.stopped_early ||
        row.median_seconds <= 0) {
      continue;
    }
    sketch.timed.push_back(
        {.decisions = row.decisions, .seconds = row.median_seconds});
    if (sketch.best == 0 || row.median_seconds < sketch.best) {
      sketch.best = row.median_seconds;
    }
  }
  std::vector<std::pair<int64_t, const Sketch*>> order;
  for (const auto& [id, sketch] : sketches) order.emplace_back(id, &sketch);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) {
                     return a.second->timed.size() > b.second->timed.size();
                   });
  Json list = Json::array();
  for (const auto& [id, sketch] : order) {
    if (list.size() >= kMostSketches) break;
    TF_ASSIGN_OR_RETURN(const std::string text, parts.store.GetSketch(id));
    Json decisions = Json::array();
    for (const DecisionEffect& effect : DecisionEffects(text, sketch->timed)) {
      Json values = Json::array();
      for (const ValueEffect& value : effect.effects) {
        values.push_back({{"value", value.value},
                          {"count", value.count},
                          {"best_seconds", value.best_seconds},
                          {"median_seconds", value.median_seconds}});
      }
      decisions.push_back({{"call", effect.call},
                           {"share", effect.share},
                           {"values", effect.values},
                           {"effects", std::move(values)}});
    }
    list.push_back({{"sketch", id},
                    {"text", text},
                    {"candidates", sketch->candidates},
                    {"timed", sketch->timed.size()},
                    {"best_seconds", NumberOrNull(sketch->best)},
                    {"decisions", std::move(decisions)}});
  }
  return Json{{"sketches", std::move(list)}, {"of", sketches.size()}};
}

}  // namespace tilefarm::api
