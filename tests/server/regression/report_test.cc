// Golden tests: the formats are contracts (docs/formats.md).
#include "server/regression/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/regression/google_benchmark.h"
#include "tests/server/regression/results.h"

namespace tilefarm::regression {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

Report Example() {
  Report report;
  report.suite = "kernels";
  report.baseline = "main";
  report.candidate = "abc123";
  report.branch = "feature";
  report.at = absl::FromUnixSeconds(1'700'000'000);
  report.link = "https://ci/run/1?a=1&b=2";
  BenchmarkResult slow = Slower("conv2d|3x3", 1.0514);
  slow.outcome.screening = RatioInterval{
      .ratio = 1.06, .low = 1.04, .high = 1.08, .level = 0.95, .clusters = 8};
  slow.attribution =
      Attribution{.causes = {Cause::kCodeGenerator},
                  .ratios = {1.05},
                  .text = "code generator: +5.0 % with the old schedule"};
  report.results = {Same("dense"),      slow,         Open("softmax"),
                    Failed("b<r>oken"), New("added"), Faster("norm")};
  return report;
}

TEST(MarkdownReportTest, IsATableWorstFirst) {
  EXPECT_EQ(MarkdownReport(Example()),
            R"(### Performance regression: `kernels`

regression: conv2d\|3x3 +5.1 %; 2 of 5 benchmarks have no verdict.

`abc123` against `main`

| benchmark | change | interval | baseline | candidate | verdict | cause or remark |
|---|--:|---|--:|--:|---|---|
| `conv2d\|3x3` | +5.1 % | +4.1 % to +6.2 % | 1 ms | 1.051 ms | **slower**, confirmed | code generator: +5.0 % with the old schedule |
| `b<r>oken` | - | - | - | - | failed | the candidate does not build: 3:1: unknown intrinsic |
| `softmax` | +3.0 % | +2.0 % to +4.0 % | 1 ms | 1.03 ms | inconclusive | after 48 processes +2.0 % to +4.0 % is still possible |
| `norm` | -20.0 % | -20.8 % to -19.2 % | 1 ms | 800 us | faster |  |
| `dense` | +0.1 % | -0.9 % to +1.1 % | 1 ms | 1.001 ms | same |  |
| `added` | - | - | - | 2 ms | new |  |

More: <https://ci/run/1?a=1&amp;b=2>

A change is the ratio of times in interleaved processes on the same device; the interval holds it although it was looked at repeatedly. Slower and faster mean by more than the threshold (3 % unless a benchmark has its own). A fresh run confirmed what is slower; with no change, a gate fails in less than 1 % of all runs.
)");
}

TEST(MarkdownReportTest, ManyUnchangedBenchmarksAreFolded) {
  Report report = Example();
  for (int i = 0; i < 20; ++i) {
    report.results.push_back(Same(absl::StrCat("bench", i)));
  }
  const std::string markdown = MarkdownReport(report);
  EXPECT_THAT(markdown,
              HasSubstr("<details><summary>21 benchmarks are unchanged"
                        "</summary>\n\n| benchmark |"));
  EXPECT_LT(markdown.find("`norm`"), markdown.find("<details>"));
  EXPECT_GT(markdown.find("`bench7`"), markdown.find("<details>"));
}

TEST(MarkdownReportTest, FitsIntoAComment) {
  Report report = Example();
  for (int i = 0; i < 3000; ++i) {
    report.results.push_back(Slower(absl::StrCat("slow", i), 1.1 + 1e-4 * i));
    report.results.push_back(Same(absl::StrCat("same", i)));
  }
  const std::string markdown = MarkdownReport(report);
  EXPECT_LE(markdown.size(), 60'000u);
  EXPECT_THAT(markdown, HasSubstr("`slow2999`"));  // the worst
  EXPECT_THAT(markdown, HasSubstr(" more rows did not fit."));
  EXPECT_LE(MarkdownReport(report, {.most_bytes = 4000}).size(), 4000u);
}

TEST(MarkdownReportTest, LongTextsAreShortened) {
  Report report = Example();
  report.suite = std::string(5000, '@');
  report.candidate = report.baseline = std::string(5000, '|');
  report.results = {Slower(std::string(5000, '@'), 1.1)};
  report.results[0].note = std::string(5000, '@');
  report.link = "https://ci/" + std::string(5000, 'x');
  const std::string markdown = MarkdownReport(report, {.most_bytes = 5000});
  EXPECT_LE(markdown.size(), 5000u);
  EXPECT_THAT(markdown,
              StartsWith("### Performance regression: suite\n\nregression.\n"));
  EXPECT_THAT(markdown, HasSubstr("**slower**, confirmed"));
  EXPECT_THAT(markdown, Not(HasSubstr("More:")));
}

TEST(MarkdownReportTest, SaysWhatTheGateSays) {
  Report report = Example();
  report.results = {Same("a")};
  EXPECT_THAT(MarkdownReport(report),
              StartsWith("### No performance regression: `kernels`\n\npass: 1 "
                         "benchmark is unchanged."));
  report.results = {};
  EXPECT_THAT(MarkdownReport(report),
              StartsWith("### No verdict on performance"));
}

TEST(JUnitReportTest, HasACaseForEachBenchmark) {
  EXPECT_EQ(JUnitReport(Example()),
            R"XML(<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="kernels" tests="6" failures="1" errors="1">
  <testsuite name="kernels" tests="6" failures="1" errors="1" skipped="2" time="6.000" timestamp="2023-11-14T22:13:20">
    <properties>
      <property name="baseline" value="main"/>
      <property name="candidate" value="abc123"/>
      <property name="gate" value="regression"/>
    </properties>
    <testcase name="conv2d|3x3" classname="kernels.x86-64:znver4" time="1.500">
      <failure message="+5.1 % (+4.1 % to +6.2 %)" type="regression">change: +5.1 % (+4.1 % to +6.2 %, 14 processes)&#10;threshold: 3 %&#10;median: 1 ms -&gt; 1.051 ms&#10;cause: code generator: +5.0 % with the old schedule&#10;devices: board-1</failure>
    </testcase>
    <testcase name="b&lt;r&gt;oken" classname="kernels" time="0.000">
      <error message="the candidate does not build: 3:1: unknown intrinsic" type="not measured">the candidate does not build: 3:1: unknown intrinsic</error>
    </testcase>
    <testcase name="softmax" classname="kernels.x86-64:znver4" time="1.500">
      <skipped message="no verdict: after 48 processes +2.0 % to +4.0 % is still possible"/>
    </testcase>
    <testcase name="norm" classname="kernels.x86-64:znver4" time="1.500">
      <system-out>change: -20.0 % (-20.8 % to -19.2 %, 14 processes)&#10;threshold: 3 %&#10;median: 1 ms -&gt; 800 us&#10;devices: board-1</system-out>
    </testcase>
    <testcase name="dense" classname="kernels.x86-64:znver4" time="1.500">
      <system-out>change: +0.1 % (-0.9 % to +1.1 %, 14 processes)&#10;threshold: 3 %&#10;median: 1 ms -&gt; 1.001 ms&#10;devices: board-1</system-out>
    </testcase>
    <testcase name="added" classname="kernels" time="0.000">
      <skipped message="new"/>
    </testcase>
  </testsuite>
</testsuites>
)XML");
}

TEST(CsvReportTest, HasALineForEachBenchmark) {
  EXPECT_EQ(
      CsvReport(Example()),
      "suite,baseline,candidate,benchmark,device_class,comparison,verdict,"
      "confirmed,ratio,low,high,level,clusters,threshold,baseline_seconds,"
      "candidate_seconds,causes,remark,device_seconds\r\n"
      "kernels,main,abc123,conv2d|3x3,x86-64:znver4,compared,slower,true,"
      "1.0514,1.040886,1.061914,0.99,14,0.03,0.001,0.0010514,code generator,,"
      "1.5\r\n"
      "kernels,main,abc123,b<r>oken,,failed,,false,,,,,,0.03,,,,the candidate "
      "does not build: 3:1: unknown intrinsic,0\r\n"
      "kernels,main,abc123,softmax,x86-64:znver4,compared,inconclusive,false,"
      "1.03,1.0197,1.0403,0.99,14,0.03,0.001,0.00103,,after 48 processes +2.0 "
      "% to +4.0 % is still possible,1.5\r\n"
      "kernels,main,abc123,norm,x86-64:znver4,compared,faster,false,0.8,0.792,"
      "0.808,0.99,14,0.03,0.001,0.0008,,,1.5\r\n"
      "kernels,main,abc123,dense,x86-64:znver4,compared,same,false,1.001,"
      "0.99099,1.01101,0.99,14,0.03,0.001,0.001001,,,1.5\r\n"
      "kernels,main,abc123,added,,new,,false,,,,,,0.03,,0.002,,,0\r\n");
}

TEST(SmallerIsBetterReportTest, HasWhatWasMeasured) {
  Report report = Example();
  report.results.resize(4);
  EXPECT_EQ(SmallerIsBetterReport(report), R"([
  {
    "name": "dense",
    "unit": "us",
    "value": 1001.0,
    "range": "-0.9 % to +1.1 %",
    "extra": "same, +0.1 % against main"
  },
  {
    "name": "conv2d|3x3",
    "unit": "us",
    "value": 1051.4,
    "range": "+4.1 % to +6.2 %",
    "extra": "slower, +5.1 % against main"
  },
  {
    "name": "softmax",
    "unit": "us",
    "value": 1030.0,
    "range": "+2.0 % to +4.0 %",
    "extra": "inconclusive, +3.0 % against main"
  }
]
)");
  report.results = {Failed("a")};
  EXPECT_EQ(SmallerIsBetterReport(report), "[]\n");
}

TEST(GoogleBenchmarkReportTest, HasAFileForEachSide) {
  const absl::StatusOr<BenchmarkRun> baseline = ParseGoogleBenchmark(
      GoogleBenchmarkReport(Example(), ReportSide::kBaseline));
  const absl::StatusOr<BenchmarkRun> candidate = ParseGoogleBenchmark(
      GoogleBenchmarkReport(Example(), ReportSide::kCandidate));
  ASSERT_TRUE(baseline.ok()) << baseline.status();
  ASSERT_TRUE(candidate.ok()) << candidate.status();
  // The new one has no baseline, the failed one neither.
  ASSERT_EQ(baseline->benchmarks.size(), 4u);
  ASSERT_EQ(candidate->benchmarks.size(), 5u);
  EXPECT_EQ(baseline->benchmarks[1].name, "conv2d|3x3");
  EXPECT_NEAR(baseline->benchmarks[1].seconds[0], 1e-3, 1e-12);
  EXPECT_NEAR(candidate->benchmarks[1].seconds[0], 1.0514e-3, 1e-12);
}

TEST(ReportJsonTest, HasEverything) {
  Report report = Example();
  report.results.resize(2);
  EXPECT_EQ(ReportJson(report).dump(2) + "\n", R"({
  "suite": "kernels",
  "baseline": "main",
  "candidate": "abc123",
  "branch": "feature",
  "at": "2023-11-14T22:13:20Z",
  "gate": "regression",
  "exit_code": 1,
  "summary": "regression: conv2d|3x3 +5.1 %",
  "threshold": 0.03,
  "screening_error": 0.05,
  "confirmation_error": 0.01,
  "link": "https://ci/run/1?a=1&b=2",
  "benchmarks": [
    {
      "benchmark": "conv2d|3x3",
      "device_class": "x86-64:znver4",
      "devices": [
        "board-1"
      ],
      "comparison": "compared",
      "verdict": "slower",
      "confirmed": true,
      "threshold": 0.03,
      "ratio": {
        "ratio": 1.0514,
        "low": 1.040886,
        "high": 1.061914,
        "level": 0.99,
        "clusters": 14
      },
      "screening": {
        "ratio": 1.06,
        "low": 1.04,
        "high": 1.08,
        "level": 0.95,
        "clusters": 8
      },
      "baseline_seconds": 0.001,
      "candidate_seconds": 0.0010514,
      "attribution": {
        "causes": [
          {
            "cause": "code generator",
            "ratio": 1.05
          }
        ],
        "text": "code generator: +5.0 % with the old schedule"
      },
      "remark": "",
      "device_seconds": 1.5
    },
    {
      "benchmark": "dense",
      "device_class": "x86-64:znver4",
      "devices": [
        "board-1"
      ],
      "comparison": "compared",
      "verdict": "same",
      "confirmed": false,
      "threshold": 0.03,
      "ratio": {
        "ratio": 1.001,
        "low": 0.99099,
        "high": 1.01101,
        "level": 0.99,
        "clusters": 14
      },
      "screening": null,
      "baseline_seconds": 0.001,
      "candidate_seconds": 0.001001,
      "attribution": null,
      "remark": "",
      "device_seconds": 1.5
    }
  ]
}
)");
}

TEST(ReportJsonTest, UnknownNumbersAreNull) {
  Report report = Example();
  BenchmarkResult few = Open("a");
  few.outcome.ratio.low = 0;
  few.outcome.ratio.high = std::numeric_limits<double>::infinity();
  report.results = {few, Failed("b")};
  const nlohmann::ordered_json json = ReportJson(report);
  EXPECT_EQ(json["exit_code"], 4);
  EXPECT_TRUE(json["benchmarks"][0]["ratio"].is_null());  // the failed one
  EXPECT_TRUE(json["benchmarks"][0]["verdict"].is_null());
  EXPECT_TRUE(json["benchmarks"][1]["ratio"]["low"].is_null());
  EXPECT_TRUE(json["benchmarks"][1]["ratio"]["high"].is_null());
  EXPECT_THAT(CsvReport(report), HasSubstr("inconclusive,false,1.03,,,0.99"));
  EXPECT_THAT(SmallerIsBetterReport(report), Not(HasSubstr("range")));
}

// Names come from files of users, messages from compilers.
TEST(ReportTest, HostileTextsStayText) {
  Report report = Example();
  BenchmarkResult bad = Failed("=cmd|'/c calc'!A0\n| x | `y` <script>");
  bad.note = "\x1b[31m\xff ]]> @all <!-- \n| a | b |";
  report.results = {bad};
  const std::string markdown = MarkdownReport(report);
  EXPECT_THAT(markdown, Not(HasSubstr("<script>` |\n| ")));
  EXPECT_THAT(markdown, Not(HasSubstr("@all")));
  EXPECT_THAT(markdown, Not(HasSubstr("\x1b")));
  EXPECT_THAT(markdown, HasSubstr("&lt;!-- "));
  const std::string xml = JUnitReport(report);
  EXPECT_THAT(xml, Not(HasSubstr("<script>")));
  EXPECT_THAT(xml, Not(HasSubstr("]]>")));
  EXPECT_THAT(xml, Not(HasSubstr("\x1b")));
  EXPECT_THAT(CsvReport(report), HasSubstr("\"'=cmd|"));
  EXPECT_FALSE(Json::parse(SmallerIsBetterReport(report), nullptr, false)
                   .is_discarded());
}

}  // namespace
}  // namespace tilefarm::regression
