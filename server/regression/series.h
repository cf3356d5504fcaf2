// The history of one benchmark on one device class and branch, and what it
// says: change points, the current baseline, open regressions.
//
// A history only grows. Its level changes for good reasons too; a person
// acknowledges such a change (`tune regress ack`), and the baseline is then
// what comes after it. Nothing else makes a slower level the baseline:
//
//   level    |            ____ack'd_____
//            |  ________ |   2 open     '---- 3 faster: baseline again
//            | |1 slower
//            '-+-----------------------------------> commits
//
//   faster than the baseline         becomes the baseline
//   slower, acknowledged             becomes the baseline
//   slower, not acknowledged         an open regression; the baseline stays.
//                                    Also where small steps add up to it
//   back at the baseline's level     the open ones are resolved
#ifndef TILEFARM_SERVER_REGRESSION_SERIES_H_
#define TILEFARM_SERVER_REGRESSION_SERIES_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/regression/change_points.h"
#include "server/regression/paired_ratio.h"

namespace tilefarm::regression {

struct SeriesKey {
  std::string benchmark;
  std::string device_class;
  std::string branch;
  bool operator==(const SeriesKey&) const = default;
  auto operator<=>(const SeriesKey&) const = default;
};

// One commit's measurement; the order of a series is that of its points.
struct HistoryPoint {
  std::string commit;
  absl::Time at;             // when it was measured
  std::string device;        // its name
  double seconds = 0;        // median of one call
  double low = 0, high = 0;  // 95 % confidence interval of the median
  // Against the baseline of its run; clusters is 0 if there was none.
  RatioInterval ratio;
  std::string baseline_commit;
  // The device's canary in the same minutes, median seconds; 0: none.
  double canary_seconds = 0;
  bool unsteady = false;  // the device's canary was slow
};

// "From this commit on, this is expected."
struct Acknowledgement {
  std::string commit;
  std::string reason;
  std::string user;
  absl::Time at;
};

enum class ChangeState {
  kAcknowledged,
  kFaster,    // became the baseline
  kOpen,      // a regression that is neither acknowledged nor gone
  kResolved,  // a regression whose level is gone
  kMinor,     // significant, but within the threshold of the baseline
};

// "acknowledged", "faster", "open", "resolved", "minor"
std::string_view ChangeStateName(ChangeState state);

struct SeriesChange {
  size_t index = 0;    // of the first point of the new level
  std::string commit;  // that point's
  // The last commit of the old level; the change is in (after_commit, commit].
  std::string after_commit;
  double p_value = 0;  // of acknowledgements without a change of level: 1
  // Median seconds of the levels before and after, and after / before.
  double before_seconds = 0, after_seconds = 0;
  double ratio = 1;
  ChangeState state = ChangeState::kMinor;
  // The canary moved with it: the device changed, not the code.
  bool device_moved = false;
};

struct SeriesOptions {
  // A level within this of the baseline is the baseline's.
  double threshold = 0.03;
  ChangePointOptions change_points;
};

struct SeriesAnalysis {
  std::vector<SeriesChange> changes;  // by index
  // The points [first, last) of the current baseline and their median.
  size_t baseline_first = 0, baseline_last = 0;
  double baseline_seconds = 0;  // 0: no points
  // The current level (median since the last change) against the baseline.
  double current_ratio = 1;
  // Acknowledged commits that the series does not have.
  std::vector<std::string> unknown_acknowledgements;
};

// Change points of the logarithms of the seconds, the series being cut at
// acknowledged commits. InvalidArgument: as FindChangePoints, or a point whose
// seconds are not positive.
absl::StatusOr<SeriesAnalysis> AnalyseSeries(
    std::span<const HistoryPoint> points,
    std::span<const Acknowledgement> acknowledgements,
    const SeriesOptions& options = {});

}  // namespace tilefarm::regression

#endif  // TILEFARM_SERVER_REGRESSION_SERIES_H_
