#include "server/regression/sequential_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "server/regression/signed_rank.h"

namespace tilefarm::regression {
namespace {

using ::testing::HasSubstr;

SequentialTest SequentialTestOf(const SequentialOptions& options = {}) {
  absl::StatusOr<SequentialTest> test = SequentialTest::Create(options);
  EXPECT_TRUE(test.ok()) << test.status();
  return *std::move(test);
}

// Adds clusters of `log_ratio` and a small alternating deviation until it is
// settled.
void Settle(SequentialTest& test, double log_ratio, double deviation = 1e-4) {
  for (int i = 0; test.clusters_to_next_look() > 0; ++i) {
    const double value = log_ratio + (i % 2 == 0 ? deviation : -deviation);
    ASSERT_TRUE(test.Add(value * (1 + 1e-6 * i)).ok());
  }
}

TEST(VerdictOfTest, FollowsFromTheInterval) {
  const auto verdict = [](double low, double high) {
    return VerdictOf(
        {.ratio = 1, .low = low, .high = high, .level = 0.99, .clusters = 9},
        0.03);
  };
  EXPECT_EQ(verdict(1.031, 1.2), Verdict::kSlower);
  EXPECT_EQ(verdict(1.03, 1.2), Verdict::kInconclusive);
  EXPECT_EQ(verdict(0.98, 1.02), Verdict::kSame);
  EXPECT_EQ(verdict(1.01, 1.02), Verdict::kSame);
  EXPECT_EQ(verdict(1.01, 1.04), Verdict::kInconclusive);
  EXPECT_EQ(verdict(0.9, 0.97), Verdict::kFaster);
  // The bounds of faster and slower are the same ratio, either way.
  EXPECT_EQ(verdict(0.9, 0.971), Verdict::kInconclusive);
  EXPECT_EQ(verdict(0, std::numeric_limits<double>::infinity()),
            Verdict::kInconclusive);
  EXPECT_EQ(VerdictOf({}, 0.03), Verdict::kInconclusive);
}

TEST(VerdictNameTest, IsAWord) {
  EXPECT_EQ(VerdictName(Verdict::kSlower), "slower");
  EXPECT_EQ(VerdictName(Verdict::kFaster), "faster");
  EXPECT_EQ(VerdictName(Verdict::kSame), "same");
  EXPECT_EQ(VerdictName(Verdict::kInconclusive), "inconclusive");
}

TEST(SequentialTestTest, LooksFromTheFewestThatCanDecideToTheMost) {
  const SequentialTest test =
      SequentialTestOf({.error = 0.01, .most_clusters = 48, .looks = 6});
  const std::vector<int> looks(test.looks().begin(), test.looks().end());
  ASSERT_EQ(looks.size(), 6u);
  EXPECT_EQ(looks.front(), FewestRanked(0.01 / 2 / 6));
  EXPECT_EQ(looks.back(), 48);
  for (size_t i = 1; i < looks.size(); ++i) EXPECT_GT(looks[i], looks[i - 1]);
}

TEST(SequentialTestTest, FewClustersLeaveFewerLooks) {
  const SequentialTest test =
      SequentialTestOf({.error = 0.05, .most_clusters = 9, .looks = 6});
  EXPECT_LE(test.looks().size(), 2u);
  EXPECT_EQ(test.looks().back(), 9);
}

TEST(SequentialTestTest, SettlesByTheFirstLookWhereTheAnswerIsClear) {
  for (const auto& [ratio, verdict] :
       {std::pair(1.10, Verdict::kSlower), std::pair(0.90, Verdict::kFaster),
        std::pair(1.00, Verdict::kSame), std::pair(1.02, Verdict::kSame)}) {
    SequentialTest test = SequentialTestOf();
    Settle(test, std::log(ratio));
    EXPECT_TRUE(test.settled());
    EXPECT_EQ(test.verdict(), verdict) << ratio;
    EXPECT_EQ(test.interval().clusters, test.looks().front());
    EXPECT_NEAR(test.interval().ratio, ratio, 1e-3);
    EXPECT_NEAR(test.interval().level, 0.99, 1e-12);
  }
}

TEST(SequentialTestTest, AChangeAtTheThresholdStaysInconclusive) {
  SequentialTest test = SequentialTestOf();
  Settle(test, std::log(1.03));
  EXPECT_TRUE(test.settled());
  EXPECT_EQ(test.verdict(), Verdict::kInconclusive);
  EXPECT_EQ(test.interval().clusters, 48);
}

TEST(SequentialTestTest, DoesNotLookBetweenLooks) {
  SequentialTest test = SequentialTestOf();
  const int first = test.looks().front();
  for (int i = 1; i < first; ++i) {
    ASSERT_TRUE(test.Add(0.5).ok());
    EXPECT_EQ(test.clusters_to_next_look(), first - i);
    EXPECT_FALSE(test.settled());
    // There is an estimate, and no bound.
    EXPECT_NEAR(test.interval().ratio, std::exp(0.5), 1e-9);
    EXPECT_EQ(test.interval().low, 0);
    EXPECT_EQ(test.interval().clusters, i);
  }
  ASSERT_TRUE(test.Add(0.5).ok());
  EXPECT_EQ(test.verdict(), Verdict::kSlower);
}

TEST(SequentialTestTest, FinishLooksOnceMore) {
  SequentialTest test = SequentialTestOf();
  // One more than the first look, at which an outlier kept it open.
  ASSERT_TRUE(test.Add(-1).ok());
  while (test.log_ratios().size() < 13) ASSERT_TRUE(test.Add(0.2).ok());
  ASSERT_FALSE(test.settled());
  test.Finish();
  EXPECT_TRUE(test.settled());
  EXPECT_EQ(test.interval().clusters, 13);
}

TEST(SequentialTestTest, FinishWithTooFewClustersIsInconclusive) {
  SequentialTest test = SequentialTestOf();
  ASSERT_TRUE(test.Add(0.5).ok());
  test.Finish();
  EXPECT_TRUE(test.settled());
  EXPECT_EQ(test.verdict(), Verdict::kInconclusive);
  EXPECT_EQ(test.interval().high, std::numeric_limits<double>::infinity());
  EXPECT_EQ(test.clusters_to_next_look(), 0);
}

TEST(SequentialTestTest, FinishWithoutAnythingIsInconclusive) {
  SequentialTest test = SequentialTestOf();
  test.Finish();
  EXPECT_TRUE(test.settled());
  EXPECT_EQ(test.interval().clusters, 0);
}

TEST(SequentialTestTest, ASettledTestTakesNoMore) {
  SequentialTest test = SequentialTestOf();
  Settle(test, 0.2);
  EXPECT_EQ(test.Add(0).code(), absl::StatusCode::kFailedPrecondition);
  const int clusters = test.interval().clusters;
  test.Finish();
  EXPECT_EQ(test.interval().clusters, clusters);
  EXPECT_EQ(test.verdict(), Verdict::kSlower);
}

TEST(SequentialTestTest, RejectsValuesThatAreNotFinite) {
  SequentialTest test = SequentialTestOf();
  EXPECT_EQ(test.Add(std::numeric_limits<double>::quiet_NaN()).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(test.Add(std::numeric_limits<double>::infinity()).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(test.log_ratios().empty());
}

TEST(SequentialTestTest, RejectsOptionsOutOfRange) {
  const auto message = [](const SequentialOptions& options) {
    const absl::Status status = SequentialTest::Create(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(message({.threshold = 0}), HasSubstr("threshold"));
  EXPECT_THAT(message({.threshold = 1.5}), HasSubstr("threshold"));
  EXPECT_THAT(message({.error = 0}), HasSubstr("error"));
  EXPECT_THAT(message({.error = 0.6}), HasSubstr("error"));
  EXPECT_THAT(message({.error = std::nan("")}), HasSubstr("error"));
  EXPECT_THAT(message({.most_clusters = 0}), HasSubstr("clusters"));
  EXPECT_THAT(message({.most_clusters = 257}), HasSubstr("256"));
  EXPECT_THAT(message({.looks = 0}), HasSubstr("looks"));
  EXPECT_THAT(message({.error = 1e-6, .most_clusters = 20, .looks = 4}),
              HasSubstr("takes at least 23 clusters"));
}

}  // namespace
}  // namespace tilefarm::regression
