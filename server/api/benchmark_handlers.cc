// Regression tracking: the histories of benchmarks and what they say.
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "server/api/handlers.h"
#include "server/api/shapes.h"
#include "server/regression/series.h"

namespace tilefarm::api {
namespace {

using database::HistoryRow;

// Of a history that is drawn and analysed.
constexpr int64_t kMostPoints = 2000;

absl::Time TimeOf(const std::string& text) {
  absl::Time at;
  return absl::ParseTime(absl::RFC3339_full, text, &at, nullptr)
             ? at
             : absl::UnixEpoch();
}

regression::HistoryPoint PointOf(const HistoryRow& row) {
  regression::HistoryPoint point;
  point.commit = row.commit;
  point.at = TimeOf(row.at);
  point.device = row.device;
  point.seconds = row.seconds;
  point.low = row.low_seconds;
  point.high = row.high_seconds;
  point.baseline_commit = row.baseline_commit;
  point.canary_seconds = row.canary_seconds;
  point.unsteady = row.unsteady;
  return point;
}

Json ChangesJson(const regression::SeriesAnalysis& analysis) {
  Json changes = Json::array();
  for (const regression::SeriesChange& change : analysis.changes) {
    changes.push_back(
        {{"index", change.index},
         {"commit", change.commit},
         {"after_commit", change.after_commit},
         {"state", std::string(regression::ChangeStateName(change.state))},
         {"ratio", change.ratio},
         {"p_value", change.p_value},
         {"before_seconds", change.before_seconds},
         {"after_seconds", change.after_seconds},
         {"device_moved", change.device_moved}});
  }
  return changes;
}

Json PointsJson(const std::vector<HistoryRow>& rows) {
  Json commit = Json::array(), at = Json::array(), device = Json::array(),
       seconds = Json::array(), low = Json::array(), high = Json::array(),
       ratio = Json::array(), verdict = Json::array(), canary = Json::array(),
       unsteady = Json::array();
  for (const HistoryRow& row : rows) {
    commit.push_back(row.commit);
    at.push_back(Milliseconds(row.at));
    device.push_back(row.device);
    seconds.push_back(NumberOrNull(row.seconds));
    low.push_back(NumberOrNull(row.low_seconds));
    high.push_back(NumberOrNull(row.high_seconds));
    ratio.push_back(row.clusters > 0 ? Json(row.ratio) : Json(nullptr));
    verdict.push_back(row.verdict);
    canary.push_back(NumberOrNull(row.canary_seconds));
    unsteady.push_back(row.unsteady);
  }
  return {{"commit", std::move(commit)}, {"at", std::move(at)},
          {"device", std::move(device)}, {"seconds", std::move(seconds)},
          {"low", std::move(low)},       {"high", std::move(high)},
          {"ratio", std::move(ratio)},   {"verdict", std::move(verdict)},
          {"canary", std::move(canary)}, {"unsteady", std::move(unsteady)}};
}

}  // namespace

absl::StatusOr<Json> ListBenchmarks(const Parts& parts, const Call& call) {
  TF_RETURN_IF_ERROR(call.query.Allow({}));
  Json list = Json::array();
  TF_RETURN_IF_ERROR(parts.store.regression_tables().ReadHistory(
      {.latest = 1}, [&](const HistoryRow& row) {
        list.push_back(
            {{"series", row.series},
             {"benchmark", row.benchmark},
             {"device_class", row.device_class},
             {"branch", row.branch},
             {"commit", row.commit},
             {"at", row.at},
             {"seconds", NumberOrNull(row.seconds)},
             {"ratio", row.clusters > 0 ? Json(row.ratio) : Json(nullptr)},
             {"baseline_commit", row.baseline_commit},
             {"verdict", row.verdict}});
        return true;
      }));
  return Json{{"benchmarks", std::move(list)}};
}

absl::StatusOr<Json> GetBenchmark(const Parts& parts, const Call& call) {
  TF_RETURN_IF_ERROR(
      call.query.Allow({"series", "benchmark", "device_class", "branch"}));
  database::HistoryFilter filter{
      .series = call.query.Text("series"),
      .benchmark = call.query.Text("benchmark"),
      .device_class = call.query.Text("device_class"),
      .branch = call.query.Text("branch"),
      .latest = kMostPoints};
  // An empty one would stand for all.
  if (filter.series.empty() || filter.benchmark.empty() ||
      filter.device_class.empty() || filter.branch.empty()) {
    return absl::InvalidArgumentError(
        "a history is named by series, benchmark, device_class and branch");
  }
  std::vector<HistoryRow> rows;
  TF_RETURN_IF_ERROR(parts.store.regression_tables().ReadHistory(
      filter, [&](const HistoryRow& row) {
        rows.push_back(row);
        return true;
      }));
  if (rows.empty()) {
    return absl::NotFoundError(
        absl::StrCat("there is no history of ", filter.benchmark, " on ",
                     filter.device_class, ", branch ", filter.branch,
                     ", in series ", filter.series));
  }
  TF_ASSIGN_OR_RETURN(
      const auto acknowledged,
      parts.store.regression_tables().ListAcknowledgements(filter));
  std::vector<regression::HistoryPoint> points;
  for (const HistoryRow& row : rows) points.push_back(PointOf(row));
  std::vector<regression::Acknowledgement> acknowledgements;
  Json acknowledged_json = Json::array();
  for (const database::AcknowledgementRow& row : acknowledged) {
    acknowledgements.push_back({.commit = row.commit,
                                .reason = row.reason,
                                .user = row.user,
                                .at = TimeOf(row.at)});
    acknowledged_json.push_back({{"commit", row.commit},
                                 {"reason", row.reason},
                                 {"user", row.user},
                                 {"at", row.at}});
  }
  TF_ASSIGN_OR_RETURN(const regression::SeriesAnalysis analysis,
                      regression::AnalyseSeries(points, acknowledgements));
  return Json{{"series", filter.series},
              {"benchmark", filter.benchmark},
              {"device_class", filter.device_class},
              {"branch", filter.branch},
              {"points", PointsJson(rows)},
              {"changes", ChangesJson(analysis)},
              {"acknowledgements", std::move(acknowledged_json)},
              {"baseline",
               {{"first", analysis.baseline_first},
                {"last", analysis.baseline_last},
                {"seconds", NumberOrNull(analysis.baseline_seconds)}}},
              {"current_ratio", analysis.current_ratio}};
}

}  // namespace tilefarm::api
