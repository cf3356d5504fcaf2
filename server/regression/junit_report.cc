#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "server/regression/ratio_text.h"
#include "server/regression/report.h"
#include "server/regression/report_text.h"

namespace tilefarm::regression {
namespace {

// What a failed benchmark says: all that the Markdown table has in its row.
std::string Details(const BenchmarkResult& result) {
  std::vector<std::string> lines;
  const RatioInterval& ratio = result.outcome.ratio;
  if (result.comparison == Comparison::kCompared && ratio.clusters > 0) {
    lines.push_back(absl::StrCat("change: ", ChangeText(ratio.ratio), " (",
                                 IntervalText(ratio), ", ", ratio.clusters,
                                 " processes)"));
    lines.push_back(absl::StrCat("threshold: ", PercentText(result.threshold)));
  }
  if (result.baseline_seconds > 0 && result.candidate_seconds > 0) {
    lines.push_back(
        absl::StrCat("median: ", SecondsText(result.baseline_seconds), " -> ",
                     SecondsText(result.candidate_seconds)));
  }
  if (result.attribution.has_value()) {
    lines.push_back(absl::StrCat("cause: ", result.attribution->text));
  }
  if (!result.devices.empty()) {
    lines.push_back(
        absl::StrCat("devices: ", absl::StrJoin(result.devices, ", ")));
  }
  if (!result.remark().empty()) lines.push_back(result.remark());
  return absl::StrJoin(lines, "\n");
}

// <failure message="..." type="regression">...</failure>
std::string Element(const char* name, const std::string& message,
                    const char* type, const std::string& content) {
  return absl::StrCat("      <", name, " message=\"", XmlText(message),
                      "\" type=\"", type, "\">", XmlText(content), "</", name,
                      ">\n");
}

std::string Outcome(const BenchmarkResult& result) {
  const std::string remark = result.remark();
  if (result.regressed()) {
    return Element("failure",
                   absl::StrCat(ChangeText(result.outcome.ratio.ratio), " (",
                                IntervalText(result.outcome.ratio), ")"),
                   "regression", Details(result));
  }
  if (result.comparison == Comparison::kFailed) {
    return Element("error", remark, "not measured", Details(result));
  }
  if (result.open()) {
    return absl::StrCat(
        "      <skipped message=\"no verdict: ", XmlText(remark), "\"/>\n");
  }
  if (result.comparison != Comparison::kCompared) {
    return absl::StrCat("      <skipped message=\"",
                        std::string(ComparisonName(result.comparison)),
                        "\"/>\n");
  }
  return absl::StrCat("      <system-out>", XmlText(Details(result)),
                      "</system-out>\n");
}

}  // namespace

std::string JUnitReport(const Report& report) {
  size_t failures = 0, errors = 0, skipped = 0;
  double seconds = 0;
  for (const BenchmarkResult& result : report.results) {
    seconds += result.device_seconds;
    if (result.regressed()) {
      ++failures;
    } else if (result.comparison == Comparison::kFailed) {
      ++errors;
    } else if (result.open() || result.comparison != Comparison::kCompared) {
      ++skipped;
    }
  }
  const std::string counts = absl::StrFormat(
      "tests=\"%d\" failures=\"%d\" errors=\"%d\" skipped=\"%d\" time=\"%.3f\"",
      report.results.size(), failures, errors, skipped, seconds);
  const std::string suite = XmlText(report.suite);
  std::string xml = absl::StrCat(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"", suite,
      "\" tests=\"", report.results.size(), "\" failures=\"", failures,
      "\" errors=\"", errors, "\">\n  <testsuite name=\"", suite, "\" ", counts,
      " timestamp=\"",
      absl::FormatTime("%Y-%m-%dT%H:%M:%S", report.at, absl::UTCTimeZone()),
      "\">\n    <properties>\n");
  const auto property = [&](const char* name, const std::string& value) {
    absl::StrAppend(&xml, "      <property name=\"", name, "\" value=\"",
                    XmlText(value), "\"/>\n");
  };
  property("baseline", report.baseline);
  property("candidate", report.candidate);
  property("gate", std::string(GateName(report.gate())));
  absl::StrAppend(&xml, "    </properties>\n");
  for (const BenchmarkResult* result : WorstFirst(report.results)) {
    absl::StrAppend(
        &xml, "    <testcase name=\"", XmlText(result->benchmark),
        "\" classname=\"",
        XmlText(result->device_class.empty()
                    ? report.suite
                    : absl::StrCat(report.suite, ".", result->device_class)),
        "\" time=\"", absl::StrFormat("%.3f", result->device_seconds), "\">\n",
        Outcome(*result), "    </testcase>\n");
  }
  absl::StrAppend(&xml, "  </testsuite>\n</testsuites>\n");
  return xml;
}

}  // namespace tilefarm::regression
