// Damaged texts for the readers of regression tracking, and names of any bytes
// for its writers, from seeds.
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "server/regression/google_benchmark.h"
#include "server/regression/report.h"
#include "server/regression/suite.h"
#include "server/regression/webhook.h"
#include "tests/fuzz/seeded.h"

namespace tilefarm::fuzz {
namespace {

using regression::BenchmarkRun;
using regression::Report;

constexpr char kSuite[] = R"(name = "kernels"
threshold = "2.5%"
budget = "5s"
require = ["label.rack=b2"]
[[benchmark]]
name = "conv2d"
program = "conv2d.py"
trace = "conv2d.trace"
[[benchmark]]
name = "resnet"
model = "resnet.onnx"
dimensions = { batch = 8 }
threshold = 0.05
[[benchmark]]
name = "parser"
command = ["./bench", "--benchmark_format=json"]
)";

constexpr char kRun[] = R"(talk
{"context": {"date": "2024", "cpu_scaling_enabled": true}, "benchmarks": [
{"name": "BM_a/repeats:2", "run_name": "BM_a/repeats:2", "run_type":
"iteration", "iterations": 10, "real_time": 2.5e1, "time_unit": "us"},
{"name": "BM_a_mean", "run_type": "aggregate", "aggregate_name": "mean",
"real_time": 3, "time_unit": "ms"},
{"name": "BM_b", "error_occurred": true, "error_message": "why"}]}
)";

std::string Suites(ByteSource& source) {
  const auto suite =
      regression::ParseSuite(Damaged(source, kSuite), "suite.toml");
  if (!suite.ok()) {
    return suite.status().code() == absl::StatusCode::kInvalidArgument
               ? ""
               : suite.status().ToString();
  }
  return suite->benchmarks.empty() ? "a suite without benchmarks" : "";
}

// What is read can be written, and reads as the same again.
std::string Runs(ByteSource& source) {
  const auto run = regression::ParseGoogleBenchmark(Damaged(source, kRun));
  if (!run.ok()) {
    return run.status().code() == absl::StatusCode::kInvalidArgument
               ? ""
               : run.status().ToString();
  }
  const auto again =
      regression::ParseGoogleBenchmark(regression::WriteGoogleBenchmark(*run));
  if (!again.ok()) return again.status().ToString();
  return again->benchmarks.size() <= run->benchmarks.size()
             ? ""
             : "more benchmarks than before";
}

std::string Reports(ByteSource& source) {
  const Words words = {"conv2d", "| `x` |", "<!-- @all -->", "]]>", "=1+1"};
  Report report;
  report.suite = AnyText(source, words);
  report.candidate = AnyText(source, words);
  report.link = AnyText(source, words);
  const size_t count = source.Below(20);
  for (size_t i = 0; i < count; ++i) {
    regression::BenchmarkResult result;
    result.benchmark = AnyText(source, words);
    result.device_class = AnyText(source, words);
    result.note = AnyText(source, words);
    result.comparison = static_cast<regression::Comparison>(source.Below(4));
    result.outcome.verdict = static_cast<regression::Verdict>(source.Below(4));
    result.outcome.confirmed = source.Chance(128);
    result.outcome.ratio.clusters = static_cast<int>(source.Below(3));
    result.outcome.ratio.high =
        source.Chance(30) ? HUGE_VAL : static_cast<double>(source.Byte());
    result.candidate_seconds = static_cast<double>(source.Byte()) * 1e-6;
    report.results.push_back(std::move(result));
  }
  const auto is_json = [](const std::string& text) {
    return !nlohmann::json::parse(text, nullptr, false).is_discarded();
  };
  if (!is_json(regression::SmallerIsBetterReport(report)) ||
      !is_json(regression::GoogleBenchmarkReport(
          report, regression::ReportSide::kCandidate)) ||
      !is_json(regression::WebhookBody(report,
                                       regression::WebhookFormat::kReport))) {
    return "this is no JSON";
  }
  if (regression::MarkdownReport(report, {.most_bytes = 5000}).size() > 5000) {
    return "the Markdown is too long";
  }
  const std::string xml = regression::JUnitReport(report);
  for (const char c : xml) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n') {
      return "the XML has a control character";
    }
  }
  return regression::CsvReport(report).empty() ? "no CSV" : "";
}

TEST(RegressionFuzz, Suites) { RunSeeded(1, Suites); }

TEST(RegressionFuzz, GoogleBenchmarkRuns) { RunSeeded(1, Runs); }

TEST(RegressionFuzz, Reports) { RunSeeded(1, Reports); }

}  // namespace
}  // namespace tilefarm::fuzz
