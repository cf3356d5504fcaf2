#include "server/cli/regress_history.h"

#include "absl/time/time.h"
#include "base/status_macros.h"

namespace tilefarm::cli {
namespace {

absl::Time ToTime(const std::string& text) {
  absl::Time time = absl::UnixEpoch();
  absl::ParseTime(absl::RFC3339_full, text, &time, nullptr);
  return time;
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
  const size_t last = analysis.baseline_last;
  return last == 0 ? nullptr : &series.points[last - 1];
}

}  // namespace tilefarm::cli
