#include "server/jobs/job.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "compiler/driver/kept_floats.h"
#include "compiler/ir/library_call.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/structural.h"
#include "compiler/lower/check_program.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace.h"
#include "compiler/target/target.h"
#include "cost_model/features.h"
#include "server/farm/requirement.h"
#include "server/farm/shares.h"
#include "server/search/search.h"

namespace tilefarm::jobs {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxCacheBytes = int64_t{1} << 40;

constexpr std::pair<JobState, std::string_view> kStates[] = {
    {JobState::kQueued, "queued"},       {JobState::kRunning, "running"},
    {JobState::kDone, "done"},           {JobState::kFailed, "failed"},
    {JobState::kCancelled, "cancelled"},
};

absl::Status CheckBudget(const JobSpec& spec) {
  if (spec.trials < 0 || spec.trials > 100'000'000) {
    return absl::InvalidArgumentError("trials: not between 0 and 100000000");
  }
  if (!std::isfinite(spec.seconds) || spec.seconds < 0) {
    return absl::InvalidArgumentError("seconds: not a time");
  }
  if (spec.patience < 0) {
    return absl::InvalidArgumentError("patience: negative");
  }
  if (spec.trials == 0 && spec.seconds == 0 && spec.patience == 0) {
    return absl::InvalidArgumentError(
        "the job would never end: give trials, a time or a patience");
  }
  return absl::OkStatus();
}

absl::Status CheckChoice(std::string_view field, std::string& value,
                         std::string_view standard, std::string_view other) {
  if (value.empty()) value = std::string(standard);
  if (value == standard || value == other) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(field), ": '", value, "' is neither ",
                   std::string(standard), " nor ", std::string(other)));
}

absl::Status CheckCaches(const target::CacheSizes& caches) {
  for (const int64_t bytes :
       {caches.l1_bytes, caches.l2_bytes, caches.l3_bytes}) {
    if (bytes <= 0 || bytes > kMaxCacheBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("caches: ", bytes, " bytes is no size of a cache"));
    }
  }
  return absl::OkStatus();
}

// Fills in the keys.
absl::Status CheckTargets(JobSpec& spec) {
  if (spec.targets.empty() || spec.targets.size() > kMostTargets) {
    return absl::InvalidArgumentError(absl::StrCat("target: a job has 1 to ",
                                                   kMostTargets, ", not ",
                                                   spec.targets.size()));
  }
  std::set<std::string> seen;
  for (JobTarget& one : spec.targets) {
    if (one.caches.has_value()) TF_RETURN_IF_ERROR(CheckCaches(*one.caches));
    if (one.key.empty() || one.key.rfind("host", 0) == 0) {
      return absl::InvalidArgumentError(
          "target: 'host' must be resolved where it is typed");
    }
    TF_ASSIGN_OR_RETURN(const target::Target target, target::ParseKey(one.key));
    one.key = target.Key();
    if (!seen.insert(one.key).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("target: ", one.key, " is given twice"));
    }
    TF_RETURN_IF_ERROR(
        farm::ParseRequirements(spec.requirements, target).status());
  }
  return absl::OkStatus();
}

// A weight counts runs, so that it is positive. The bound keeps sums of
// weighted times finite.
absl::Status CheckWeights(const JobSpec& spec, const ir::IRModule& module) {
  for (const auto& [name, weight] : spec.weights) {
    const bool known =
        std::any_of(module.functions.begin(), module.functions.end(),
                    [&name = name](const ir::PrimFuncPtr& function) {
                      return function->name == name;
                    });
    if (!known) {
      return absl::InvalidArgumentError(
          absl::StrCat("weights: the program has no function '", name, "'"));
    }
    // Also false for NaN.
    if (!(weight > 0 && weight <= kMostWeight)) {
      return absl::InvalidArgumentError(
          absl::StrCat("weights: ", weight, " of function ", name,
                       " is not above 0 and at most ", kMostWeight));
    }
  }
  return absl::OkStatus();
}

std::string ShapeOf(const ir::PrimFunc& function) {
  if (function.params.empty()) return "";
  const ir::BufferNode& output = *function.params.back();
  return absl::StrCat(absl::StrJoin(output.shape, "x"),
                      output.shape.empty() ? "" : " ", output.dtype.ToString());
}

Json CachesJson(const target::CacheSizes& caches) {
  return {caches.l1_bytes, caches.l2_bytes, caches.l3_bytes};
}

std::optional<target::CacheSizes> CachesIn(const Json& json) {
  if (!json.contains("caches")) return std::nullopt;
  const std::array<int64_t, 3> sizes = json.at("caches");
  return target::CacheSizes{sizes[0], sizes[1], sizes[2]};
}

double SumOrNone(const std::vector<TaskSnapshot>& tasks,
                 double TaskSnapshot::*field) {
  double sum = 0;
  for (const TaskSnapshot& task : tasks) {
    if (task.*field <= 0) return 0;
    sum += task.*field;
  }
  return sum;
}

double FlopsOf(const TaskSpec& task) {
  const auto function = ParseTask(task);
  return function.ok() ? cost_model::CountFlops(**function) : 0;
}

bool CallsLibrary(const schedule::Trace& trace) {
  return std::any_of(trace.instructions.begin(), trace.instructions.end(),
                     [](const schedule::Instruction& instruction) {
                       return instruction.primitive == "call_library";
                     });
}

}  // namespace

std::string_view JobStateName(JobState state) {
  return kStates[static_cast<int>(state)].second;
}

std::optional<JobState> ParseJobState(std::string_view name) {
  for (const auto& [state, text] : kStates) {
    if (text == name) return state;
  }
  return std::nullopt;
}

TaskSpec MakeTask(const ir::PrimFunc& function) {
  auto main = std::make_shared<ir::PrimFunc>(function);
  main->name = "main";
  // The exported symbol is the user's, not the task's.
  if (main->attrs.contains("global_symbol")) {
    main->attrs["global_symbol"] = "main";
  }
  return {.function = function.name,
          .workload_hash = ir::WorkloadHash(*main),
          .program = ir::Print(ir::IRModule{{main}}),
          .flops = cost_model::CountFlops(*main),
          .shape = ShapeOf(*main)};
}

std::string TaskId(const TaskSpec& task) {
  return search::TaskId(task.workload_hash, task.target);
}

std::string QueueName(const std::string& job_id, const JobSpec& spec,
                      size_t target) {
  return target == 0 ? job_id
                     : absl::StrCat(job_id, "/", spec.targets[target].key);
}

absl::StatusOr<ir::PrimFuncPtr> ParseTask(const TaskSpec& task) {
  return ir::ParseFunction(task.program, task.function);
}

std::string TaskProgram(const database::Store& store, const TaskSpec& task,
                        const std::string& target_key) {
  const auto function = ParseTask(task);
  const auto known = store.FindRecords(task.workload_hash, target_key);
  if (!function.ok() || !known.ok()) return task.program;
  for (const database::Record& record : *known) {
    const auto recorded = ir::ParseFunction(record.program, "<record>");
    if (recorded.ok() && ir::StructuralEqual(**recorded, **function)) {
      return record.program;
    }
  }
  return task.program;
}

absl::Status CheckNoLibraryMarks(const ir::PrimFunc& function) {
  if (ir::LibraryCallsIn(function.body).empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "function ", function.name,
      ": a block has the annotation \"tilefarm.library\"; a trace may call a "
      "library, a program may not"));
}

absl::Status ResolveJob(const database::Store& store, JobSpec& spec) {
  TF_RETURN_IF_ERROR(CheckBudget(spec));
  TF_RETURN_IF_ERROR(CheckChoice("model", spec.model, "xgboost", "random"));
  TF_RETURN_IF_ERROR(
      CheckChoice("search", spec.search, "evolutionary", "random"));
  TF_RETURN_IF_ERROR(CheckTargets(spec));
  if (spec.priority < farm::kLowestPriority ||
      spec.priority > farm::kHighestPriority) {
    return absl::InvalidArgumentError(
        absl::StrCat("priority: not between ", farm::kLowestPriority, " and ",
                     farm::kHighestPriority));
  }
  const std::string name =
      spec.program_name.empty() ? "<program>" : spec.program_name;
  TF_ASSIGN_OR_RETURN(const ir::IRModule module,
                      lower::ReadProgram(spec.program, name));
  if (module.functions.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": error: there is no function to tune"));
  }
  if (!spec.space_trace.empty()) {
    if (module.functions.size() != 1) {
      return absl::InvalidArgumentError(
          "space: a sketch by hand needs a program of exactly one function");
    }
    TF_ASSIGN_OR_RETURN(const schedule::Trace sketch,
                        schedule::Trace::Parse(spec.space_trace));
    if (sketch.instructions.empty()) {
      return absl::InvalidArgumentError("space: the trace is empty");
    }
    if (!spec.allow_library && CallsLibrary(sketch)) {
      return absl::InvalidArgumentError(
          "space: the sketch calls a library, which the job does not permit "
          "(--allow-library)");
    }
    if (FloatsOf(spec) != ir::FloatRule::kMayDiffer) {
      const absl::Status kept =
          schedule::Replay(sketch, module, spec.seed, FloatsOf(spec)).status();
      // A sketch that is illegal for other reasons too is the search's to
      // report: its decisions are not known here.
      if (!kept.ok() && schedule::Replay(sketch, module, spec.seed).ok()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "space: ",
            spec.strict_fp ? "the job keeps floats as written (--strict-fp): "
                           : "the job does without it (--no-winograd): ",
            kept.message()));
      }
    }
  }
  TF_RETURN_IF_ERROR(CheckWeights(spec, module));
  std::vector<TaskSpec> functions;
  std::map<std::string, size_t> seen;  // index by workload
  for (const ir::PrimFuncPtr& function : module.functions) {
    TF_RETURN_IF_ERROR(CheckNoLibraryMarks(*function));
    TaskSpec task = MakeTask(*function);
    const auto given = spec.weights.find(function->name);
    task.weight = given == spec.weights.end() ? 1 : given->second;
    const auto [at, is_new] =
        seen.emplace(task.workload_hash, functions.size());
    if (is_new) {
      functions.push_back(std::move(task));
    } else {
      functions[at->second].weight += task.weight;
    }
  }
  spec.weights.clear();
  spec.tasks.clear();
  for (const JobTarget& target : spec.targets) {
    for (TaskSpec task : functions) {
      task.target = target.key;
      // A hand-made sketch names the blocks of the user's own text.
      if (spec.space_trace.empty()) {
        task.program = TaskProgram(store, task, target.key);
      }
      spec.tasks.push_back(std::move(task));
    }
  }
  return absl::OkStatus();
}

database::JobRow JobToRow(const std::string& id, const JobSpec& spec) {
  // A job of one target is stored in the form of the first releases, which had
  // no other jobs.
  const JobTarget& first = spec.targets.front();
  Json tasks = Json::array();
  for (const TaskSpec& task : spec.tasks) {
    tasks.push_back({{"function", task.function},
                     {"workload_hash", task.workload_hash},
                     {"program", task.program},
                     {"flops", task.flops},
                     {"weight", task.weight},
                     {"shape", task.shape}});
    if (task.target != first.key) tasks.back()["target"] = task.target;
  }
  Json json = {
      {"program_name", spec.program_name},
      {"seconds", spec.seconds},
      {"patience", spec.patience},
      {"seed", spec.seed},
      {"model", spec.model},
      {"search", spec.search},
      {"space_trace", spec.space_trace},
      {"flush_cache", spec.flush_cache},
      {"allow_library", spec.allow_library},
      {"strict_fp", spec.strict_fp},
      {"no_winograd", spec.no_winograd},
      {"priority", spec.priority},
      {"requirements", spec.requirements},
      {"tasks", std::move(tasks)},
  };
  if (first.caches.has_value()) json["caches"] = CachesJson(*first.caches);
  for (size_t i = 1; i < spec.targets.size(); ++i) {
    Json one = {{"target", spec.targets[i].key}};
    if (spec.targets[i].caches.has_value()) {
      one["caches"] = CachesJson(*spec.targets[i].caches);
    }
    json["more_targets"].push_back(std::move(one));
  }
  database::JobRow row;
  row.id = id;
  row.request_id = absl::StrCat(spec.user, "\n", spec.request_id);
  row.state = std::string(JobStateName(JobState::kQueued));
  row.user = spec.user;
  row.program = spec.program;
  row.target = first.key;
  row.trials = spec.trials;
  row.spec_json = json.dump();
  return row;
}

absl::StatusOr<JobSpec> JobFromRow(const database::JobRow& row) {
  JobSpec spec;
  // Rows of the first releases have only the client's part of the request id.
  spec.request_id = row.request_id.substr(row.request_id.find('\n') + 1);
  spec.user = row.user;
  spec.program = row.program;
  spec.trials = row.trials;
  try {
    const Json json = ParseJson(row.spec_json);
    json.at("program_name").get_to(spec.program_name);
    json.at("seconds").get_to(spec.seconds);
    json.at("patience").get_to(spec.patience);
    json.at("seed").get_to(spec.seed);
    json.at("model").get_to(spec.model);
    json.at("search").get_to(spec.search);
    json.at("space_trace").get_to(spec.space_trace);
    json.at("flush_cache").get_to(spec.flush_cache);
    // Jobs of the first releases have no user.
    spec.allow_library = json.value("allow_library", false);
    spec.strict_fp = json.value("strict_fp", false);
    spec.no_winograd = json.value("no_winograd", false);
    spec.priority = json.value("priority", int64_t{0});
    spec.requirements = json.value("requirements", std::vector<std::string>());
    spec.targets.push_back({row.target, CachesIn(json)});
    for (const Json& one : json.value("more_targets", Json::array())) {
      spec.targets.push_back({one.at("target"), CachesIn(one)});
    }
    for (const Json& task : json.at("tasks")) {
      spec.tasks.push_back({.function = task.at("function"),
                            .target = task.value("target", row.target),
                            .workload_hash = task.at("workload_hash"),
                            .program = task.at("program"),
                            .flops = task.value("flops", -1.0),
                            .weight = task.value("weight", 1.0),
                            .shape = task.value("shape", "")});
      TaskSpec& read = spec.tasks.back();
      // Rows of earlier releases do not have it.
      if (read.flops < 0) read.flops = FlopsOf(read);
    }
  } catch (const Json::exception& error) {
    return absl::DataLossError(
        absl::StrCat("job ", row.id, ": damaged: ", error.what()));
  }
  return spec;
}

bool CountsAsBest(const database::Record& record,
                  const std::string& fingerprint) {
  return !record.stopped_early && MayCountAsBest(record, fingerprint);
}

bool MayCountAsBest(const database::Record& record,
                    const std::string& fingerprint) {
  return record.status == database::Status::kOk && record.verified &&
         record.median_seconds > 0 && record.fingerprint == fingerprint;
}

bool CountsAsBest(const database::Record& record,
                  const std::string& fingerprint, const JobSpec& spec) {
  return !record.stopped_early && MayCountAsBest(record, fingerprint, spec);
}

bool MayCountAsBest(const database::Record& record,
                    const std::string& fingerprint, const JobSpec& spec) {
  return MayCountAsBest(record, fingerprint) && MayUse(record, spec);
}

bool MayUse(const database::Record& record, const JobSpec& spec) {
  return (spec.allow_library || record.library().empty()) &&
         driver::Obeys(FloatsOf(spec), record.program, record.trace);
}

ir::FloatRule FloatsOf(const JobSpec& spec) {
  if (spec.strict_fp) return ir::FloatRule::kAsWritten;
  return spec.no_winograd ? ir::FloatRule::kNoWinograd
                          : ir::FloatRule::kMayDiffer;
}

double JobSnapshot::best_seconds() const {
  return SumOrNone(tasks, &TaskSnapshot::best_seconds);
}

double JobSnapshot::unscheduled_seconds() const {
  return SumOrNone(tasks, &TaskSnapshot::unscheduled_seconds);
}

double JobSnapshot::best_gflops() const {
  const double seconds = best_seconds();
  if (seconds <= 0) return 0;
  double flops = 0;
  for (const TaskSnapshot& task : tasks) flops += task.flops;
  return flops / seconds * 1e-9;
}

}  // namespace tilefarm::jobs
