// Attribution of a change: old and new code generator, old and new schedule.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/driver/compile.h"
#include "compiler/target/target.h"
#include "server/cli/regress_benchmark.h"
#include "server/regression/attribution.h"
#include "server/regression/paired_ratio.h"

namespace tilefarm::cli {
namespace {

using regression::RatioInterval;

// Clusters of each cell, and the level of its interval. The change itself is
// settled already, so a part of half its size shows in as many.
constexpr int kClustersOfACell = 16;
constexpr double kLevel = 0.99;
// Points of the baseline's level that a device is compared with.
constexpr size_t kPointsOfDevice = 12;

class Cells {
 public:
  Cells(const RegressContext& context, const ComparedPair& pair,
        const std::string& device_class)
      : context_(context), pair_(pair), device_class_(device_class) {}

  // The baseline against this artifact.
  absl::StatusOr<RatioInterval> Measure(const BuiltArtifact& artifact) {
    TF_RETURN_IF_ERROR(context_.client.PutArtifact(
        artifact.bytes, artifact.sha256, artifact.target, artifact.symbols));
    ComparedPair pair = pair_;
    pair.candidate = {.sha256 = artifact.sha256,
                      .symbol = artifact.symbol,
                      .spread = artifact.spread};
    FarmClusters clusters(context_.client, pair, FreshSeed());
    TF_RETURN_IF_ERROR(clusters.ChooseDevice(device_class_));
    TF_ASSIGN_OR_RETURN(const std::vector<double> ratios,
                        clusters.Measure(kClustersOfACell));
    return regression::EstimateRatio(ratios, kLevel);
  }

 private:
  const RegressContext& context_;
  const ComparedPair& pair_;
  const std::string& device_class_;
};

// The device now against then: fixed artifacts.
void AddDevice(const v1::HistoryPoint& baseline, const ClusterTotals& totals,
               const std::vector<v1::HistoryPoint>& history,
               regression::AttributionCells& cells) {
  std::vector<double> canaries, seconds;
  for (auto point = history.rbegin();
       point != history.rend() && canaries.size() < kPointsOfDevice; ++point) {
    if (!totals.devices.contains(point->device())) continue;
    if (point->canary_seconds() > 0) {
      canaries.push_back(point->canary_seconds());
    }
    if (point->artifact() == baseline.artifact()) {
      seconds.push_back(point->seconds());
    }
  }
  cells.canary = regression::DriftRatio(canaries, totals.canary_seconds);
  cells.baseline_now = regression::DriftRatio(seconds, totals.baseline_seconds);
}

}  // namespace

regression::Attribution AttributeDevice(
    const v1::HistoryPoint& baseline, const regression::TestOutcome& outcome,
    const ClusterTotals& totals, const std::vector<v1::HistoryPoint>& history) {
  regression::AttributionCells cells;
  cells.unsettled = outcome.verdict != regression::Verdict::kSame;
  AddDevice(baseline, totals, history, cells);
  return regression::Attribute(cells);
}

absl::StatusOr<regression::Attribution> AttributeChange(
    const RegressContext& context, const v1::HistoryPoint& baseline,
    const BuiltArtifact& candidate, const ComparedPair& pair,
    const std::string& device_class, const regression::TestOutcome& outcome,
    const ClusterTotals& totals, const std::vector<v1::HistoryPoint>& history) {
  TF_ASSIGN_OR_RETURN(const target::Target target,
                      target::ParseKey(baseline.target()));
  regression::AttributionCells cells;
  cells.both = outcome.ratio;
  Cells measure(context, pair, device_class);
  // Default schedules are the compiler's choice, so they count as its part.
  cells.same_schedule = baseline.trace() == candidate.trace;

  // New code generator, old schedule. An old trace that this compiler cannot
  // replay leaves the cell empty.
  if (!cells.same_schedule) {
    const absl::StatusOr<BuiltArtifact> built =
        context.builder.BuildWith(baseline.program(), baseline.trace(), target);
    if (built.ok()) {
      cells.same_code = built->sha256 == baseline.artifact();
      if (!cells.same_code) {
        TF_ASSIGN_OR_RETURN(cells.code, measure.Measure(*built));
      }
    }
  }
  // Old code generator, new schedule: needs the old compiler, unless both
  // compilers make the same of the old schedule.
  if (!cells.same_code && !cells.same_schedule &&
      context.baseline_builder != nullptr) {
    const absl::StatusOr<BuiltArtifact> built =
        context.baseline_builder->BuildWith(candidate.program, candidate.trace,
                                            target);
    if (built.ok()) {
      TF_ASSIGN_OR_RETURN(cells.schedule, measure.Measure(*built));
    }
  }

  AddDevice(baseline, totals, history, cells);
  return regression::Attribute(cells);
}

}  // namespace tilefarm::cli
