// explain: where the time of a function goes, and what would make it faster.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/perf_counters.h"
#include "base/status_macros.h"
#include "compiler/driver/choose_schedule.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/machine_peaks.h"
#include "compiler/driver/remote_best.h"
#include "compiler/driver/run_function.h"
#include "compiler/ir/structural.h"
#include "compiler/target/target.h"
#include "cost_model/bottleneck.h"
#include "cost_model/features.h"
#include "cost_model/nest_table.h"
#include "database/layers.h"
#include "database/store.h"
#include "server/cli/commands.h"
#include "server/cli/exit_codes.h"
#include "server/cli/explain_report.h"
#include "server/cli/input.h"
#include "server/farm/device.h"

namespace tilefarm::cli {
namespace {

// Long enough for a steady median of functions below a second.
constexpr absl::Duration kRunTime = absl::Milliseconds(500);
// So that counters count little but the function.
constexpr absl::Duration kCountedTime = absl::Milliseconds(50);
constexpr int kMostCountedRuns = 100000;

absl::StatusOr<driver::ScheduledModule> Choose(const Common& common,
                                               const ExplainOptions& options,
                                               const ir::IRModule& module,
                                               const target::Target& target) {
  if (options.as_is) {
    driver::ScheduledModule result{module, {}};
    for (const ir::PrimFuncPtr& function : module.functions) {
      result.choices.push_back(
          {.function = function->name, .schedule = "as-is", .reason = "given"});
    }
    return result;
  }
  if (!options.trace.empty()) {
    TF_ASSIGN_OR_RETURN(const std::string trace, ReadTrace(options.trace));
    return driver::ScheduleByTrace(module, target, ir::FloatRule::kMayDiffer,
                                   trace);
  }
  const driver::Permissions permissions;
  if (options.by_default) {
    return driver::ScheduleByDefault(module, target, permissions.floats(),
                                     "as without a record");
  }
  if (options.dbs.empty()) {
    auto scheduled = driver::ScheduleFromRecords(
        module, target, driver::Fingerprint(), permissions,
        driver::BestOfServer(common.server));
    if (absl::IsUnavailable(scheduled.status())) {
      return absl::UnavailableError(absl::StrCat(
          std::string(scheduled.status().message()),
          "\n(without a server: --db FILE, --trace FILE, --default or "
          "--as-is)"));
    }
    return scheduled;
  }
  TF_ASSIGN_OR_RETURN(const database::Layers layers,
                      database::Layers::Open(options.dbs));
  return driver::ScheduleFromRecords(
      module, target, driver::Fingerprint(), permissions,
      [&](const database::BestQuery& query) { return layers.FindBest(query); });
}

// The best record but the chosen one, on the same target and device.
absl::StatusOr<RunnerUp> FindRunnerUp(const ExplainOptions& options,
                                      const ir::PrimFunc& function,
                                      const target::Target& target,
                                      const driver::Choice& best) {
  const database::Record* chosen = nullptr;
  std::vector<database::Record> records;
  for (const std::string& path : options.dbs) {
    if (!best.database.empty() && path != best.database) continue;
    TF_ASSIGN_OR_RETURN(
        const std::unique_ptr<database::Store> store,
        database::Store::Open(path, database::Store::Mode::kReadOnly));
    TF_ASSIGN_OR_RETURN(
        records, store->FindRecords(ir::WorkloadHash(function), target.Key()));
    for (const database::Record& record : records) {
      if (record.candidate_id == best.candidate_id) chosen = &record;
    }
    if (chosen != nullptr) break;
  }
  if (chosen == nullptr) {
    return absl::NotFoundError("the record is of another target");
  }
  const database::Record* next = nullptr;
  for (const database::Record& record : records) {
    if (record.status != database::Status::kOk || !record.verified ||
        record.stopped_early || record.candidate_id == best.candidate_id ||
        record.fingerprint != chosen->fingerprint ||
        record.device != chosen->device) {
      continue;
    }
    if (next == nullptr || record.median_seconds < next->median_seconds) {
      next = &record;
    }
  }
  if (next == nullptr) {
    return absl::NotFoundError("the database has no other record in full");
  }
  TF_ASSIGN_OR_RETURN(
      driver::TraceDiff diff,
      driver::CompareTraces(chosen->program, chosen->trace, next->trace));
  return RunnerUp{next->median_seconds, std::move(diff)};
}

// Runs the function, with counters where there are any.
absl::Status RunScheduled(const ir::PrimFunc& scheduled,
                          ExplainReport& report) {
  // Before the function starts its threads, which are counted as well.
  auto counters = PerfCounters::Open();
  TF_ASSIGN_OR_RETURN(driver::RunnableFunction function,
                      driver::RunnableFunction::Make(scheduled, report.target));
  TF_ASSIGN_OR_RETURN(const MedianInterval time,
                      driver::TimeFunction(function, kRunTime, Clock::Real()));
  report.run_seconds = time.median;
  if (!counters.ok()) {
    report.no_counts = std::string(counters.status().message());
    return absl::OkStatus();
  }
  const double wanted =
      absl::ToDoubleSeconds(kCountedTime) / std::max(time.median, 1e-9);
  const int runs =
      static_cast<int>(std::clamp(wanted, 1.0, double{kMostCountedRuns}));
  counters->Start();
  for (int i = 0; i < runs; ++i) TF_RETURN_IF_ERROR(function.Run());
  counters->Stop();
  report.counts = counters->Read();
  for (std::optional<double>* count :
       {&report.counts->cycles, &report.counts->instructions,
        &report.counts->branch_misses, &report.counts->l1_misses,
        &report.counts->cache_misses}) {
    if (*count) **count /= runs;
  }
  return absl::OkStatus();
}

double ParameterBytes(const ir::PrimFunc& function) {
  double bytes = 0;
  for (const ir::Buffer& parameter : function.params) {
    bytes += static_cast<double>(parameter->num_elements()) *
             parameter->dtype.bytes();
  }
  return bytes;
}

// `peaks`: of the target, where it is this machine.
absl::StatusOr<ExplainReport> ExplainFunction(
    const ExplainOptions& options, const ir::PrimFunc& function,
    const ir::PrimFunc& scheduled, const driver::Choice& choice,
    const target::Target& target,
    const std::optional<driver::MachinePeaks>& peaks) {
  ExplainReport report;
  report.function = function.name;
  report.target = target;
  report.schedule = choice.schedule;
  report.reason = choice.reason;
  report.algorithms = choice.algorithms;
  report.keeps_floats = choice.keeps_floats;
  report.flops = cost_model::CountFlops(function);
  report.parameter_bytes = ParameterBytes(function);
  report.record_seconds = choice.median_seconds;
  report.peaks = peaks;
  cost_model::NestNames names;
  const cost_model::LoopNest nest =
      cost_model::BuildLoopNest(scheduled, &names);
  const cost_model::CoreModel core =
      peaks ? driver::CoreOf(*peaks, target) : cost_model::CoreModel();
  report.model = cost_model::FindBottleneck(nest, target, core);
  report.nests = cost_model::NestTables(nest, names, target.caches);
  if (!peaks) {
    report.not_run = "the target is not this machine";
  } else if (options.no_run) {
    report.not_run = "--no-run";
  } else {
    TF_RETURN_IF_ERROR(RunScheduled(scheduled, report));
  }
  if (choice.schedule != "record") return report;
  if (options.dbs.empty()) {
    report.no_runner_up = "--db FILE compares with the next record";
    return report;
  }
  auto runner_up = FindRunnerUp(options, function, target, choice);
  if (runner_up.ok()) {
    report.runner_up = *std::move(runner_up);
  } else if (absl::IsNotFound(runner_up.status())) {
    report.no_runner_up = std::string(runner_up.status().message());
  } else {
    return runner_up.status();
  }
  return report;
}

// Where the target is this machine, its caches are, too.
absl::StatusOr<bool> IsHere(target::Target& target) {
  TF_ASSIGN_OR_RETURN(const target::Target host, target::Parse("host"));
  if (target.cpu != host.cpu || !farm::DeviceFits(host, target)) return false;
  if (!target.caches_known) {
    target.caches = host.caches;
    target.caches_known = true;
  }
  return true;
}

absl::StatusOr<std::vector<ExplainReport>> ExplainAll(
    const Common& common, const ExplainOptions& options) {
  TF_ASSIGN_OR_RETURN(const ProgramInput program, ReadProgram(options.program));
  TF_ASSIGN_OR_RETURN(target::Target target, target::Parse(options.target));
  if (target.is_gpu() || target.is_webassembly()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--target ", options.target,
        ": explanations are for processors, whose caches and units are "
        "modelled; tune best --print program shows what a GPU's schedule "
        "does"));
  }
  TF_ASSIGN_OR_RETURN(const bool is_here, IsHere(target));
  TF_ASSIGN_OR_RETURN(const driver::ScheduledModule scheduled,
                      Choose(common, options, program.module, target));
  std::optional<driver::MachinePeaks> peaks;
  if (is_here) {
    TF_ASSIGN_OR_RETURN(
        peaks, driver::CachedPeaks(driver::PeaksFolder(), target,
                                   options.measure_peaks, Clock::Real()));
  }
  std::vector<ExplainReport> reports;
  for (size_t i = 0; i < scheduled.choices.size(); ++i) {
    TF_ASSIGN_OR_RETURN(ExplainReport report,
                        ExplainFunction(options, *program.module.functions[i],
                                        *scheduled.module.functions[i],
                                        scheduled.choices[i], target, peaks));
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace

int Explain(const Common& common, const ExplainOptions& options) {
  const auto reports = ExplainAll(common, options);
  if (!reports.ok()) return Fail(reports.status());
  for (const ExplainReport& report : *reports) {
    std::printf("%s",
                common.json
                    ? absl::StrCat(ExplainJson(report).dump(), "\n").c_str()
                    : ExplainText(report).c_str());
  }
  return kSuccess;
}

}  // namespace tilefarm::cli
