// run, gate.
#include "server/cli/regress_run.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "server/cli/exit_codes.h"
#include "server/cli/regress_benchmark.h"
#include "server/cli/regress_output.h"
#include "server/farm/random_id.h"

namespace tilefarm::cli {
namespace {

using regression::SuiteBenchmark;

// Keeps the benchmarks that were asked for. InvalidArgument: there is no such.
absl::Status KeepOnly(const std::vector<std::string>& names,
                      regression::Suite& suite) {
  if (names.empty()) return absl::OkStatus();
  for (const std::string& name : names) {
    if (std::none_of(suite.benchmarks.begin(), suite.benchmarks.end(),
                     [&](const auto& one) { return one.name == name; })) {
      return absl::InvalidArgumentError(
          absl::StrCat("--only ", name, ": the suite has no such benchmark"));
    }
  }
  std::erase_if(suite.benchmarks, [&](const SuiteBenchmark& one) {
    return std::find(names.begin(), names.end(), one.name) == names.end();
  });
  return absl::OkStatus();
}

std::string Absolute(const std::string& path) {
  if (path.empty()) return path;
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(path, error).string();
  return error ? path : absolute;
}

MeasuredBenchmark Failed(const SuiteBenchmark& benchmark,
                         const absl::Status& why) {
  MeasuredBenchmark failed;
  failed.result.benchmark = benchmark.name;
  failed.result.threshold = benchmark.threshold;
  failed.result.comparison = regression::Comparison::kFailed;
  failed.result.note = std::string(why.message());
  return failed;
}

// A whole run.
class SuiteRunner {
 public:
  SuiteRunner(const Common& common, const RegressOptions& options,
              const SuiteRun& run, regression::Suite suite)
      : run_(run),
        options_(options),
        suite_(std::move(suite)),
        client_(common.server, Say),
        builder_(common.server, options.tunec),
        baseline_builder_(common.server, options.baseline_tunec) {}

  regression::Report Run() {
    regression::Report report;
    report.suite = suite_.name;
    report.baseline = run_.baseline_branch;
    report.candidate = options_.commit;
    report.branch = options_.branch;
    report.at = absl::Now();
    report.options = GateOf(options_);
    report.link = options_.reports.link;
    RegressContext context = {
        .options = options_,
        .series = options_.series.empty() ? suite_.name : options_.series,
        .baseline_branch = run_.baseline_branch,
        .gate = report.options,
        .skips_same = run_.skips_same,
        .client = client_,
        .builder = builder_,
        .baseline_builder =
            options_.baseline_tunec.empty() ? nullptr : &baseline_builder_,
        .say = Say};
    PrepareCommands();
    context.benchmarks = std::max(1, count_);
    for (const SuiteBenchmark& benchmark : suite_.benchmarks) {
      std::vector<MeasuredBenchmark> measured = Measure(context, benchmark);
      for (MeasuredBenchmark& one : measured) {
        if (one.point.has_value()) *points_.add_points() = *one.point;
        report.results.push_back(std::move(one.result));
      }
    }
    if (run_.appends && points_.points_size() > 0) Append(report);
    return report;
  }

 private:
  // Runs every command once, because all benchmarks share the error rates.
  void PrepareCommands() {
    for (const SuiteBenchmark& benchmark : suite_.benchmarks) {
      if (benchmark.kind != SuiteBenchmark::Kind::kCommand) {
        ++count_;
        continue;
      }
      auto made = CommandBenchmarks::Create(options_, suite_.folder, benchmark);
      count_ += made.ok() ? (*made)->count() : 1;
      commands_.emplace(benchmark.name, std::move(made));
    }
  }

  std::vector<MeasuredBenchmark> Measure(const RegressContext& context,
                                         const SuiteBenchmark& benchmark) {
    std::vector<MeasuredBenchmark> measured;
    if (benchmark.kind == SuiteBenchmark::Kind::kCommand) {
      auto& command = commands_.at(benchmark.name);
      if (command.ok()) return (*command)->Measure(context);
      measured.push_back(Failed(benchmark, command.status()));
    } else {
      measured.push_back(MeasureProgram(context, benchmark));
    }
    return measured;
  }

  void Append(regression::Report& report) {
    points_.set_request_id(farm::RandomId(128));
    const absl::Status appended = client_.AppendPoints(points_);
    if (appended.ok()) return;
    for (regression::BenchmarkResult& result : report.results) {
      // A regression that was found stands.
      if (result.regressed()) continue;
      result.comparison = regression::Comparison::kFailed;
      result.note = absl::StrCat("its point is not stored: ",
                                 std::string(appended.message()));
    }
  }

  const SuiteRun& run_;
  const RegressOptions& options_;
  const regression::Suite suite_;
  RegressClient client_;
  const ArtifactBuilder builder_, baseline_builder_;
  std::map<std::string, absl::StatusOr<std::unique_ptr<CommandBenchmarks>>>
      commands_;
  int count_ = 0;  // of benchmarks, those of commands included
  v1::AppendPointsRequest points_;
};

absl::Status CheckOptions(const RegressOptions& options) {
  if (!options.threshold.empty()) {
    TF_RETURN_IF_ERROR(regression::ParseThreshold(options.threshold).status());
  }
  if (!options.webhook.secret_file.empty()) {
    TF_RETURN_IF_ERROR(ReadWebhookSecret(options.webhook.secret_file).status());
  }
  return absl::OkStatus();
}

int Usage(const absl::Status& status) {
  Say(std::string(status.message()));
  return kBadUsage;
}

}  // namespace

void Say(const std::string& line) {
  std::fprintf(stderr, "tune: %s\n", line.c_str());
}

regression::GateOptions GateOf(const RegressOptions& options) {
  regression::GateOptions gate;
  gate.most_clusters = options.most_clusters;
  return gate;
}

absl::StatusOr<regression::Report> RunSuite(const Common& common,
                                            const RegressOptions& options,
                                            const SuiteRun& run) {
  TF_RETURN_IF_ERROR(CheckOptions(options));
  TF_ASSIGN_OR_RETURN(regression::Suite suite,
                      regression::ReadSuite(options.suite));
  TF_RETURN_IF_ERROR(KeepOnly(options.only, suite));
  RegressOptions absolute = options;
  absolute.directory = Absolute(options.directory);
  absolute.baseline_directory = Absolute(options.baseline_directory);
  return SuiteRunner(common, absolute, run, std::move(suite)).Run();
}

int Conclude(const Common& common, const RegressOptions& options,
             const regression::Report& report, int exit_code) {
  const absl::Status written = WriteReports(report, options.reports);
  if (!written.ok()) {
    Say(std::string(written.message()));
    // A regression stays one.
    if (exit_code == regression::kGatePassed) {
      exit_code = regression::kGateNoVerdict;
    }
  }
  if (common.json) {
    std::printf("%s\n", regression::ReportJson(report).dump().c_str());
  } else {
    std::printf("%s", ReportText(report).c_str());
  }
  std::fflush(stdout);
  // The verdict does not depend on it.
  const absl::Status told = Notify(report, options.webhook);
  if (!told.ok()) Say(std::string(told.message()));
  return exit_code;
}

int RegressRun(const Common& common, const RegressOptions& given) {
  RegressOptions options = given;
  if (options.branch.empty()) options.branch = kDefaultBranch;
  const std::string baseline =
      options.baseline.empty() ? options.branch : options.baseline;
  const auto report = RunSuite(common, options, {.baseline_branch = baseline});
  if (!report.ok()) return Usage(report.status());
  // A first run compares nothing, and is fine.
  int code = ExitCodeOf(report->gate());
  const bool only_new = std::all_of(
      report->results.begin(), report->results.end(), [](const auto& one) {
        return one.comparison == regression::Comparison::kNew;
      });
  if (only_new && !report->results.empty()) code = regression::kGatePassed;
  return Conclude(common, options, *report, code);
}

int RegressGate(const Common& common, const RegressOptions& options) {
  const auto report = RunSuite(common, options,
                               {.baseline_branch = options.baseline,
                                .appends = !options.branch.empty(),
                                .skips_same = true});
  if (!report.ok()) return Usage(report.status());
  return Conclude(common, options, *report, ExitCodeOf(report->gate()));
}

}  // namespace tilefarm::cli
