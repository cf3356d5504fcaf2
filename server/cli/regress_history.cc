#include "server/cli/regress_history.h"

#include "absl/time/time.h"
#include "base/status_macros.h"
#include "server/regression/sequential_test.h"

namespace tilefarm::cli {
namespace {

absl::Time ToTime(const std::string& text) {
  absl::Time time = absl::UnixEpoch();
  absl::ParseTime(absl::RFC3339_full, text, &time, nullptr);
  return time;
}

// Whether the point was found to be slower than a point of the level that
// begins at `first`. A level of few points has no change point yet.
bool IsOpenRegression(const SeriesHistory& series, size_t index, size_t first) {
  const v1::HistoryPoint& point = series.points[index];
  if (point.verdict() !=
      regression::VerdictName(regression::Verdict::kSlower)) {
    return false;
  }
  for (size_t i = index; i > first; --i) {
    if (series.points[i - 1].commit() == point.baseline_commit()) return true;
  }
  return false;
}

}  // namespace

regression::HistoryPoint ToPoint(const v1::HistoryPoint& point) {
  return {.commit = point.commit(),
          .at = ToTime(point.at()),
          .device = point.device(),
          .seconds = point.seconds(),
          .low = point.low_seconds(),
          .high = point.high_seconds(),
          .ratio = {.ratio = point.ratio(),
                    .low = point.ratio_low(),
                    .high = point.ratio_high(),
                    .level = point.ratio_level(),
                    .clusters = point.clusters()},
          .baseline_commit = point.baseline_commit(),
          .canary_seconds = point.canary_seconds(),
          .unsteady = point.unsteady()};
}

absl::StatusOr<regression::SeriesAnalysis> SeriesHistory::Analyse(
    const regression::SeriesOptions& options) const {
  std::vector<regression::HistoryPoint> all;
  for (const v1::HistoryPoint& point : points) all.push_back(ToPoint(point));
  std::vector<regression::Acknowledgement> acknowledged;
  for (const v1::Acknowledgement& one : acknowledgements) {
    acknowledged.push_back({.commit = one.commit(),
                            .reason = one.reason(),
                            .user = one.user(),
                            .at = ToTime(one.at())});
  }
  return regression::AnalyseSeries(all, acknowledged, options);
}

std::map<regression::SeriesKey, SeriesHistory> SplitSeries(
    const History& history) {
  std::map<regression::SeriesKey, SeriesHistory> series;
  for (const v1::HistoryPoint& point : history.points) {
    series[{.benchmark = point.benchmark(),
            .device_class = point.device_class(),
            .branch = point.branch()}]
        .points.push_back(point);
  }
  for (auto& [key, one] : series) {
    for (const v1::Acknowledgement& ack : history.acknowledgements) {
      if (ack.benchmark() == key.benchmark && ack.branch() == key.branch &&
          (ack.device_class().empty() ||
           ack.device_class() == key.device_class)) {
        one.acknowledgements.push_back(ack);
      }
    }
  }
  return series;
}

absl::StatusOr<const v1::HistoryPoint*> BaselineOf(const SeriesHistory& series,
                                                   double threshold) {
  if (series.points.empty()) return nullptr;
  TF_ASSIGN_OR_RETURN(const regression::SeriesAnalysis analysis,
                      series.Analyse({.threshold = threshold}));
  const size_t first = analysis.baseline_first, last = analysis.baseline_last;
  for (size_t i = last; i > first; --i) {
    if (!IsOpenRegression(series, i - 1, first)) return &series.points[i - 1];
  }
  return last == 0 ? nullptr : &series.points[first];
}

}  // namespace tilefarm::cli
