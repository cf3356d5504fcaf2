// Reports and histories as text and as JSON.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "server/cli/format.h"
#include "server/cli/regress_output.h"
#include "server/regression/ratio_text.h"

namespace tilefarm::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShortCommit = 12;

std::string TimeText(double seconds) {
  return seconds > 0 ? Seconds(seconds) : "-";
}

std::string VerdictText(const regression::BenchmarkResult& result) {
  if (result.comparison != regression::Comparison::kCompared) {
    return std::string(regression::ComparisonName(result.comparison));
  }
  return std::string(regression::VerdictName(result.outcome.verdict));
}

std::string CommitText(const std::string& commit) {
  return commit.size() == 40 ? commit.substr(0, kShortCommit) : commit;
}

Json NumberOrNull(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

}  // namespace

std::string ReportText(const regression::Report& report) {
  std::vector<std::vector<std::string>> rows = {{"benchmark", "verdict",
                                                 "change", "interval", "before",
                                                 "after", "processes"}};
  std::string remarks;
  for (const regression::BenchmarkResult* result :
       regression::WorstFirst(report.results)) {
    const bool compared =
        result->comparison == regression::Comparison::kCompared &&
        result->outcome.ratio.clusters > 0;
    const regression::RatioInterval& ratio = result->outcome.ratio;
    rows.push_back({result->benchmark, VerdictText(*result),
                    compared ? regression::ChangeText(ratio.ratio) : "",
                    compared ? regression::IntervalText(ratio) : "",
                    TimeText(result->baseline_seconds),
                    TimeText(result->candidate_seconds),
                    compared ? absl::StrCat(ratio.clusters) : ""});
    if (result->attribution.has_value()) {
      absl::StrAppend(&remarks, result->benchmark, ": ",
                      result->attribution->text, "\n");
    }
    if (!result->remark().empty()) {
      absl::StrAppend(&remarks, result->benchmark, ": ", result->remark(),
                      "\n");
    }
  }
  return absl::StrCat(Table(rows), remarks,
                      regression::GateSummary(report.results), "\n");
}

Json HistoryPointJson(const v1::HistoryPoint& point) {
  return {{"id", point.id()},
          {"series", point.series()},
          {"benchmark", point.benchmark()},
          {"device_class", point.device_class()},
          {"branch", point.branch()},
          {"commit", point.commit()},
          {"at", point.at()},
          {"device", point.device()},
          {"seconds", point.seconds()},
          {"low_seconds", point.low_seconds()},
          {"high_seconds", point.high_seconds()},
          {"ratio", point.ratio()},
          {"ratio_low", point.ratio_low()},
          {"ratio_high", NumberOrNull(point.ratio_high())},
          {"clusters", point.clusters()},
          {"verdict", point.verdict()},
          {"baseline_commit", point.baseline_commit()},
          {"canary_seconds", point.canary_seconds()},
          {"unsteady", point.unsteady()},
          {"artifact", point.artifact()},
          {"fingerprint", point.fingerprint()},
          {"user", point.user()}};
}

Json HistoryJson(const std::map<regression::SeriesKey, SeriesHistory>& all,
                 const std::map<regression::SeriesKey,
                                regression::SeriesAnalysis>& analyses) {
  Json list = Json::array();
  for (const auto& [key, series] : all) {
    const regression::SeriesAnalysis& analysis = analyses.at(key);
    Json points = Json::array(), changes = Json::array(),
         acknowledgements = Json::array();
    for (const v1::HistoryPoint& point : series.points) {
      points.push_back(HistoryPointJson(point));
    }
    for (const regression::SeriesChange& change : analysis.changes) {
      changes.push_back(
          {{"commit", change.commit},
           {"after_commit", change.after_commit},
           {"state", std::string(regression::ChangeStateName(change.state))},
           {"ratio", change.ratio},
           {"before_seconds", change.before_seconds},
           {"after_seconds", change.after_seconds},
           {"p_value", change.p_value},
           {"device_moved", change.device_moved}});
    }
    for (const v1::Acknowledgement& one : series.acknowledgements) {
      acknowledgements.push_back({{"commit", one.commit()},
                                  {"reason", one.reason()},
                                  {"user", one.user()},
                                  {"at", one.at()}});
    }
    const size_t last = analysis.baseline_last;
    list.push_back(
        {{"benchmark", key.benchmark},
         {"device_class", key.device_class},
         {"branch", key.branch},
         {"baseline_commit",
          last == 0 ? std::string() : series.points[last - 1].commit()},
         {"baseline_seconds", analysis.baseline_seconds},
         {"current_ratio", analysis.current_ratio},
         {"changes", std::move(changes)},
         {"acknowledgements", std::move(acknowledgements)},
         {"points", std::move(points)}});
  }
  return list;
}

std::string HistoryText(
    const std::map<regression::SeriesKey, SeriesHistory>& all,
    const std::map<regression::SeriesKey, regression::SeriesAnalysis>&
        analyses) {
  std::string text;
  for (const auto& [key, series] : all) {
    const regression::SeriesAnalysis& analysis = analyses.at(key);
    absl::StrAppend(&text, key.benchmark, " on ", key.device_class, ", branch ",
                    key.branch, "\n");
    std::vector<std::vector<std::string>> rows = {
        {"commit", "at", "time", "verdict", "change", "note"}};
    for (size_t i = 0; i < series.points.size(); ++i) {
      const v1::HistoryPoint& point = series.points[i];
      std::string note = point.unsteady() ? "unsteady device" : "";
      for (const regression::SeriesChange& change : analysis.changes) {
        if (change.index != i) continue;
        absl::StrAppend(&note, note.empty() ? "" : "; ",
                        std::string(regression::ChangeStateName(change.state)),
                        " change ", regression::ChangeText(change.ratio),
                        change.device_moved ? " of the device" : "");
      }
      rows.push_back(
          {CommitText(point.commit()), point.at(), TimeText(point.seconds()),
           point.verdict(),
           point.clusters() > 0 ? regression::ChangeText(point.ratio()) : "",
           note});
    }
    absl::StrAppend(&text, Table(rows), "\n");
  }
  return text.empty() ? "no points\n" : text;
}

}  // namespace tilefarm::cli
