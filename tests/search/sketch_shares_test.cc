#include "server/search/sketch_shares.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace tilefarm::search {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

void Try(SketchShares& shares, int sketch, int trials, double seconds) {
  for (int i = 0; i < trials; ++i) {
    shares.Proposed(sketch);
    shares.Measured(sketch, seconds);
  }
}

TEST(SketchSharesTest, EachIsTriedBeforeAnyIsJudged) {
  SketchShares shares(3);
  const std::vector<double> guesses = {3, 1, 2};
  std::vector<int> order;
  for (int i = 0; i < 6; ++i) {
    const auto next = shares.Next(guesses);
    ASSERT_TRUE(next.has_value());
    order.push_back(*next);
    shares.Proposed(*next);
  }
  EXPECT_EQ(order, (std::vector<int>{1, 2, 0, 1, 2, 0}));
  // All are being measured, none has a result.
  EXPECT_EQ(shares.Next(guesses), std::nullopt);
  EXPECT_EQ(shares.trials(1), SketchShares::kMinTrials);
}

TEST(SketchSharesTest, OnlySketchesWithACandidateAreAsked) {
  SketchShares shares(2);
  EXPECT_EQ(shares.Next(std::vector<double>{kNone, 5}), 1);
  EXPECT_EQ(shares.Next(std::vector<double>{kNone, kNone}), std::nullopt);
}

TEST(SketchSharesTest, WhatMayBecomeTheFastestIsTriedOn) {
  SketchShares shares(2);
  const std::vector<double> guesses = {1, 1};
  Try(shares, 0, 8, 1.0);
  // Half as fast: after two trials, a factor of 2 is still possible, but not
  // after three.
  Try(shares, 1, 2, 1.9);
  EXPECT_EQ(shares.Next(guesses), 1);
  Try(shares, 1, 1, 1.9);
  EXPECT_EQ(shares.Next(guesses), std::nullopt);
  // A better tile makes it a candidate again.
  Try(shares, 1, 1, 1.2);
  EXPECT_EQ(shares.Next(guesses), 1);
  Try(shares, 1, 20, 1.2);
  EXPECT_EQ(shares.Next(guesses), std::nullopt);
}

TEST(SketchSharesTest, TheFastestNeedsNoShare) {
  SketchShares shares(2);
  const std::vector<double> guesses = {1, 1};
  Try(shares, 0, 2, 1.0);
  Try(shares, 1, 2, 100);
  EXPECT_EQ(shares.Next(guesses), std::nullopt);
  // The sketch that led so far.
  Try(shares, 1, 1, 0.9);
  EXPECT_EQ(shares.Next(guesses), 0);
}

TEST(SketchSharesTest, AMoreHopefulSketchComesFirst) {
  SketchShares shares(3);
  const std::vector<double> guesses = {1, 1, 1};
  Try(shares, 0, 10, 1.0);
  Try(shares, 1, 4, 1.1);
  Try(shares, 2, 2, 1.1);
  EXPECT_EQ(shares.Next(guesses), 2);
}

TEST(SketchSharesTest, FailuresAloneEndASketch) {
  SketchShares shares(2);
  const std::vector<double> guesses = {1, 1};
  Try(shares, 0, 2, 1.0);
  shares.Proposed(1);
  EXPECT_EQ(shares.Next(guesses), 1);
  shares.Proposed(1);
  EXPECT_EQ(shares.Next(guesses), std::nullopt);
  EXPECT_EQ(shares.best_seconds(1), 0);
}

TEST(SketchSharesTest, BestIsTheLeast) {
  SketchShares shares(1);
  shares.Measured(0, 2);
  shares.Measured(0, 1);
  shares.Measured(0, 3);
  shares.Measured(0, 0);
  EXPECT_EQ(shares.best_seconds(0), 1);
}

}  // namespace
}  // namespace tilefarm::search
