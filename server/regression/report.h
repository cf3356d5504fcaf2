// The result of a comparison, for people and programs. Pure functions of a
// Report: the same report gives the same bytes.
#ifndef TILEFARM_SERVER_REGRESSION_REPORT_H_
#define TILEFARM_SERVER_REGRESSION_REPORT_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/regression/verdict.h"

namespace tilefarm::regression {

struct Report {
  std::string suite;
  std::string baseline;   // commit or series
  std::string candidate;  // commit
  std::string branch;     // of the candidate; empty: unknown
  absl::Time at;
  // The gate's options: its error rates are part of what the report says.
  GateOptions options;
  std::vector<BenchmarkResult> results;
  // To a page with more; left out of formats that show it unless IsLink
  // (report_text.h).
  std::string link;

  Gate gate() const { return GateOf(results); }
};

struct MarkdownOptions {
  // GitHub refuses comments of more than 65,536 characters. Rows that do not
  // fit are left out, the best ones first, and counted. At least 4,000.
  size_t most_bytes = 60'000;
  // Unchanged benchmarks are folded away if there are more than so many.
  size_t most_unchanged = 10;
};

// For the comment of a pull request (markdown_report.cc): the gate in a line, a
// table with ratio, interval, times, verdict and cause, worst first, and how to
// read it. Names and messages cannot break the table, make links or notify
// people.
std::string MarkdownReport(const Report& report,
                           const MarkdownOptions& options = {});

// JUnit XML (junit_report.cc): one test case for each benchmark. A confirmed
// regression is a failure; a benchmark without a verdict is an error if it
// failed and skipped otherwise.
std::string JUnitReport(const Report& report);

// Google Benchmark's JSON of one side's median times, without benchmarks that
// were not measured. Its tools/compare.py takes a file of each side.
enum class ReportSide { kBaseline, kCandidate };
std::string GoogleBenchmarkReport(const Report& report, ReportSide side);

// [{"name", "unit", "value", "range", "extra"}]: the customSmallerIsBetter
// input of github-action-benchmark.
std::string SmallerIsBetterReport(const Report& report);

// RFC 4180, one line for each benchmark, with a header line. Texts that a
// spreadsheet would run as formulas are quoted with a leading apostrophe.
std::string CsvReport(const Report& report);

// {suite, baseline, candidate, branch, at, gate, exit_code, summary, threshold,
// errors, benchmarks: [...]}; docs/formats.md has all of it. Unbounded interval
// ends are null.
nlohmann::ordered_json ReportJson(const Report& report);

}  // namespace tilefarm::regression

#endif  // TILEFARM_SERVER_REGRESSION_REPORT_H_
