// Commands of a suite that print Google Benchmark's JSON. One run of the
// baseline's command and one of the candidate's, in the order of a coin, are a
// cluster.
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/statistics.h"
#include "base/status_macros.h"
#include "compiler/target/host.h"
#include "server/cli/regress_benchmark.h"
#include "server/cli/regress_command_run.h"
#include "server/regression/paired_ratio.h"

namespace tilefarm::cli {
namespace {

using regression::Comparison;
using regression::ConfirmedTest;
using regression::SuiteBenchmark;

// Runs that only tell the times of new benchmarks.
constexpr int kRunsOfNew = 3;
std::string HostName() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

// What is known of one benchmark of the command.
struct Benchmark {
  explicit Benchmark(ConfirmedTest fresh) : test(std::move(fresh)) {}

  ConfirmedTest test;
  std::vector<double> baseline, candidate;  // medians of runs
  std::string note;                         // why it is not compared
  bool in_both = true;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CommandBenchmarks>> CommandBenchmarks::Create(
    const RegressOptions& options, const std::string& folder,
    const SuiteBenchmark& benchmark) {
  if (NamesDirectory(benchmark) && options.directory.empty()) {
    return absl::InvalidArgumentError(
        "its command has {dir}: name the candidate's build folder with --dir");
  }
  if (!NamesDirectory(benchmark) && !options.baseline_directory.empty()) {
    return absl::InvalidArgumentError(
        "--baseline-dir is given, but its command has no {dir}");
  }
  std::unique_ptr<CommandBenchmarks> made(
      new CommandBenchmarks(options, folder, benchmark));
  TF_ASSIGN_OR_RETURN(const CommandSamples samples,
                      RunBenchmarks(benchmark, folder, options.directory));
  for (const auto& [name, seconds] : samples) made->names_.push_back(name);
  if (made->names_.empty()) {
    return absl::InvalidArgumentError("its command ran no benchmark");
  }
  return made;
}

std::vector<MeasuredBenchmark> CommandBenchmarks::Measure(
    const RegressContext& context) {
  const bool compares = !options_.baseline_directory.empty();
  std::map<std::string, Benchmark> all;
  std::set<std::string> removed;
  absl::Status failed = absl::OkStatus();
  double threshold = benchmark_.threshold;
  double budget = 0;
  const auto prepare = [&]() -> absl::Status {
    if (!options_.threshold.empty()) {
      TF_ASSIGN_OR_RETURN(threshold,
                          regression::ParseThreshold(options_.threshold));
    }
    TF_ASSIGN_OR_RETURN(budget, BudgetOf(options_, benchmark_));
    regression::GateOptions gate = context.gate;
    gate.threshold = threshold;
    for (const std::string& name : names_) {
      TF_ASSIGN_OR_RETURN(ConfirmedTest test,
                          ConfirmedTest::Create(gate, context.benchmarks));
      all.emplace(name, Benchmark(std::move(test)));
    }
    return absl::OkStatus();
  };
  failed = prepare();

  // One run of each side; those that are settled run along.
  const uint64_t seed = FreshSeed();
  const auto take_cluster = [&](int64_t index) -> absl::Status {
    CommandSamples baseline, candidate;
    const bool candidate_first = regression::CandidateFirst(seed, index);
    for (const bool is_candidate : {candidate_first, !candidate_first}) {
      if (!is_candidate && !compares) continue;
      TF_ASSIGN_OR_RETURN(
          (is_candidate ? candidate : baseline),
          RunBenchmarks(
              benchmark_, folder_,
              is_candidate ? options_.directory : options_.baseline_directory));
    }
    for (const auto& [name, seconds] : baseline) {
      if (!all.contains(name)) removed.insert(name);
    }
    for (auto& [name, one] : all) {
      const auto after = candidate.find(name);
      if (after == candidate.end()) continue;
      one.candidate.push_back(MedianOf(after->second).median);
      const auto before = baseline.find(name);
      one.in_both = before != baseline.end();
      if (!one.in_both) continue;
      one.baseline.push_back(MedianOf(before->second).median);
      if (one.test.clusters_wanted() == 0) continue;
      const regression::Pair pair = {.baseline_seconds = one.baseline.back(),
                                     .candidate_seconds = one.candidate.back()};
      TF_ASSIGN_OR_RETURN(const double ratio,
                          regression::ClusterLogRatio({&pair, 1}));
      TF_RETURN_IF_ERROR(one.test.Add(ratio));
    }
    return absl::OkStatus();
  };
  const auto unsettled = [&] {
    return std::any_of(all.begin(), all.end(), [](const auto& one) {
      return one.second.in_both && one.second.test.clusters_wanted() > 0;
    });
  };
  const absl::Duration began = Clock::Real().Monotonic();
  const auto spent = [&] {
    return absl::ToDoubleSeconds(Clock::Real().Monotonic() - began);
  };
  for (int64_t run = 0;
       failed.ok() && (compares ? unsettled() : run < kRunsOfNew); ++run) {
    // Screening and confirmation have a budget each.
    if (run > 0 && spent() > 2 * budget) {
      for (auto& [name, one] : all) {
        one.test.Finish();
        one.test.Finish();
      }
      break;
    }
    failed = take_cluster(run);
    if (run % 8 == 7) {
      context.say(
          absl::StrCat(benchmark_.name, ": ", run + 1, " runs of each"));
    }
  }

  std::vector<MeasuredBenchmark> measured;
  for (const std::string& name : names_) {
    MeasuredBenchmark& one = measured.emplace_back();
    regression::BenchmarkResult& result = one.result;
    result.benchmark = absl::StrCat(benchmark_.name, "/", name);
    result.device_class = target::HostBrand();
    result.devices = {HostName()};
    result.threshold = threshold;
    if (!failed.ok()) {
      result.comparison = Comparison::kFailed;
      result.note = std::string(failed.message());
      continue;
    }
    const Benchmark& known = all.at(name);
    const MedianInterval seconds = MedianOf(known.candidate);
    result.candidate_seconds = seconds.median;
    result.device_seconds = spent() / static_cast<double>(names_.size());
    v1::HistoryPoint& point = one.point.emplace();
    point.set_series(context.series);
    point.set_benchmark(result.benchmark);
    point.set_device_class(result.device_class);
    point.set_branch(options_.branch);
    point.set_commit(options_.commit);
    point.set_device(result.devices.front());
    point.set_seconds(seconds.median);
    point.set_low_seconds(seconds.low);
    point.set_high_seconds(seconds.high);
    if (!compares || !known.in_both) {
      result.comparison = Comparison::kNew;
      if (!compares) {
        result.note = "not compared: its command has no --baseline-dir";
      }
      continue;
    }
    result.baseline_seconds = MedianOf(known.baseline).median;
    result.outcome = known.test.outcome();
    point.set_verdict(
        std::string(regression::VerdictName(result.outcome.verdict)));
    point.set_ratio(result.outcome.ratio.ratio);
    point.set_ratio_low(result.outcome.ratio.low);
    point.set_ratio_high(result.outcome.ratio.high);
    point.set_ratio_level(result.outcome.ratio.level);
    point.set_clusters(result.outcome.ratio.clusters);
  }
  for (const std::string& name : removed) {
    regression::BenchmarkResult& result = measured.emplace_back().result;
    result.benchmark = absl::StrCat(benchmark_.name, "/", name);
    result.device_class = target::HostBrand();
    result.threshold = threshold;
    result.comparison = Comparison::kRemoved;
  }
  return measured;
}

}  // namespace tilefarm::cli
