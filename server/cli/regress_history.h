// Histories as the statistics take them.
#ifndef TILEFARM_SERVER_CLI_REGRESS_HISTORY_H_
#define TILEFARM_SERVER_CLI_REGRESS_HISTORY_H_

#include <map>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "server/cli/regress_client.h"
#include "server/regression/series.h"

namespace tilefarm::cli {

regression::HistoryPoint ToPoint(const v1::HistoryPoint& point);

// One series of a history.
struct SeriesHistory {
  std::vector<v1::HistoryPoint> points;
  std::vector<v1::Acknowledgement> acknowledgements;  // that hold for it

  absl::StatusOr<regression::SeriesAnalysis> Analyse(
      const regression::SeriesOptions& options) const;
};

// By benchmark, device class and branch.
std::map<regression::SeriesKey, SeriesHistory> SplitSeries(
    const History& history);

// The newest point of the current baseline that was not found to be slower than
// an older one of it: what commits are compared with. Null: there are no
// points.
absl::StatusOr<const v1::HistoryPoint*> BaselineOf(const SeriesHistory& series,
                                                   double threshold);

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_REGRESS_HISTORY_H_
