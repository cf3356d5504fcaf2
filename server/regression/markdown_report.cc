#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/regression/ratio_text.h"
#include "server/regression/report.h"
#include "server/regression/report_text.h"

namespace tilefarm::regression {
namespace {

// Longer texts are in the other formats.
constexpr size_t kMostShownNameBytes = 200;
constexpr size_t kMostRemarkBytes = 300;
// Of texts outside of the table, as they are written.
constexpr size_t kMostTitleBytes = 300;
constexpr size_t kMostSummaryBytes = 1000;

constexpr char kHead[] =
    "| benchmark | change | interval | baseline | candidate | verdict | cause "
    "or remark |\n|---|--:|---|--:|--:|---|---|\n";

std::string GateTitle(Gate gate) {
  switch (gate) {
    case Gate::kPass:
      return "No performance regression";
    case Gate::kRegression:
      return "Performance regression";
    case Gate::kNoVerdict:
      break;
  }
  return "No verdict on performance";
}

bool IsUnchanged(const BenchmarkResult& result) {
  return result.comparison == Comparison::kCompared &&
         result.outcome.verdict == Verdict::kSame;
}

// A remark of many special characters is code: that has the fewest escapes.
std::string RemarkText(const std::string& remark) {
  const std::string text = Shortened(ValidUtf8(remark), kMostRemarkBytes);
  std::string escaped = MarkdownText(text);
  return escaped.size() <= 2 * kMostRemarkBytes ? escaped : MarkdownCode(text);
}

std::string Row(const BenchmarkResult& result) {
  const bool compared = result.comparison == Comparison::kCompared;
  const RatioInterval& ratio = result.outcome.ratio;
  const bool measured = compared && ratio.clusters > 0;
  std::string verdict(compared ? VerdictName(result.outcome.verdict)
                               : ComparisonName(result.comparison));
  if (result.regressed()) verdict = "**slower**, confirmed";
  std::string remark = result.remark();
  if (result.attribution.has_value()) {
    remark = remark.empty()
                 ? result.attribution->text
                 : absl::StrCat(result.attribution->text, "; ", remark);
  }
  return absl::StrCat(
      "| ",
      absl::StrJoin(
          {MarkdownCode(
               Shortened(ValidUtf8(result.benchmark), kMostShownNameBytes)),
           measured ? ChangeText(ratio.ratio) : std::string("-"),
           measured ? IntervalText(ratio) : std::string("-"),
           SecondsText(result.baseline_seconds),
           SecondsText(result.candidate_seconds), verdict, RemarkText(remark)},
          " | "),
      " |\n");
}

// A text that is written, or what stands for it if it is too long.
std::string Bounded(std::string text, size_t most_bytes, std::string instead) {
  return text.size() <= most_bytes ? text : instead;
}

std::string LeftOut(size_t count) {
  return absl::StrCat("\n", count, count == 1 ? " more row" : " more rows",
                      " did not fit.\n");
}

std::string Foot(const Report& report) {
  return absl::StrCat(
      "\nA change is the ratio of times in interleaved processes on the same "
      "device; the interval holds it although it was looked at repeatedly. "
      "Slower and faster mean by more than the threshold (",
      PercentText(report.options.threshold),
      " unless a benchmark has its own). A fresh run confirmed what is slower; "
      "with no change, a gate fails in less than ",
      PercentText(report.options.confirmation_error), " of all runs.\n");
}

}  // namespace

std::string MarkdownReport(const Report& report,
                           const MarkdownOptions& options) {
  std::vector<const BenchmarkResult*> shown, unchanged;
  for (const BenchmarkResult* result : WorstFirst(report.results)) {
    (IsUnchanged(*result) ? unchanged : shown).push_back(result);
  }
  const bool folded = unchanged.size() > options.most_unchanged;
  if (!folded) {
    // In their place among the others.
    shown = WorstFirst(report.results);
    unchanged.clear();
  }
  const std::string gate(GateName(report.gate()));
  std::string markdown = absl::StrCat(
      "### ", GateTitle(report.gate()), ": ",
      Bounded(MarkdownCode(report.suite), kMostTitleBytes, "suite"), "\n\n",
      Bounded(MarkdownText(GateSummary(report.results)), kMostSummaryBytes,
              gate),
      ".\n\n",
      Bounded(MarkdownCode(report.candidate), kMostTitleBytes, "candidate"),
      " against ",
      Bounded(MarkdownCode(report.baseline), kMostTitleBytes, "baseline"),
      "\n\n");
  const std::string foot = Foot(report);
  constexpr char kFold[] = "\n<details><summary>";
  constexpr char kFoldEnd[] = "\n</details>\n";
  // Everything that is not a row, and the lines about rows that do not fit.
  const bool has_link = IsLink(report.link);
  const size_t frame =
      foot.size() + (has_link ? XmlText(report.link).size() : 0) + 600;
  size_t room = options.most_bytes > markdown.size() + frame
                    ? options.most_bytes - markdown.size() - frame
                    : 0;
  const auto add_rows = [&](const std::vector<const BenchmarkResult*>& rows) {
    size_t written = 0;
    std::string table = kHead;
    for (const BenchmarkResult* result : rows) {
      const std::string row = Row(*result);
      if (row.size() > room) break;
      room -= row.size();
      table += row;
      ++written;
    }
    if (written > 0) markdown += table;
    if (written < rows.size()) markdown += LeftOut(rows.size() - written);
  };
  if (!shown.empty()) add_rows(shown);
  if (folded) {
    absl::StrAppend(&markdown, kFold, unchanged.size(),
                    " benchmarks are unchanged</summary>\n\n");
    add_rows(unchanged);
    markdown += kFoldEnd;
  }
  if (has_link) {
    absl::StrAppend(&markdown, "\nMore: <", XmlText(report.link), ">\n");
  }
  return markdown + foot;
}

}  // namespace tilefarm::regression
