#include "server/regression/series.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/statistics.h"
#include "base/status_macros.h"
#include "server/regression/attribution.h"

namespace tilefarm::regression {
namespace {

// A stretch of points with one level.
struct Level {
  size_t first = 0, last = 0;  // [first, last)
  double seconds = 0;          // median
  double p_value = 1;          // of the change that begins it
  bool acknowledged = false;
};

double MedianSeconds(std::span<const HistoryPoint> points, size_t first,
                     size_t last) {
  std::vector<double> seconds;
  for (size_t i = first; i < last; ++i) seconds.push_back(points[i].seconds);
  return MedianOf(std::move(seconds)).median;
}

// The canaries of the points [first, last) that have one.
std::vector<double> Canaries(std::span<const HistoryPoint> points, size_t first,
                             size_t last) {
  std::vector<double> seconds;
  for (size_t i = first; i < last; ++i) {
    if (points[i].canary_seconds > 0) {
      seconds.push_back(points[i].canary_seconds);
    }
  }
  return seconds;
}

// The points at which acknowledged commits begin, ascending.
std::vector<size_t> Cuts(std::span<const HistoryPoint> points,
                         std::span<const Acknowledgement> acknowledgements,
                         std::vector<std::string>* unknown) {
  std::map<std::string, size_t> first_of;
  for (size_t i = 0; i < points.size(); ++i) {
    first_of.emplace(points[i].commit, i);
  }
  std::vector<size_t> cuts;
  for (const Acknowledgement& acknowledgement : acknowledgements) {
    const auto at = first_of.find(acknowledgement.commit);
    if (at == first_of.end()) {
      unknown->push_back(acknowledgement.commit);
    } else {
      cuts.push_back(at->second);
    }
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

absl::StatusOr<std::vector<Level>> FindLevels(
    std::span<const HistoryPoint> points, const std::vector<size_t>& cuts,
    const ChangePointOptions& options) {
  std::vector<double> logs;
  for (size_t i = 0; i < points.size(); ++i) {
    if (!std::isfinite(points[i].seconds) || points[i].seconds <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("point ", i, " (", points[i].commit,
                       ") of the series has no positive time"));
    }
    logs.push_back(std::log(points[i].seconds));
  }
  // Sections between acknowledgements are analysed apart.
  std::vector<size_t> bounds = {0};
  for (const size_t cut : cuts) {
    if (cut > 0) bounds.push_back(cut);
  }
  bounds.push_back(points.size());
  std::vector<Level> levels;
  for (size_t section = 0; section + 1 < bounds.size(); ++section) {
    const size_t first = bounds[section];
    const size_t last = bounds[section + 1];
    TF_ASSIGN_OR_RETURN(
        const std::vector<ChangePoint> changes,
        FindChangePoints(std::span(logs).subspan(first, last - first),
                         options));
    levels.push_back({.first = first, .acknowledged = section > 0});
    for (const ChangePoint& change : changes) {
      levels.push_back(
          {.first = first + change.index, .p_value = change.p_value});
    }
  }
  for (size_t i = 0; i < levels.size(); ++i) {
    levels[i].last =
        i + 1 == levels.size() ? points.size() : levels[i + 1].first;
    levels[i].seconds = MedianSeconds(points, levels[i].first, levels[i].last);
  }
  return levels;
}

bool DeviceMoved(std::span<const HistoryPoint> points, const Level& before,
                 const Level& after) {
  const std::optional<RatioInterval> canary =
      DriftRatio(Canaries(points, before.first, before.last),
                 Canaries(points, after.first, after.last));
  if (!canary.has_value()) return false;
  const double change = std::log(after.seconds / before.seconds);
  const double drift = std::log(canary->ratio);
  const bool excludes = change > 0 ? canary->low > 1 : canary->high < 1;
  return excludes && std::abs(drift) >= std::abs(change) / 2;
}

}  // namespace

std::string_view ChangeStateName(ChangeState state) {
  switch (state) {
    case ChangeState::kAcknowledged:
      return "acknowledged";
    case ChangeState::kFaster:
      return "faster";
    case ChangeState::kOpen:
      return "open";
    case ChangeState::kResolved:
      return "resolved";
    case ChangeState::kMinor:
      return "minor";
  }
  return "minor";
}

absl::StatusOr<SeriesAnalysis> AnalyseSeries(
    std::span<const HistoryPoint> points,
    std::span<const Acknowledgement> acknowledgements,
    const SeriesOptions& options) {
  if (!(options.threshold > 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the threshold must be positive, but is ", options.threshold));
  }
  SeriesAnalysis analysis;
  const std::vector<size_t> cuts =
      Cuts(points, acknowledgements, &analysis.unknown_acknowledgements);
  if (points.empty()) return analysis;
  TF_ASSIGN_OR_RETURN(const std::vector<Level> levels,
                      FindLevels(points, cuts, options.change_points));

  Level baseline = levels.front();
  for (size_t i = 1; i < levels.size(); ++i) {
    const Level& before = levels[i - 1];
    const Level& level = levels[i];
    SeriesChange change{.index = level.first,
                        .commit = points[level.first].commit,
                        .after_commit = points[level.first - 1].commit,
                        .p_value = level.p_value,
                        .before_seconds = before.seconds,
                        .after_seconds = level.seconds,
                        .ratio = level.seconds / before.seconds,
                        .device_moved = DeviceMoved(points, before, level)};
    const double against = level.seconds / baseline.seconds;
    const bool slower = against > 1 + options.threshold;
    // Which levels end the open regressions: every one that is not slower.
    if (level.acknowledged || !slower) {
      for (SeriesChange& earlier : analysis.changes) {
        if (earlier.state == ChangeState::kOpen) {
          earlier.state = level.acknowledged ? ChangeState::kAcknowledged
                                             : ChangeState::kResolved;
        }
      }
    }
    if (level.acknowledged) {
      change.state = ChangeState::kAcknowledged;
      baseline = level;
    } else if (slower) {
      // Small steps that add up are a regression where they cross the
      // threshold. A step down that leaves the level above it is none.
      const bool was_slower =
          before.seconds / baseline.seconds > 1 + options.threshold;
      const bool regressed =
          was_slower ? change.ratio > 1 + options.threshold : change.ratio > 1;
      if (regressed) change.state = ChangeState::kOpen;
    } else if (against < 1 / (1 + options.threshold)) {
      change.state = ChangeState::kFaster;
      baseline = level;
    }
    analysis.changes.push_back(std::move(change));
  }
  analysis.baseline_first = baseline.first;
  analysis.baseline_last = baseline.last;
  analysis.baseline_seconds = baseline.seconds;
  analysis.current_ratio = levels.back().seconds / baseline.seconds;
  return analysis;
}

}  // namespace tilefarm::regression
