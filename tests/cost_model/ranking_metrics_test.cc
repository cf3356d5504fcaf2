#include <vector>

#include "cost_model/cost_model.h"
#include "gtest/gtest.h"

namespace tilefarm::cost_model {
namespace {

RankingMetrics Of(const std::vector<float>& predicted,
                  const std::vector<float>& truth, int k = 2) {
  return ComputeRankingMetrics(predicted, truth, k);
}

TEST(RankingMetrics, AllRightAndAllWrong) {
  EXPECT_EQ(Of({1, 2, 3}, {10, 20, 30}).pairwise_accuracy, 1);
  EXPECT_EQ(Of({1, 2, 3}, {10, 20, 30}).top_k_recall, 1);
  EXPECT_EQ(Of({3, 2, 1}, {10, 20, 30}).pairwise_accuracy, 0);
  EXPECT_EQ(Of({3, 2, 1, 0}, {10, 20, 30, 40}).top_k_recall, 0);
  EXPECT_EQ(Of({1, 2, 3}, {10, 20, 30}).samples, 3);
  EXPECT_EQ(Of({1, 2, 3}, {10, 20, 30}).k, 2);
}

TEST(RankingMetrics, PairsOfEqualTruthDoNotCount) {
  EXPECT_EQ(Of({2, 1, 3}, {10, 10, 30}).pairwise_accuracy, 1);
}

TEST(RankingMetrics, TiedPredictionsCountHalf) {
  EXPECT_EQ(Of({1, 1}, {10, 20}).pairwise_accuracy, 0.5);
  // Two of four tied places: half of the right ones are expected.
  EXPECT_EQ(Of({1, 1, 1, 1}, {10, 20, 30, 40}).top_k_recall, 0.5);
  // One is above; two share the other place, and one of them is right.
  EXPECT_EQ(Of({0, 5, 5, 9}, {10, 20, 30, 40}).top_k_recall, 0.75);
}

TEST(RankingMetrics, TiesInTheTruthAreAllRight) {
  EXPECT_EQ(Of({9, 1, 8}, {30, 30, 30}).top_k_recall, 1);
}

TEST(RankingMetrics, SmallSets) {
  EXPECT_EQ(Of({}, {}).pairwise_accuracy, 0.5);
  EXPECT_EQ(Of({}, {}).k, 0);
  EXPECT_EQ(Of({1}, {1}, 10).k, 1);
  EXPECT_EQ(Of({1}, {1}, 10).top_k_recall, 1);
  EXPECT_EQ(Of({1, 2}, {5, 5}).pairwise_accuracy, 0.5);
}

}  // namespace
}  // namespace tilefarm::cost_model
