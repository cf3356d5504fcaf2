#include "database/race.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tilefarm::database {
namespace {

Standing Confirmed(double seconds, double low, double high,
                   int64_t instructions = 10) {
  return {.seconds = seconds,
          .low = low,
          .high = high,
          .confirmed = true,
          .instructions = instructions};
}

Standing First(double seconds, double low, double high) {
  return {.seconds = seconds, .low = low, .high = high};
}

TEST(PickWinner, TheFastestMedian) {
  EXPECT_EQ(PickWinner(std::vector{Confirmed(3, 2.9, 3.1), Confirmed(2, 1.9, 2),
                                   Confirmed(4, 4, 4)}),
            1u);
}

TEST(PickWinner, AFirstTimeClaimsItsUpperEndAlone) {
  // The luckiest median of many does not beat a confirmed one ...
  EXPECT_EQ(
      PickWinner(std::vector{First(0.9, 0.8, 1.2), Confirmed(1, 0.9, 1.1)}),
      1u);
  // ... but a candidate that is faster beyond doubt does.
  EXPECT_EQ(
      PickWinner(std::vector{First(0.5, 0.4, 0.6), Confirmed(1, 0.9, 1.1)}),
      0u);
  // Without an interval, only the median counts.
  EXPECT_EQ(PickWinner(std::vector{First(2, 0, 0), First(1, 0, 0)}), 1u);
}

TEST(PickWinner, TiesGoToTheSimplerSchedule) {
  EXPECT_EQ(PickWinner(std::vector{Confirmed(1.000, 0.99, 1.02, 40),
                                   Confirmed(1.004, 0.99, 1.02, 20),
                                   Confirmed(1.008, 0.99, 1.02, 30)}),
            1u);
  // Of equally simple ones: the faster, then the first.
  EXPECT_EQ(PickWinner(std::vector{Confirmed(1.001, 0.99, 1.02),
                                   Confirmed(1.000, 0.99, 1.02),
                                   Confirmed(1.000, 0.99, 1.02)}),
            1u);
}

TEST(PickWinner, NoTieBeyondTheIntervalOrAPercent) {
  // The leader's interval distinguishes them.
  EXPECT_EQ(PickWinner(std::vector{Confirmed(1.000, 0.999, 1.001, 40),
                                   Confirmed(1.004, 1.003, 1.005, 20)}),
            0u);
  // It does not, but a slower candidate does not win by simplicity.
  EXPECT_EQ(PickWinner(std::vector{Confirmed(1.00, 0.8, 1.2, 40),
                                   Confirmed(1.05, 0.8, 1.2, 20)}),
            0u);
  // A candidate with only a first time does not count as tied.
  Standing simple = First(1.001, 0.99, 1.02);
  simple.instructions = 1;
  EXPECT_EQ(PickWinner(std::vector{Confirmed(1, 0.99, 1.02, 40), simple}), 0u);
}

TEST(RoundsTest, ThoseOfOneJobCountTogether) {
  Rounds rounds;
  EXPECT_EQ(rounds.count(), 0);
  rounds.Add("job-1", std::vector<double>{1, 2, 3});
  rounds.Add("job-1", std::vector<double>{4, 5});
  EXPECT_EQ(rounds.count(), 2);
  EXPECT_EQ(rounds.interval().median, 3);
  EXPECT_EQ(rounds.job_id(), "job-1");
}

TEST(RoundsTest, AnotherJobOrOneByHandReplacesThem) {
  Rounds rounds;
  rounds.Add("job-1", std::vector<double>{1, 2, 3});
  rounds.Add("job-2", std::vector<double>{7});
  EXPECT_EQ(rounds.count(), 1);
  EXPECT_EQ(rounds.interval().median, 7);
  for (const double seconds : {8, 9}) {
    rounds.Add("", std::vector<double>{seconds});
    EXPECT_EQ(rounds.count(), 1);
    EXPECT_EQ(rounds.interval().median, seconds);
  }
}

TEST(RulesOutTest, WhatSpeaksOfTheCode) {
  for (const Status status :
       {Status::kWrongResult, Status::kRunError, Status::kRunTimeout}) {
    EXPECT_TRUE(RulesOut(status));
  }
  for (const Status status :
       {Status::kOk, Status::kDeviceLost, Status::kCompileTimeout}) {
    EXPECT_FALSE(RulesOut(status));
  }
}

TEST(CountInstructionsTest, OneALine) {
  EXPECT_EQ(CountInstructions(""), 0);
  EXPECT_EQ(CountInstructions("a"), 1);
  EXPECT_EQ(CountInstructions("a\nb\n"), 2);
  EXPECT_EQ(CountInstructions("a\n\nb"), 2);
}

}  // namespace
}  // namespace tilefarm::database
