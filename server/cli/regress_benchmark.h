// Measures one benchmark of a suite against its baseline.
#ifndef TILEFARM_SERVER_CLI_REGRESS_BENCHMARK_H_
#define TILEFARM_SERVER_CLI_REGRESS_BENCHMARK_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/cli/regress_build.h"
#include "server/cli/regress_client.h"
#include "server/cli/regress_clusters.h"
#include "server/cli/regress_options.h"
#include "server/regression/suite.h"
#include "server/regression/verdict.h"

namespace tilefarm::cli {

// What all benchmarks of a run share.
struct RegressContext {
  const RegressOptions& options;
  std::string series;
  std::string baseline_branch;
  regression::GateOptions gate;  // without the threshold
  int benchmarks = 1;            // that are judged together
  bool skips_same = false;       // an unchanged artifact is not measured
  RegressClient& client;
  const ArtifactBuilder& builder;
  const ArtifactBuilder* baseline_builder = nullptr;  // --baseline-tunec
  // A line of progress, for people.
  std::function<void(const std::string&)> say;
};

// A result, and the point for the history where it was measured.
struct MeasuredBenchmark {
  regression::BenchmarkResult result;
  std::optional<v1::HistoryPoint> point;
};

// A program of the suite. Never fails: what goes wrong is in the result.
MeasuredBenchmark MeasureProgram(const RegressContext& context,
                                 const regression::SuiteBenchmark& benchmark);

// The device time of a benchmark.
absl::StatusOr<double> BudgetOf(const RegressOptions& options,
                                const regression::SuiteBenchmark& benchmark);

// Measures the pair until the test has settled or the budget of a phase is
// spent. A suspect is confirmed on another device of the class, where there is
// one. `totals` gets what all clusters have shown. Errors of
// FarmClusters::Measure.
absl::StatusOr<regression::TestOutcome> SettleOnFarm(
    RegressClient& client, const ComparedPair& pair,
    const std::string& device_class, const regression::GateOptions& gate,
    int benchmarks, double budget_seconds, ClusterTotals& totals);

// Why the benchmark's time changed (server/regression/attribution.h): measures
// the baseline against what this compiler makes of the old schedule, and the
// baseline's compiler, if it is at hand, of the new one. `history`: of the
// baseline's series.
absl::StatusOr<regression::Attribution> AttributeChange(
    const RegressContext& context, const v1::HistoryPoint& baseline,
    const BuiltArtifact& candidate, const ComparedPair& pair,
    const std::string& device_class, const regression::TestOutcome& outcome,
    const ClusterTotals& totals, const std::vector<v1::HistoryPoint>& history);

// Where no change was found: whether the device moved since the baseline was
// measured. Without causes, where it did not or that is unknown.
regression::Attribution AttributeDevice(
    const v1::HistoryPoint& baseline, const regression::TestOutcome& outcome,
    const ClusterTotals& totals, const std::vector<v1::HistoryPoint>& history);

// The commands of a suite print Google Benchmark's JSON; each of their
// benchmarks is one result. They run on this machine, alternately with those of
// the baseline's folder.
class CommandBenchmarks {
 public:
  // Runs the command once, to see which benchmarks it has. InvalidArgument,
  // Aborted, NotFound: it prints no such JSON, fails, or is not there.
  // `folder`: where it runs. The options and the benchmark outlive it.
  static absl::StatusOr<std::unique_ptr<CommandBenchmarks>> Create(
      const RegressOptions& options, const std::string& folder,
      const regression::SuiteBenchmark& benchmark);
  int count() const { return static_cast<int>(names_.size()); }
  std::vector<MeasuredBenchmark> Measure(const RegressContext& context);

 private:
  CommandBenchmarks(const RegressOptions& options, std::string folder,
                    const regression::SuiteBenchmark& benchmark)
      : options_(options), folder_(std::move(folder)), benchmark_(benchmark) {}

  const RegressOptions& options_;
  const std::string folder_;
  const regression::SuiteBenchmark& benchmark_;
  std::vector<std::string> names_;
};

// A seed for the coins of one comparison.
uint64_t FreshSeed();

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_REGRESS_BENCHMARK_H_
