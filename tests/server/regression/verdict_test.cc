#include "server/regression/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/server/regression/results.h"

namespace tilefarm::regression {
namespace {

using ::testing::ElementsAre;
using Results = std::vector<BenchmarkResult>;

std::vector<std::string> Names(const Results& results) {
  std::vector<std::string> names;
  for (const BenchmarkResult* result : WorstFirst(results)) {
    names.push_back(result->benchmark);
  }
  return names;
}

TEST(GateTest, PassesWhereAllAreTheSameOrFaster) {
  const Results results = {Same("a"), Faster("b"), New("c")};
  EXPECT_EQ(GateOf(results), Gate::kPass);
  EXPECT_EQ(ExitCodeOf(GateOf(results)), 0);
  EXPECT_EQ(GateSummary(results),
            "pass: 2 benchmarks are unchanged or faster (1 faster)");
  EXPECT_EQ(GateSummary(Results{Same("a")}), "pass: 1 benchmark is unchanged");
}

TEST(GateTest, AConfirmedRegressionFailsWhateverElseIsOpen) {
  const Results results = {Same("a"), Slower("b", 1.051), Failed("c"),
                           Open("d")};
  EXPECT_EQ(GateOf(results), Gate::kRegression);
  EXPECT_EQ(ExitCodeOf(GateOf(results)), 1);
  EXPECT_EQ(GateSummary(results),
            "regression: b +5.1 %; 2 of 4 benchmarks have no verdict");
}

TEST(GateTest, ManyRegressionsAreCounted) {
  const Results results = {Slower("a", 1.1), Slower("b", 1.4), Slower("c", 2.5),
                           Slower("d", 1.2), Slower("e", 1.3)};
  EXPECT_EQ(GateSummary(results),
            "regression: c x2.50, b +40.0 %, e +30.0 % and 2 more");
}

TEST(GateTest, AnUnconfirmedSuspectIsNoRegression) {
  BenchmarkResult suspect = Slower("a", 1.1);
  suspect.outcome.confirmed = false;
  suspect.outcome.verdict = Verdict::kInconclusive;
  EXPECT_EQ(GateOf(Results{suspect}), Gate::kNoVerdict);
}

TEST(GateTest, WhatIsOpenLeavesItWithoutAVerdict) {
  EXPECT_EQ(GateOf(Results{Same("a"), Open("b")}), Gate::kNoVerdict);
  EXPECT_EQ(GateOf(Results{Same("a"), Failed("b")}), Gate::kNoVerdict);
  EXPECT_EQ(ExitCodeOf(Gate::kNoVerdict), 4);
  EXPECT_EQ(GateSummary(Results{Same("a"), Open("b")}),
            "no verdict: 1 of 2 benchmarks has no verdict");
}

TEST(GateTest, ComparingNothingIsNoPass) {
  EXPECT_EQ(GateOf({}), Gate::kNoVerdict);
  EXPECT_EQ(GateOf(Results{New("a"), Removed("b")}), Gate::kNoVerdict);
  EXPECT_EQ(GateSummary(Results{New("a")}),
            "no verdict: no benchmark could be compared");
}

TEST(WorstFirstTest, IsTheOrderOfReports) {
  const Results results = {
      Same("same"),          New("new"),       Slower("slow", 1.05),
      Open("open"),          Faster("fast"),   Removed("gone"),
      Slower("slower", 1.4), Failed("failed"), Same("also same")};
  EXPECT_THAT(Names(results),
              ElementsAre("slower", "slow", "failed", "open", "fast",
                          "also same", "same", "new", "gone"));
}

TEST(NamesTest, AreThoseOfReports) {
  EXPECT_EQ(GateName(Gate::kPass), "pass");
  EXPECT_EQ(GateName(Gate::kRegression), "regression");
  EXPECT_EQ(GateName(Gate::kNoVerdict), "no verdict");
  EXPECT_EQ(ComparisonName(Comparison::kCompared), "compared");
  EXPECT_EQ(ComparisonName(Comparison::kNew), "new");
  EXPECT_EQ(ComparisonName(Comparison::kRemoved), "removed");
  EXPECT_EQ(ComparisonName(Comparison::kFailed), "failed");
}

}  // namespace
}  // namespace tilefarm::regression
