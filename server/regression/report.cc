#include "server/regression/report.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "server/regression/google_benchmark.h"
#include "server/regression/ratio_text.h"
#include "server/regression/report_text.h"

namespace tilefarm::regression {
namespace {

using Json = nlohmann::ordered_json;

std::string Print(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string TimeText(absl::Time at) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", at, absl::UTCTimeZone());
}

// Nine digits: what is measured has fewer, and the last bits of a logarithm
// differ between platforms.
double Rounded(double value) {
  double rounded = value;
  if (std::isfinite(value)) {
    (void)absl::SimpleAtod(absl::StrFormat("%.9g", value), &rounded);
  }
  return rounded;
}

std::string Number(double value) {
  return std::isfinite(value) ? absl::StrFormat("%.9g", value) : "";
}

// Null where the interval says nothing.
Json BoundJson(double bound) {
  return std::isfinite(bound) && bound > 0 ? Json(Rounded(bound))
                                           : Json(nullptr);
}

Json RatioJson(const RatioInterval& ratio) {
  if (ratio.clusters == 0) return nullptr;
  Json json;
  json["ratio"] = BoundJson(ratio.ratio);
  json["low"] = BoundJson(ratio.low);
  json["high"] = BoundJson(ratio.high);
  json["level"] = Rounded(ratio.level);
  json["clusters"] = ratio.clusters;
  return json;
}

Json AttributionJson(const Attribution& attribution) {
  Json causes = Json::array();
  for (size_t i = 0; i < attribution.causes.size(); ++i) {
    Json cause;
    cause["cause"] = CauseName(attribution.causes[i]);
    cause["ratio"] = Rounded(attribution.ratios[i]);
    causes.push_back(std::move(cause));
  }
  Json json;
  json["causes"] = std::move(causes);
  json["text"] = attribution.text;
  return json;
}

Json SecondsJson(double seconds) {
  return seconds > 0 ? Json(Rounded(seconds)) : Json(nullptr);
}

Json BenchmarkJson(const BenchmarkResult& result) {
  const bool compared = result.comparison == Comparison::kCompared;
  Json json;
  json["benchmark"] = result.benchmark;
  json["device_class"] = result.device_class;
  json["devices"] = result.devices;
  json["comparison"] = ComparisonName(result.comparison);
  json["verdict"] =
      compared ? Json(VerdictName(result.outcome.verdict)) : Json(nullptr);
  json["confirmed"] = compared && result.outcome.confirmed;
  json["threshold"] = result.threshold;
  json["ratio"] = compared ? RatioJson(result.outcome.ratio) : Json(nullptr);
  json["screening"] = compared && result.outcome.screening.has_value()
                          ? RatioJson(*result.outcome.screening)
                          : Json(nullptr);
  json["baseline_seconds"] = SecondsJson(result.baseline_seconds);
  json["candidate_seconds"] = SecondsJson(result.candidate_seconds);
  json["attribution"] = result.attribution.has_value()
                            ? AttributionJson(*result.attribution)
                            : Json(nullptr);
  json["remark"] = result.remark();
  json["device_seconds"] = Rounded(result.device_seconds);
  return json;
}

std::string CausesText(const BenchmarkResult& result) {
  if (!result.attribution.has_value()) return "";
  return absl::StrJoin(result.attribution->causes, " + ",
                       [](std::string* out, Cause cause) {
                         absl::StrAppend(out, std::string(CauseName(cause)));
                       });
}

}  // namespace

Json ReportJson(const Report& report) {
  Json json;
  json["suite"] = report.suite;
  json["baseline"] = report.baseline;
  json["candidate"] = report.candidate;
  json["branch"] = report.branch;
  json["at"] = TimeText(report.at);
  json["gate"] = GateName(report.gate());
  json["exit_code"] = ExitCodeOf(report.gate());
  json["summary"] = GateSummary(report.results);
  json["threshold"] = report.options.threshold;
  json["screening_error"] = report.options.screening_error;
  json["confirmation_error"] = report.options.confirmation_error;
  json["link"] = report.link;
  json["benchmarks"] = Json::array();
  for (const BenchmarkResult* result : WorstFirst(report.results)) {
    json["benchmarks"].push_back(BenchmarkJson(*result));
  }
  return json;
}

std::string GoogleBenchmarkReport(const Report& report, ReportSide side) {
  BenchmarkRun run;
  run.date = TimeText(report.at);
  run.host_name = "tilefarm";
  run.build_type = "release";
  for (const BenchmarkResult& result : report.results) {
    const double seconds = side == ReportSide::kBaseline
                               ? result.baseline_seconds
                               : result.candidate_seconds;
    if (!(seconds > 0)) continue;
    run.benchmarks.push_back(
        {.name = result.benchmark, .seconds = {seconds}, .iterations = 1});
  }
  return WriteGoogleBenchmark(run);
}

std::string SmallerIsBetterReport(const Report& report) {
  Json entries = Json::array();
  for (const BenchmarkResult& result : report.results) {
    if (!(result.candidate_seconds > 0)) continue;
    Json entry;
    entry["name"] = result.benchmark;
    // One unit for all commits: the charts do not convert.
    entry["unit"] = "us";
    entry["value"] = Rounded(result.candidate_seconds * 1e6);
    const RatioInterval& ratio = result.outcome.ratio;
    if (result.comparison == Comparison::kCompared && ratio.clusters > 0) {
      if (std::isfinite(ratio.high)) {
        entry["range"] = IntervalText(ratio);
      }
      entry["extra"] =
          absl::StrCat(std::string(VerdictName(result.outcome.verdict)), ", ",
                       ChangeText(ratio.ratio), " against ", report.baseline);
    }
    entries.push_back(std::move(entry));
  }
  return Print(entries);
}

std::string CsvReport(const Report& report) {
  std::string csv =
      "suite,baseline,candidate,benchmark,device_class,comparison,verdict,"
      "confirmed,ratio,low,high,level,clusters,threshold,baseline_seconds,"
      "candidate_seconds,causes,remark,device_seconds\r\n";
  for (const BenchmarkResult* result : WorstFirst(report.results)) {
    const bool compared = result->comparison == Comparison::kCompared;
    const RatioInterval& ratio = result->outcome.ratio;
    const bool measured = compared && ratio.clusters > 0;
    const bool bounded = measured && std::isfinite(ratio.high);
    const auto seconds = [](double value) {
      return value > 0 ? Number(value) : "";
    };
    const std::vector<std::string> fields = {
        CsvText(report.suite),
        CsvText(report.baseline),
        CsvText(report.candidate),
        CsvText(result->benchmark),
        CsvText(result->device_class),
        std::string(ComparisonName(result->comparison)),
        compared ? std::string(VerdictName(result->outcome.verdict)) : "",
        compared && result->outcome.confirmed ? "true" : "false",
        measured ? Number(ratio.ratio) : "",
        bounded ? Number(ratio.low) : "",
        bounded ? Number(ratio.high) : "",
        measured ? Number(ratio.level) : "",
        measured ? absl::StrCat(ratio.clusters) : "",
        Number(result->threshold),
        seconds(result->baseline_seconds),
        seconds(result->candidate_seconds),
        CsvText(CausesText(*result)),
        CsvText(result->remark()),
        Number(result->device_seconds)};
    absl::StrAppend(&csv, absl::StrJoin(fields, ","), "\r\n");
  }
  return csv;
}

}  // namespace tilefarm::regression
