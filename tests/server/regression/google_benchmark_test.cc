#include "server/regression/google_benchmark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"

namespace tilefarm::regression {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// As version 1.7 prints three repetitions, a manual time and an error.
constexpr char kOutput[] = R"(This program talks first.
{
  "context": {
    "date": "2024-05-01T10:00:00+00:00",
    "host_name": "bench",
    "num_cpus": 2,
    "cpu_scaling_enabled": true,
    "load_avg": [0.1, 0.2, 0.3],
    "library_build_type": "release"
  },
  "benchmarks": [
    {
      "name": "BM_Copy/8/repeats:2",
      "family_index": 0,
      "run_name": "BM_Copy/8/repeats:2",
      "run_type": "iteration",
      "repetitions": 2,
      "repetition_index": 0,
      "threads": 1,
      "iterations": 1000,
      "real_time": 250.0,
      "cpu_time": 249.0,
      "time_unit": "ns",
      "bytes_per_second": 1e9
    },
    {
      "name": "BM_Copy/8/repeats:2",
      "run_name": "BM_Copy/8/repeats:2",
      "run_type": "iteration",
      "repetition_index": 1,
      "iterations": 1000,
      "real_time": 260.0,
      "cpu_time": 249.0,
      "time_unit": "ns"
    },
    {
      "name": "BM_Copy/8/repeats:2_mean",
      "run_name": "BM_Copy/8/repeats:2",
      "run_type": "aggregate",
      "aggregate_name": "mean",
      "aggregate_unit": "time",
      "iterations": 2,
      "real_time": 255.0,
      "cpu_time": 249.0,
      "time_unit": "ns"
    },
    {
      "name": "BM_Copy/8/repeats:2_cv",
      "run_name": "BM_Copy/8/repeats:2",
      "run_type": "aggregate",
      "aggregate_name": "cv",
      "aggregate_unit": "percentage",
      "iterations": 2,
      "real_time": 0.02,
      "cpu_time": 0.0,
      "time_unit": "ns"
    },
    {
      "name": "BM_Wait/manual_time",
      "run_name": "BM_Wait/manual_time",
      "run_type": "iteration",
      "iterations": 10,
      "real_time": 1.5,
      "cpu_time": 0.1,
      "time_unit": "ms"
    },
    {
      "name": "BM_Fails",
      "run_name": "BM_Fails",
      "run_type": "iteration",
      "error_occurred": true,
      "error_message": "no such file",
      "iterations": 0,
      "real_time": 0.0,
      "cpu_time": 0.0,
      "time_unit": "ns"
    },
    {
      "name": "BM_Sort_BigO",
      "run_name": "BM_Sort",
      "run_type": "aggregate",
      "aggregate_name": "BigO",
      "cpu_coefficient": 4.0,
      "real_coefficient": 4.0,
      "big_o": "N",
      "time_unit": "ns"
    }
  ]
}
)";

std::string ParseError(const std::string& text) {
  const absl::Status status = ParseGoogleBenchmark(text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(status.message());
}

// A document with one benchmark of these keys.
std::string One(const std::string& keys) {
  return R"({"benchmarks": [{"name": "BM_a")" + keys + "}]}";
}

TEST(GoogleBenchmarkTest, RepetitionsAreSamplesOfOneBenchmark) {
  const absl::StatusOr<BenchmarkRun> run = ParseGoogleBenchmark(kOutput);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->date, "2024-05-01T10:00:00+00:00");
  EXPECT_EQ(run->host_name, "bench");
  EXPECT_EQ(run->build_type, "release");
  EXPECT_TRUE(run->cpu_scaling);
  ASSERT_EQ(run->benchmarks.size(), 3u);
  EXPECT_EQ(run->benchmarks[0].name, "BM_Copy/8");
  EXPECT_THAT(
      run->benchmarks[0].seconds,
      ElementsAre(DoubleNear(250e-9, 1e-15), DoubleNear(260e-9, 1e-15)));
  EXPECT_EQ(run->benchmarks[0].iterations, 2000);
  EXPECT_FALSE(run->benchmarks[0].aggregate_only);
  EXPECT_EQ(run->benchmarks[1].name, "BM_Wait/manual_time");
  EXPECT_THAT(run->benchmarks[1].seconds,
              ElementsAre(DoubleNear(1.5e-3, 1e-9)));
  EXPECT_EQ(run->benchmarks[2].error, "no such file");
  EXPECT_THAT(run->benchmarks[2].seconds, IsEmpty());
}

TEST(GoogleBenchmarkTest, AggregatesAloneGiveTheirMedian) {
  const absl::StatusOr<BenchmarkRun> run = ParseGoogleBenchmark(R"({
    "benchmarks": [
      {"name": "BM_a_mean", "run_name": "BM_a", "run_type": "aggregate",
       "aggregate_name": "mean", "real_time": 3, "time_unit": "us"},
      {"name": "BM_a_median", "run_name": "BM_a", "run_type": "aggregate",
       "aggregate_name": "median", "real_time": 2, "time_unit": "us"},
      {"name": "BM_b_mean", "real_time": 5, "time_unit": "s"}]})");
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_EQ(run->benchmarks.size(), 2u);
  EXPECT_THAT(run->benchmarks[0].seconds, ElementsAre(DoubleNear(2e-6, 1e-12)));
  EXPECT_TRUE(run->benchmarks[0].aggregate_only);
  // Without a run type, as old versions print it.
  EXPECT_EQ(run->benchmarks[1].name, "BM_b");
  EXPECT_THAT(run->benchmarks[1].seconds, ElementsAre(5));
}

TEST(GoogleBenchmarkTest, ARepetitionThatFailsFailsTheBenchmark) {
  const absl::StatusOr<BenchmarkRun> run = ParseGoogleBenchmark(R"({
    "benchmarks": [
      {"name": "BM_a", "real_time": 3, "time_unit": "us"},
      {"name": "BM_a", "error_occurred": true},
      {"name": "BM_a", "real_time": 3, "time_unit": "us"},
      {"name": "BM_b", "skipped": true, "skip_message": "no device"}]})");
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->benchmarks[0].error, "it reported an error");
  EXPECT_THAT(run->benchmarks[0].seconds, IsEmpty());
  EXPECT_EQ(run->benchmarks[1].error, "skipped: no device");
}

TEST(GoogleBenchmarkTest, RejectsWhatIsNot) {
  EXPECT_THAT(ParseError(""), HasSubstr("--benchmark_format=json"));
  EXPECT_THAT(ParseError("BM_a 3 ns\n"), HasSubstr("no JSON object"));
  EXPECT_THAT(ParseError("{"), HasSubstr("no JSON object"));
  EXPECT_THAT(ParseError("{}"), HasSubstr("no list \"benchmarks\""));
  EXPECT_THAT(ParseError(R"({"benchmarks": {}})"), HasSubstr("no list"));
  EXPECT_THAT(ParseError(R"({"benchmarks": [3]})"), HasSubstr("is an object"));
  EXPECT_THAT(ParseError(R"({"benchmarks": [{}]})"), HasSubstr("no name"));
  EXPECT_THAT(ParseError(R"({"benchmarks": [{"name": 3}]})"),
              HasSubstr("no name"));
  EXPECT_THAT(ParseError(One(R"(, "real_time": 1, "time_unit": "min")")),
              HasSubstr("'BM_a': the time unit 'min'"));
  EXPECT_THAT(ParseError(One(R"(, "time_unit": "ns")")),
              HasSubstr("real_time"));
  EXPECT_THAT(ParseError(One(R"(, "real_time": "1")")), HasSubstr("real_time"));
  EXPECT_THAT(ParseError(One(R"(, "real_time": -1)")), HasSubstr("negative"));
  EXPECT_THAT(ParseError(One(R"(, "run_type": "aggregate",
                           "aggregate_name": "stddev", "real_time": 1)")),
              HasSubstr("it has no time"));
  EXPECT_THAT(ParseError(std::string(100, '{')), HasSubstr("no JSON object"));
}

TEST(GoogleBenchmarkTest, NamesOfSuffixesAloneAreKept) {
  const absl::StatusOr<BenchmarkRun> run = ParseGoogleBenchmark(R"({
    "benchmarks": [
      {"name": "/repeats:3", "real_time": 3},
      {"name": "_mean", "run_type": "aggregate", "aggregate_name": "mean",
       "real_time": 3}]})");
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->benchmarks[0].name, "/repeats:3");
  EXPECT_EQ(run->benchmarks[1].name, "_mean");
}

TEST(GoogleBenchmarkTest, LargeIterationCountsDoNotOverflow) {
  const absl::StatusOr<BenchmarkRun> run = ParseGoogleBenchmark(R"({
    "benchmarks": [
      {"name": "BM_a", "real_time": 3, "iterations": 9223372036854775807},
      {"name": "BM_a", "real_time": 3, "iterations": 9223372036854775807}]})");
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_GT(run->benchmarks[0].iterations, 0);
}

TEST(GoogleBenchmarkTest, WhatIsWrittenIsReadAgain) {
  BenchmarkRun run;
  run.date = "2024-05-01T10:00:00Z";
  run.host_name = "bench";
  run.benchmarks.push_back(
      {.name = "a", .seconds = {1e-3, 2e-3, 4e-3}, .iterations = 30});
  run.benchmarks.push_back({.name = "b \"quoted\"", .error = "why \xff"});
  const std::string text = WriteGoogleBenchmark(run);
  const absl::StatusOr<BenchmarkRun> again = ParseGoogleBenchmark(text);
  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_EQ(again->benchmarks.size(), 2u);
  EXPECT_EQ(again->date, run.date);
  EXPECT_EQ(again->benchmarks[0].name, "a");
  EXPECT_THAT(again->benchmarks[0].seconds,
              ElementsAre(DoubleNear(1e-3, 1e-12), DoubleNear(2e-3, 1e-12),
                          DoubleNear(4e-3, 1e-12)));
  EXPECT_EQ(again->benchmarks[0].iterations, 30);
  EXPECT_EQ(again->benchmarks[1].name, "b \"quoted\"");
  EXPECT_EQ(again->benchmarks[1].error, "why \xEF\xBF\xBD");
}

TEST(GoogleBenchmarkTest, SeveralRepetitionsHaveAggregates) {
  BenchmarkRun run;
  run.benchmarks.push_back(
      {.name = "a", .seconds = {1e-3, 2e-3, 6e-3}, .iterations = 3});
  const auto json = nlohmann::json::parse(WriteGoogleBenchmark(run));
  std::map<std::string, double> times;
  for (const auto& entry : json["benchmarks"]) {
    if (entry["run_type"] == "aggregate") {
      times[entry["name"]] = entry["real_time"];
    }
  }
  EXPECT_NEAR(times["a_mean"], 3e6, 1);
  EXPECT_NEAR(times["a_median"], 2e6, 1);
  EXPECT_NEAR(times["a_stddev"], 2645751.3, 1);
  EXPECT_NEAR(times["a_cv"], 0.88191710, 1e-6);
}

}  // namespace
}  // namespace tilefarm::regression
