#include "server/regression/paired_ratio.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"

namespace tilefarm::regression {
namespace {

using ::testing::ElementsAre;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(ClusterPlanTest, ShortCallsShareASample) {
  const absl::StatusOr<ClusterPlan> plan = PlanCluster(1e-5);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->calls_per_sample, 50);  // 0.5 ms
  EXPECT_EQ(plan->rounds, 20);            // of 2 ms in 40 ms
  EXPECT_NEAR(plan->seconds, 0.04, 1e-9);
}

TEST(ClusterPlanTest, LongCallsAreSamplesWithFewRounds) {
  const absl::StatusOr<ClusterPlan> plan = PlanCluster(0.5);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->calls_per_sample, 1);
  EXPECT_EQ(plan->rounds, 4);
  EXPECT_NEAR(plan->seconds, 8, 1e-9);
}

TEST(ClusterPlanTest, ACallOfNoTimeStillHasABound) {
  const absl::StatusOr<ClusterPlan> plan = PlanCluster(1e-300);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->calls_per_sample, 10'000'000);
  EXPECT_EQ(plan->rounds, 64);
}

TEST(ClusterPlanTest, TimesMustBePositive) {
  for (const double seconds : {0.0, -1.0, kInfinity, kNan}) {
    EXPECT_EQ(PlanCluster(seconds).status().code(),
              absl::StatusCode::kInvalidArgument)
        << seconds;
  }
}

TEST(SampleOrderTest, ARoundIsAbba) {
  EXPECT_THAT(SampleOrder(false, 2),
              ElementsAre(false, true, true, false, false, true, true, false));
  EXPECT_THAT(SampleOrder(true, 1), ElementsAre(true, false, false, true));
  EXPECT_TRUE(SampleOrder(true, 0).empty());
}

TEST(CandidateFirstTest, CoinsAreFairAndIndependentOfSeedsAndNeighbours) {
  int heads = 0, like_next = 0, like_next_seed = 0;
  constexpr int kCoins = 10'000;
  for (int i = 0; i < kCoins; ++i) {
    const bool coin = CandidateFirst(7, i);
    heads += coin ? 1 : 0;
    like_next += coin == CandidateFirst(7, i + 1) ? 1 : 0;
    like_next_seed += coin == CandidateFirst(8, i) ? 1 : 0;
  }
  // Four standard deviations.
  EXPECT_NEAR(heads, kCoins / 2, 200);
  EXPECT_NEAR(like_next, kCoins / 2, 200);
  EXPECT_NEAR(like_next_seed, kCoins / 2, 200);
}

TEST(CandidateFirstTest, CoinsAreTheSameEverywhere) {
  std::vector<bool> coins;
  for (int i = 0; i < 16; ++i) coins.push_back(CandidateFirst(42, i));
  EXPECT_THAT(coins,
              ElementsAre(true, false, false, false, true, false, false, false,
                          true, false, true, true, true, false, false, true));
}

TEST(ClusterLogRatioTest, IsTheMedianOfThePairs) {
  const std::vector<Pair> pairs = {{1, 1.1}, {2, 2.2}, {1, 50}};
  const absl::StatusOr<double> ratio = ClusterLogRatio(pairs);
  ASSERT_TRUE(ratio.ok()) << ratio.status();
  EXPECT_NEAR(*ratio, std::log(1.1), 1e-12);
}

TEST(ClusterLogRatioTest, ExchangingTheTwoChangesTheSignAlone) {
  Rng rng(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<Pair> pairs, exchanged;
    const size_t n = 1 + rng.Below(20);
    for (size_t i = 0; i < n; ++i) {
      pairs.push_back({1e-3 + rng.Uniform(), 1e-3 + rng.Uniform()});
      exchanged.push_back(
          {pairs.back().candidate_seconds, pairs.back().baseline_seconds});
    }
    // Exactly: the signs of clusters must be fair coins.
    EXPECT_EQ(*ClusterLogRatio(pairs), -*ClusterLogRatio(exchanged));
  }
}

TEST(ClusterLogRatioTest, RejectsWhatIsNoTime) {
  EXPECT_EQ(ClusterLogRatio({}).status().code(),
            absl::StatusCode::kInvalidArgument);
  for (const double bad : {0.0, -1e-3, kInfinity, kNan}) {
    EXPECT_EQ(
        ClusterLogRatio(std::vector<Pair>{{1, 1}, {bad, 1}}).status().code(),
        absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ClusterLogRatio(std::vector<Pair>{{1, bad}}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(EstimateRatioTest, IsBackOnTheScaleOfRatios) {
  std::vector<double> logs;
  for (int i = -4; i <= 4; ++i) logs.push_back(std::log(1.05) + 0.001 * i);
  const absl::StatusOr<RatioInterval> ratio = EstimateRatio(logs, 0.95);
  ASSERT_TRUE(ratio.ok()) << ratio.status();
  EXPECT_NEAR(ratio->ratio, 1.05, 1e-9);
  EXPECT_LT(ratio->low, 1.05);
  EXPECT_GT(ratio->high, 1.05);
  EXPECT_NEAR(ratio->low * ratio->high, 1.05 * 1.05, 1e-6);
  EXPECT_EQ(ratio->clusters, 9);
  EXPECT_EQ(ratio->level, 0.95);
}

TEST(EstimateRatioTest, FewClustersBoundNothing) {
  const absl::StatusOr<RatioInterval> ratio =
      EstimateRatio(std::vector<double>{0.1, 0.1, 0.1}, 0.99);
  ASSERT_TRUE(ratio.ok()) << ratio.status();
  EXPECT_EQ(ratio->low, 0);
  EXPECT_EQ(ratio->high, kInfinity);
}

TEST(EstimateRatioTest, RejectsBadInput) {
  const std::vector<double> one = {0.0};
  const std::vector<double> many(257, 0.0);
  const std::vector<double> infinite = {0.0, kInfinity};
  for (const absl::Status& status :
       {EstimateRatio({}, 0.95).status(), EstimateRatio(many, 0.95).status(),
        EstimateRatio(infinite, 0.95).status(), EstimateRatio(one, 0).status(),
        EstimateRatio(one, 1).status(), EstimateRatio(one, kNan).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  }
}

}  // namespace
}  // namespace tilefarm::regression
