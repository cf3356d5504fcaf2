#include "server/regression/confirmed_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

namespace tilefarm::regression {
namespace {

using ::testing::HasSubstr;
using Phase = ConfirmedTest::Phase;

ConfirmedTest ConfirmedTestOf(int benchmarks = 1,
                              const GateOptions& options = {}) {
  absl::StatusOr<ConfirmedTest> test =
      ConfirmedTest::Create(options, benchmarks);
  EXPECT_TRUE(test.ok()) << test.status();
  return *std::move(test);
}

// Gives clusters of the ratio until the phase ends, some above and some below.
void Measure(ConfirmedTest& test, double ratio) {
  const Phase phase = test.phase();
  for (int i = 0; test.phase() == phase && test.clusters_wanted() > 0; ++i) {
    const double deviation = 1e-4 * (1 + 0.01 * i);
    ASSERT_TRUE(
        test.Add(std::log(ratio) + (i % 2 == 0 ? deviation : -deviation)).ok());
  }
}

TEST(ConfirmedTestTest, AnUnchangedBenchmarkTakesOneScreening) {
  ConfirmedTest test = ConfirmedTestOf();
  EXPECT_EQ(test.phase(), Phase::kScreening);
  Measure(test, 1.0);
  EXPECT_EQ(test.phase(), Phase::kSettled);
  EXPECT_EQ(test.confirmation(), nullptr);
  const TestOutcome outcome = test.outcome();
  EXPECT_EQ(outcome.verdict, Verdict::kSame);
  EXPECT_FALSE(outcome.confirmed);
  EXPECT_FALSE(outcome.screening.has_value());
  EXPECT_EQ(outcome.note, "");
}

TEST(ConfirmedTestTest, FasterNeedsNoConfirmation) {
  ConfirmedTest test = ConfirmedTestOf();
  Measure(test, 0.8);
  EXPECT_EQ(test.phase(), Phase::kSettled);
  EXPECT_EQ(test.outcome().verdict, Verdict::kFaster);
}

TEST(ConfirmedTestTest, ASuspectIsMeasuredAfresh) {
  ConfirmedTest test = ConfirmedTestOf();
  Measure(test, 1.10);
  EXPECT_EQ(test.phase(), Phase::kConfirmation);
  ASSERT_NE(test.confirmation(), nullptr);
  EXPECT_TRUE(test.confirmation()->log_ratios().empty());
  Measure(test, 1.08);
  EXPECT_EQ(test.phase(), Phase::kSettled);
  const TestOutcome outcome = test.outcome();
  EXPECT_EQ(outcome.verdict, Verdict::kSlower);
  EXPECT_TRUE(outcome.confirmed);
  // The estimate is that of the fresh run alone.
  EXPECT_NEAR(outcome.ratio.ratio, 1.08, 1e-3);
  ASSERT_TRUE(outcome.screening.has_value());
  EXPECT_NEAR(outcome.screening->ratio, 1.10, 1e-3);
}

TEST(ConfirmedTestTest, AnUnconfirmedSuspectIsNotSlower) {
  ConfirmedTest test = ConfirmedTestOf();
  Measure(test, 1.10);
  Measure(test, 1.0);
  EXPECT_EQ(test.outcome().verdict, Verdict::kSame);
  EXPECT_FALSE(test.outcome().confirmed);
  EXPECT_THAT(
      test.outcome().note,
      HasSubstr("a suspect (+10.0 %) that a fresh run did not confirm"));
}

TEST(ConfirmedTestTest, ContradictionsAreInconclusive) {
  ConfirmedTest faster = ConfirmedTestOf();
  Measure(faster, 1.10);
  Measure(faster, 0.9);
  EXPECT_EQ(faster.outcome().verdict, Verdict::kInconclusive);
  EXPECT_THAT(faster.outcome().note, HasSubstr("faster in a fresh run"));

  ConfirmedTest close = ConfirmedTestOf();
  Measure(close, 1.10);
  Measure(close, 1.03);
  EXPECT_EQ(close.outcome().verdict, Verdict::kInconclusive);
  EXPECT_FALSE(close.outcome().confirmed);
  EXPECT_THAT(close.outcome().note, HasSubstr("not confirmed"));
}

TEST(ConfirmedTestTest, ABudgetThatEndsLeavesAReason) {
  ConfirmedTest nothing = ConfirmedTestOf();
  nothing.Finish();
  EXPECT_EQ(nothing.phase(), Phase::kSettled);
  EXPECT_EQ(nothing.outcome().note, "nothing was measured");

  ConfirmedTest few = ConfirmedTestOf();
  ASSERT_TRUE(few.Add(0.2).ok());
  few.Finish();
  EXPECT_EQ(few.outcome().verdict, Verdict::kInconclusive);
  EXPECT_EQ(few.outcome().note,
            "its budget ended after 1 process, and an answer takes at least 8");

  ConfirmedTest suspect = ConfirmedTestOf();
  Measure(suspect, 1.2);
  suspect.Finish();
  EXPECT_EQ(suspect.phase(), Phase::kSettled);
  EXPECT_EQ(suspect.outcome().verdict, Verdict::kInconclusive);
  EXPECT_FALSE(suspect.outcome().confirmed);

  ConfirmedTest close = ConfirmedTestOf();
  Measure(close, 1.03);
  EXPECT_THAT(
      close.outcome().note,
      HasSubstr("after 48 processes +3.0 % to +3.0 % is still possible"));
}

TEST(ConfirmedTestTest, ASettledTestTakesNoMore) {
  ConfirmedTest test = ConfirmedTestOf();
  Measure(test, 1.0);
  EXPECT_EQ(test.clusters_wanted(), 0);
  EXPECT_EQ(test.Add(0).code(), absl::StatusCode::kFailedPrecondition);
  test.Finish();
  EXPECT_EQ(test.outcome().verdict, Verdict::kSame);
}

// Twice as many benchmarks halve the error of each, which costs one cluster.
TEST(ConfirmedTestTest, ErrorsAreSharedByTheBenchmarks) {
  const int alone = ConfirmedTestOf(1).clusters_wanted();
  EXPECT_EQ(ConfirmedTestOf(2).clusters_wanted(), alone + 1);
  EXPECT_EQ(ConfirmedTestOf(16).clusters_wanted(), alone + 4);
  EXPECT_NEAR(ConfirmedTestOf(16).screening().options().error, 0.05 / 16,
              1e-15);
  ConfirmedTest suspect = ConfirmedTestOf(16);
  Measure(suspect, 1.2);
  ASSERT_NE(suspect.confirmation(), nullptr);
  EXPECT_NEAR(suspect.confirmation()->options().error, 2 * 0.01 / 16, 1e-15);
}

TEST(ConfirmedTestTest, RejectsOptionsOutOfRange) {
  const auto message = [](const GateOptions& options, int benchmarks) {
    const absl::Status status =
        ConfirmedTest::Create(options, benchmarks).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(message({}, 0), HasSubstr("no benchmarks"));
  EXPECT_THAT(message({.screening_error = 0.3}, 1), HasSubstr("error"));
  EXPECT_THAT(message({.confirmation_error = 0}, 1), HasSubstr("error"));
  EXPECT_THAT(message({.threshold = -1}, 1), HasSubstr("threshold"));
  EXPECT_THAT(message({.most_clusters = 10}, 1000),
              HasSubstr("at least 18 clusters"));
}

}  // namespace
}  // namespace tilefarm::regression
