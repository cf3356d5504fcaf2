// compare: two commits whose artifacts are stored.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/statistics.h"
#include "base/status_macros.h"
#include "server/cli/exit_codes.h"
#include "server/cli/regress_benchmark.h"
#include "server/cli/regress_run.h"

namespace tilefarm::cli {
namespace {

using regression::BenchmarkResult;
using regression::Comparison;

// Benchmark and device class.
using Key = std::pair<std::string, std::string>;
using Points = std::map<Key, v1::HistoryPoint>;

// The newest point of each benchmark at the commit, on any branch.
absl::StatusOr<Points> PointsOf(RegressClient& client,
                                const RegressOptions& options,
                                const std::string& commit) {
  v1::ReadHistoryRequest request;
  request.set_series(options.series);
  request.set_commit(commit);
  request.set_texts(true);
  TF_ASSIGN_OR_RETURN(const History history, client.ReadHistory(request));
  Points points;
  for (const v1::HistoryPoint& point : history.points) {
    const bool wanted = options.only.empty() ||
                        std::find(options.only.begin(), options.only.end(),
                                  point.benchmark()) != options.only.end();
    if (wanted) points[{point.benchmark(), point.device_class()}] = point;
  }
  if (points.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "nothing was measured at the commit ", commit,
        options.series.empty() ? ""
                               : absl::StrCat(" in series ", options.series)));
  }
  return points;
}

absl::Status ComparePoints(RegressClient& client, const RegressOptions& options,
                           int benchmarks, const v1::HistoryPoint& before,
                           const v1::HistoryPoint& after,
                           BenchmarkResult& result) {
  if (before.artifact().empty() || after.artifact().empty()) {
    return absl::FailedPreconditionError(
        "it is a command, which has no stored artifact: compare it with "
        "`tune regress gate --dir --baseline-dir`");
  }
  if (before.workload() != after.workload() ||
      before.target() != after.target()) {
    result.comparison = Comparison::kNew;
    result.note = "its program or target has changed";
    return absl::OkStatus();
  }
  const auto side = [](const v1::HistoryPoint& point) {
    return ComparedPair::Side{.sha256 = point.artifact(),
                              .symbol = point.symbol(),
                              .spread = point.spread()};
  };
  const ComparedPair pair = {.program = after.program(),
                             .target = after.target(),
                             .baseline = side(before),
                             .candidate = side(after),
                             .requirements = {}};
  if (pair.baseline.sha256 == pair.candidate.sha256) {
    result.outcome.verdict = regression::Verdict::kSame;
    result.outcome.ratio = {.ratio = 1, .low = 1, .high = 1, .level = 1};
    result.note = "both artifacts are the same";
    return absl::OkStatus();
  }
  double budget = 30;
  if (!options.budget.empty()) {
    TF_ASSIGN_OR_RETURN(budget, BudgetOf(options, {}));
  }
  regression::GateOptions gate = GateOf(options);
  gate.threshold = result.threshold;
  Say(absl::StrCat(result.benchmark, " on ", result.device_class));
  ClusterTotals totals;
  const auto outcome = SettleOnFarm(client, pair, result.device_class, gate,
                                    benchmarks, budget, totals);
  result.devices.assign(totals.devices.begin(), totals.devices.end());
  result.baseline_seconds = MedianOf(totals.baseline_seconds).median;
  result.candidate_seconds = MedianOf(totals.candidate_seconds).median;
  result.device_seconds = totals.device_seconds;
  TF_RETURN_IF_ERROR(outcome.status());
  result.outcome = *outcome;
  return absl::OkStatus();
}

absl::StatusOr<regression::Report> CompareCommits(
    const Common& common, const RegressOptions& options) {
  RegressClient client(common.server, Say);
  double threshold = 0.03;
  if (!options.threshold.empty()) {
    TF_ASSIGN_OR_RETURN(threshold,
                        regression::ParseThreshold(options.threshold));
  }
  TF_ASSIGN_OR_RETURN(const Points before,
                      PointsOf(client, options, options.commit));
  TF_ASSIGN_OR_RETURN(const Points after,
                      PointsOf(client, options, options.other_commit));
  std::set<Key> keys;
  int in_both = 0;
  for (const auto& [key, point] : before) keys.insert(key);
  for (const auto& [key, point] : after) {
    in_both += keys.insert(key).second ? 0 : 1;
  }
  regression::Report report;
  report.suite = options.series;
  report.baseline = options.commit;
  report.candidate = options.other_commit;
  report.at = absl::Now();
  report.options = GateOf(options);
  report.link = options.reports.link;
  for (const Key& key : keys) {
    BenchmarkResult& result = report.results.emplace_back();
    result.benchmark = key.first;
    result.device_class = key.second;
    result.threshold = threshold;
    const auto a = before.find(key), b = after.find(key);
    if (a == before.end()) {
      result.comparison = Comparison::kNew;
    } else if (b == after.end()) {
      result.comparison = Comparison::kRemoved;
    } else {
      const absl::Status compared = ComparePoints(
          client, options, std::max(1, in_both), a->second, b->second, result);
      if (compared.ok()) continue;
      result.comparison = Comparison::kFailed;
      result.note = std::string(compared.message());
    }
  }
  return report;
}

}  // namespace

int RegressCompare(const Common& common, const RegressOptions& options) {
  const auto report = CompareCommits(common, options);
  if (!report.ok()) {
    Say(std::string(report.status().message()));
    return absl::IsInvalidArgument(report.status())
               ? kBadUsage
               : regression::kGateNoVerdict;
  }
  return Conclude(common, options, *report, ExitCodeOf(report->gate()));
}

}  // namespace tilefarm::cli
