#include "server/regression/signed_rank.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"

namespace tilefarm::regression {
namespace {

// P(W <= w) by all 2^n signs.
double TailByEnumeration(int n, int64_t w) {
  int64_t count = 0;
  for (uint32_t signs = 0; signs < (1u << n); ++signs) {
    int64_t sum = 0;
    for (int rank = 1; rank <= n; ++rank) {
      if ((signs >> (rank - 1)) & 1) sum += rank;
    }
    count += sum <= w ? 1 : 0;
  }
  return std::ldexp(static_cast<double>(count), -n);
}

TEST(SignedRankTest, TailsAreThoseOfAllSigns) {
  for (int n = 0; n <= 12; ++n) {
    for (int64_t w = -1; w <= n * (n + 1) / 2 + 1; ++w) {
      EXPECT_NEAR(SignedRankTail(n, w), TailByEnumeration(n, w), 1e-15)
          << n << " " << w;
    }
  }
}

TEST(SignedRankTest, TailsOfManyRanksStayProbabilities) {
  const int64_t largest = kMostRanked * (kMostRanked + 1) / 2;
  EXPECT_NEAR(SignedRankTail(kMostRanked, largest / 2), 0.5, 1e-3);
  EXPECT_EQ(SignedRankTail(kMostRanked, largest), 1);
  EXPECT_EQ(SignedRankTail(kMostRanked, 0), std::ldexp(1.0, -kMostRanked));
}

// Table A.4 of Hollander, Wolfe and Chicken (2014) and every other table.
TEST(SignedRankTest, CriticalValuesAreThoseOfTheTables) {
  EXPECT_EQ(SignedRankCritical(6, 0.025), 0);
  EXPECT_EQ(SignedRankCritical(8, 0.025), 3);
  EXPECT_EQ(SignedRankCritical(10, 0.025), 8);
  EXPECT_EQ(SignedRankCritical(15, 0.025), 25);
  EXPECT_EQ(SignedRankCritical(20, 0.025), 52);
  EXPECT_EQ(SignedRankCritical(25, 0.025), 89);
  EXPECT_EQ(SignedRankCritical(10, 0.005), 3);
  EXPECT_EQ(SignedRankCritical(5, 0.025), -1);
}

TEST(SignedRankTest, AnIntervalNeedsEnoughValues) {
  EXPECT_EQ(FewestRanked(0.5), 1);
  EXPECT_EQ(FewestRanked(0.25), 2);
  EXPECT_EQ(FewestRanked(0.025), 6);
  EXPECT_EQ(FewestRanked(1e-6), 20);
  for (const double tail : {0.1, 0.01, 0.0004}) {
    EXPECT_GE(SignedRankCritical(FewestRanked(tail), tail), 0);
    EXPECT_EQ(SignedRankCritical(FewestRanked(tail) - 1, tail), -1);
  }
}

TEST(SignedRankTest, TheCentreIsTheMedianOfWalshAverages) {
  // Averages of 1, 2, 6: 1, 1.5, 2, 3.5, 4, 6.
  const CentreInterval centre = CentreOf(std::vector<double>{6, 1, 2}, 0.125);
  EXPECT_DOUBLE_EQ(centre.centre, 2.75);
  EXPECT_DOUBLE_EQ(centre.low, 1);
  EXPECT_DOUBLE_EQ(centre.high, 6);
}

TEST(SignedRankTest, TooFewValuesHaveNoBounds) {
  const CentreInterval centre = CentreOf(std::vector<double>{1, 2}, 0.025);
  EXPECT_DOUBLE_EQ(centre.centre, 1.5);
  EXPECT_EQ(centre.low, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(centre.high, std::numeric_limits<double>::infinity());
}

// The interval is that of the test: it excludes exactly the centres against
// which the signed-rank statistic is significant.
TEST(SignedRankTest, TheIntervalInvertsTheTest) {
  Rng rng(1);
  const double tail = 0.02;
  for (int round = 0; round < 50; ++round) {
    const int n = 7 + static_cast<int>(rng.Below(10));
    std::vector<double> values;
    for (int i = 0; i < n; ++i) values.push_back(rng.Uniform() * 4 - 1);
    const CentreInterval interval = CentreOf(values, tail);
    for (int probe = 0; probe < 40; ++probe) {
      const double centre = rng.Uniform() * 4 - 1;
      int64_t above = 0, below = 0;
      for (int i = 0; i < n; ++i) {
        for (int j = i; j < n; ++j) {
          const double average = (values[static_cast<size_t>(i)] +
                                  values[static_cast<size_t>(j)]) /
                                 2;
          (average > centre ? above : below) += 1;
        }
      }
      EXPECT_EQ(SignedRankTail(n, below) <= tail, centre < interval.low);
      EXPECT_EQ(SignedRankTail(n, above) <= tail, centre > interval.high);
    }
  }
}

}  // namespace
}  // namespace tilefarm::regression
