// Programs of a suite: built, stored, and compared on the farm.
#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/statistics.h"
#include "base/status_macros.h"
#include "server/cli/input.h"
#include "server/cli/regress_benchmark.h"
#include "server/cli/regress_history.h"
#include "server/cli/regress_model.h"

namespace tilefarm::cli {
namespace {

using regression::BenchmarkResult;
using regression::Comparison;
using regression::ConfirmedTest;
using regression::SuiteBenchmark;
using regression::TestOutcome;

// Points of a history that decide about the baseline.
constexpr int64_t kLatestPoints = 200;
// Clusters that only tell the time of a new benchmark.
constexpr int kClustersOfNew = 4;
// Clusters between two looks at the budget.
constexpr int kMostAtOnce = 8;

double MedianSeconds(const std::vector<double>& seconds) {
  return MedianOf(seconds).median;
}

v1::HistoryPoint PointOf(const RegressContext& context,
                         const BuiltArtifact& artifact,
                         const BenchmarkResult& result,
                         const ClusterTotals& totals) {
  v1::HistoryPoint point;
  point.set_series(context.series);
  point.set_benchmark(result.benchmark);
  point.set_device_class(result.device_class);
  point.set_branch(context.options.branch);
  point.set_commit(context.options.commit);
  if (!result.devices.empty()) point.set_device(result.devices.front());
  const MedianInterval seconds = MedianOf(totals.candidate_seconds);
  point.set_seconds(seconds.median);
  point.set_low_seconds(seconds.low);
  point.set_high_seconds(seconds.high);
  point.set_canary_seconds(MedianSeconds(totals.canary_seconds));
  point.set_unsteady(totals.unsteady);
  point.set_artifact(artifact.sha256);
  point.set_symbol(artifact.symbol);
  point.set_spread(artifact.spread);
  point.set_target(artifact.target);
  point.set_program(artifact.program);
  point.set_trace(artifact.trace);
  point.set_workload(artifact.workload);
  point.set_fingerprint(artifact.fingerprint);
  return point;
}

void NoteRatio(const TestOutcome& outcome, const std::string& baseline_commit,
               v1::HistoryPoint& point) {
  point.set_verdict(std::string(regression::VerdictName(outcome.verdict)));
  point.set_baseline_commit(baseline_commit);
  point.set_ratio(outcome.ratio.ratio);
  point.set_ratio_low(outcome.ratio.low);
  point.set_ratio_high(outcome.ratio.high);
  point.set_ratio_level(outcome.ratio.level);
  point.set_clusters(outcome.ratio.clusters);
}

// One benchmark, step by step.
class ProgramBenchmark {
 public:
  ProgramBenchmark(const RegressContext& context,
                   const SuiteBenchmark& benchmark)
      : context_(context), benchmark_(benchmark) {
    result_.benchmark = benchmark.name;
  }

  absl::Status Measure() {
    TF_ASSIGN_OR_RETURN(result_.threshold, Threshold());
    TF_ASSIGN_OR_RETURN(budget_, BudgetOf(context_.options, benchmark_));
    TF_ASSIGN_OR_RETURN(artifact_, context_.builder.Build(benchmark_));
    TF_RETURN_IF_ERROR(
        context_.client.PutArtifact(artifact_.bytes, artifact_.sha256,
                                    artifact_.target, artifact_.symbols));
    const ComparedPair::Side side = {.sha256 = artifact_.sha256,
                                     .symbol = artifact_.symbol,
                                     .spread = artifact_.spread};
    pair_ = {.program = artifact_.program,
             .target = artifact_.target,
             .baseline = side,
             .candidate = side,
             .requirements = benchmark_.require};
    // A class that has a baseline comes before one that has none.
    TF_ASSIGN_OR_RETURN(
        const std::vector<std::string> classes,
        FarmClusters(context_.client, pair_, FreshSeed()).DeviceClasses());
    for (const std::string& device_class : classes) {
      result_.device_class = device_class;
      TF_RETURN_IF_ERROR(FindBaseline());
      if (baseline_.has_value()) break;
    }
    if (!baseline_.has_value()) result_.device_class = classes.front();
    if (!baseline_.has_value()) {
      result_.comparison = Comparison::kNew;
      return MeasureAlone().status();
    }
    pair_.baseline = {.sha256 = baseline_->artifact(),
                      .symbol = baseline_->symbol(),
                      .spread = baseline_->spread()};
    if (baseline_->artifact() == artifact_.sha256) return TakeUnchanged();
    return Compare();
  }

  MeasuredBenchmark Take(const absl::Status& status) {
    if (!status.ok()) {
      result_.comparison = Comparison::kFailed;
      result_.note = std::string(status.message());
      point_.reset();
    }
    return {.result = std::move(result_), .point = std::move(point_)};
  }

 private:
  absl::StatusOr<double> Threshold() const {
    return context_.options.threshold.empty()
               ? absl::StatusOr<double>(benchmark_.threshold)
               : regression::ParseThreshold(context_.options.threshold);
  }

  absl::Status FindBaseline() {
    v1::ReadHistoryRequest request;
    request.set_series(context_.series);
    request.set_benchmark(benchmark_.name);
    request.set_device_class(result_.device_class);
    request.set_branch(context_.baseline_branch);
    request.set_latest(kLatestPoints);
    request.set_texts(true);
    TF_ASSIGN_OR_RETURN(const History history,
                        context_.client.ReadHistory(request));
    for (const auto& [key, series] : SplitSeries(history)) {
      TF_ASSIGN_OR_RETURN(const v1::HistoryPoint* point,
                          BaselineOf(series, result_.threshold));
      if (point == nullptr) continue;
      if (point->workload() != artifact_.workload) {
        result_.note = absl::StrCat(
            "its program computes something else than at ", point->commit());
        continue;
      }
      baseline_ = *point;
      history_ = series.points;
    }
    return absl::OkStatus();
  }

  // Tells the time of an artifact that has nothing to be compared with.
  absl::StatusOr<ClusterTotals> MeasureAlone() {
    ComparedPair pair = pair_;
    pair.baseline = pair.candidate;
    FarmClusters clusters(context_.client, pair, FreshSeed());
    TF_RETURN_IF_ERROR(clusters.ChooseDevice(result_.device_class));
    TF_RETURN_IF_ERROR(clusters.Measure(kClustersOfNew).status());
    TakeTotals(clusters.totals());
    result_.baseline_seconds = 0;
    point_ = PointOf(context_, artifact_, result_, clusters.totals());
    return clusters.totals();
  }

  // The bytes are the baseline's.
  absl::Status TakeUnchanged() {
    TestOutcome& outcome = result_.outcome;
    outcome.verdict = regression::Verdict::kSame;
    outcome.ratio = {.ratio = 1, .low = 1, .high = 1, .level = 1};
    result_.note =
        absl::StrCat("the artifact is that of ", baseline_->commit());
    result_.baseline_seconds = result_.candidate_seconds = baseline_->seconds();
    if (context_.skips_same) {
      v1::HistoryPoint point = *baseline_;
      point.clear_id();
      point.clear_at();
      point.set_branch(context_.options.branch);
      point.set_commit(context_.options.commit);
      NoteRatio(outcome, baseline_->commit(), point);
      point_ = std::move(point);
      return absl::OkStatus();
    }
    TF_ASSIGN_OR_RETURN(const ClusterTotals totals, MeasureAlone());
    result_.baseline_seconds = result_.candidate_seconds;
    NoteDevice(totals);
    NoteRatio(outcome, baseline_->commit(), *point_);
    return absl::OkStatus();
  }

  absl::Status Compare() {
    regression::GateOptions gate = context_.gate;
    gate.threshold = result_.threshold;
    context_.say(absl::StrCat(benchmark_.name, ": against ",
                              baseline_->commit().substr(0, 12), " on ",
                              result_.device_class));
    ClusterTotals totals;
    const absl::StatusOr<TestOutcome> outcome =
        SettleOnFarm(context_.client, pair_, result_.device_class, gate,
                     context_.benchmarks, budget_, totals);
    TakeTotals(totals);
    if (absl::IsNotFound(outcome.status())) {
      return absl::NotFoundError(absl::StrCat(
          "the artifact of the baseline ", baseline_->commit(),
          " is no longer stored; measure that commit again with `tune regress "
          "run`"));
    }
    TF_RETURN_IF_ERROR(outcome.status());
    result_.outcome = *outcome;
    point_ = PointOf(context_, artifact_, result_, totals);
    NoteRatio(*outcome, baseline_->commit(), *point_);
    const bool changed = outcome->verdict == regression::Verdict::kSlower ||
                         outcome->verdict == regression::Verdict::kFaster;
    if (!changed) NoteDevice(totals);
    if (!changed || context_.options.no_attribution ||
        IsSignature(artifact_.program)) {
      return absl::OkStatus();
    }
    const auto attribution =
        AttributeChange(context_, *baseline_, artifact_, pair_,
                        result_.device_class, *outcome, totals, history_);
    // The verdict stands without it.
    if (attribution.ok()) {
      result_.attribution = *attribution;
    } else {
      context_.say(absl::StrCat(benchmark_.name, ": its cause is unknown: ",
                                std::string(attribution.status().message())));
    }
    return absl::OkStatus();
  }

  // What a comparison within the same minutes cannot show.
  void NoteDevice(const ClusterTotals& totals) {
    if (context_.options.no_attribution) return;
    regression::Attribution device =
        AttributeDevice(*baseline_, result_.outcome, totals, history_);
    if (!device.causes.empty()) result_.attribution = std::move(device);
  }

  void TakeTotals(const ClusterTotals& totals) {
    result_.devices.assign(totals.devices.begin(), totals.devices.end());
    result_.baseline_seconds = MedianSeconds(totals.baseline_seconds);
    result_.candidate_seconds = MedianSeconds(totals.candidate_seconds);
    result_.device_seconds = totals.device_seconds;
  }

  const RegressContext& context_;
  const SuiteBenchmark& benchmark_;
  double budget_ = 0;
  BuiltArtifact artifact_;
  ComparedPair pair_;
  std::optional<v1::HistoryPoint> baseline_;
  std::vector<v1::HistoryPoint> history_;  // of the baseline's series
  BenchmarkResult result_;
  std::optional<v1::HistoryPoint> point_;
};

void AddTotals(const ClusterTotals& more, ClusterTotals& totals) {
  const auto append = [](const std::vector<double>& from,
                         std::vector<double>& to) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(more.baseline_seconds, totals.baseline_seconds);
  append(more.candidate_seconds, totals.candidate_seconds);
  append(more.canary_seconds, totals.canary_seconds);
  totals.devices.insert(more.devices.begin(), more.devices.end());
  totals.unsteady |= more.unsteady;
  totals.device_seconds += more.device_seconds;
}

// Measures the test's current phase to its end.
absl::Status SettlePhase(FarmClusters& clusters, double budget_seconds,
                         ConfirmedTest& test) {
  const ConfirmedTest::Phase phase = test.phase();
  while (test.phase() == phase && test.clusters_wanted() > 0) {
    if (clusters.totals().device_seconds >= budget_seconds) {
      test.Finish();
      return absl::OkStatus();
    }
    TF_ASSIGN_OR_RETURN(
        const std::vector<double> ratios,
        clusters.Measure(std::min(test.clusters_wanted(), kMostAtOnce)));
    for (const double ratio : ratios) TF_RETURN_IF_ERROR(test.Add(ratio));
  }
  return absl::OkStatus();
}

}  // namespace

uint64_t FreshSeed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

absl::StatusOr<double> BudgetOf(const RegressOptions& options,
                                const SuiteBenchmark& benchmark) {
  if (!options.budget.empty()) return ParseSeconds(options.budget);
  return absl::ToDoubleSeconds(benchmark.budget);
}

absl::StatusOr<TestOutcome> SettleOnFarm(RegressClient& client,
                                         const ComparedPair& pair,
                                         const std::string& device_class,
                                         const regression::GateOptions& gate,
                                         int benchmarks, double budget_seconds,
                                         ClusterTotals& totals) {
  TF_ASSIGN_OR_RETURN(ConfirmedTest test,
                      ConfirmedTest::Create(gate, benchmarks));
  std::string screened_on;
  while (test.phase() != ConfirmedTest::Phase::kSettled) {
    FarmClusters clusters(client, pair, FreshSeed());
    TF_RETURN_IF_ERROR(clusters.ChooseDevice(device_class));
    // A suspect is confirmed elsewhere.
    if (clusters.device() == screened_on) {
      TF_RETURN_IF_ERROR(clusters.ChooseAnotherDevice().status());
    }
    screened_on = clusters.device();
    const absl::Status settled = SettlePhase(clusters, budget_seconds, test);
    AddTotals(clusters.totals(), totals);
    TF_RETURN_IF_ERROR(settled);
  }
  return test.outcome();
}

MeasuredBenchmark MeasureProgram(const RegressContext& context,
                                 const SuiteBenchmark& benchmark) {
  ProgramBenchmark measured(context, benchmark);
  const absl::Status status = measured.Measure();
  return measured.Take(status);
}

}  // namespace tilefarm::cli
