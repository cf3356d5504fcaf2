#include "server/regression/series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/rng.h"
#include "tests/server/regression/random_noise.h"

namespace tilefarm::regression {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// 20 points for each level, in milliseconds, with noise of 0.5 %. Commits are
// c0, c1, ...
std::vector<HistoryPoint> Levels(const std::vector<double>& levels,
                                 const std::vector<double>& canaries = {}) {
  Rng rng(11);
  std::vector<HistoryPoint> points;
  for (size_t level = 0; level < levels.size(); ++level) {
    for (int i = 0; i < 20; ++i) {
      HistoryPoint point;
      point.commit = absl::StrCat("c", points.size());
      point.seconds = levels[level] * 1e-3 * std::exp(0.005 * Normal(rng));
      if (!canaries.empty()) {
        point.canary_seconds =
            canaries[level] * 1e-3 * std::exp(0.005 * Normal(rng));
      }
      points.push_back(std::move(point));
    }
  }
  return points;
}

SeriesAnalysis Analyse(const std::vector<HistoryPoint>& points,
                       const std::vector<std::string>& acknowledged = {}) {
  std::vector<Acknowledgement> acknowledgements;
  for (const std::string& commit : acknowledged) {
    acknowledgements.push_back({.commit = commit, .reason = "expected"});
  }
  const absl::StatusOr<SeriesAnalysis> analysis =
      AnalyseSeries(points, acknowledgements);
  EXPECT_TRUE(analysis.ok()) << analysis.status();
  return *analysis;
}

std::vector<std::string> Summary(const SeriesAnalysis& analysis) {
  std::vector<std::string> changes;
  for (const SeriesChange& change : analysis.changes) {
    changes.push_back(absl::StrCat(change.commit, " ",
                                   std::string(ChangeStateName(change.state))));
  }
  return changes;
}

TEST(SeriesTest, AStableSeriesIsItsOwnBaseline) {
  const SeriesAnalysis analysis = Analyse(Levels({1, 1}));
  EXPECT_THAT(analysis.changes, IsEmpty());
  EXPECT_EQ(analysis.baseline_first, 0u);
  EXPECT_EQ(analysis.baseline_last, 40u);
  EXPECT_NEAR(analysis.baseline_seconds, 1e-3, 1e-5);
  EXPECT_NEAR(analysis.current_ratio, 1, 1e-9);
}

TEST(SeriesTest, ASlowerLevelStaysAnOpenRegression) {
  const SeriesAnalysis analysis = Analyse(Levels({1, 1.06, 1.06}));
  EXPECT_THAT(Summary(analysis), ElementsAre("c20 open"));
  const SeriesChange& change = analysis.changes[0];
  EXPECT_EQ(change.index, 20u);
  EXPECT_EQ(change.after_commit, "c19");
  EXPECT_NEAR(change.ratio, 1.06, 0.005);
  EXPECT_NEAR(change.before_seconds, 1e-3, 1e-5);
  EXPECT_NEAR(change.after_seconds, 1.06e-3, 1e-5);
  EXPECT_LE(change.p_value, 0.01);
  EXPECT_FALSE(change.device_moved);
  // The baseline is what it was.
  EXPECT_EQ(analysis.baseline_last, 20u);
  EXPECT_NEAR(analysis.current_ratio, 1.06, 0.005);
}

TEST(SeriesTest, AFixResolvesIt) {
  const SeriesAnalysis analysis = Analyse(Levels({1, 1.06, 1}));
  EXPECT_THAT(Summary(analysis), ElementsAre("c20 resolved", "c40 minor"));
  EXPECT_NEAR(analysis.current_ratio, 1, 0.005);
}

TEST(SeriesTest, APartialFixDoesNot) {
  const SeriesAnalysis analysis = Analyse(Levels({1, 1.2, 1.1}));
  EXPECT_THAT(Summary(analysis), ElementsAre("c20 open", "c40 minor"));
}

TEST(SeriesTest, AFasterLevelBecomesTheBaseline) {
  const SeriesAnalysis analysis = Analyse(Levels({1, 0.9, 1}));
  // Back at the first level is slower than what was reached.
  EXPECT_THAT(Summary(analysis), ElementsAre("c20 faster", "c40 open"));
  EXPECT_EQ(analysis.baseline_first, 20u);
  EXPECT_NEAR(analysis.baseline_seconds, 0.9e-3, 1e-5);
}

TEST(SeriesTest, SmallStepsAddUp) {
  const SeriesAnalysis analysis = Analyse(Levels({1, 1.025, 1.05}));
  EXPECT_THAT(Summary(analysis), ElementsAre("c20 minor", "c40 open"));
}

TEST(SeriesTest, AnAcknowledgedChangeResetsTheBaseline) {
  const std::vector<HistoryPoint> points = Levels({1, 1.06, 1.12});
  const SeriesAnalysis analysis = Analyse(points, {"c20"});
  EXPECT_THAT(Summary(analysis), ElementsAre("c20 acknowledged", "c40 open"));
  EXPECT_EQ(analysis.baseline_first, 20u);
  EXPECT_EQ(analysis.baseline_last, 40u);
  EXPECT_NEAR(analysis.baseline_seconds, 1.06e-3, 1e-5);
}

// People acknowledge the commit that they know, which is not always the point
// that the detector chose.
TEST(SeriesTest, AnAcknowledgementOfANearbyCommitCoversTheChange) {
  const SeriesAnalysis analysis = Analyse(Levels({1, 1.06}), {"c22"});
  for (const SeriesChange& change : analysis.changes) {
    EXPECT_NE(change.state, ChangeState::kOpen) << change.commit;
  }
  EXPECT_NEAR(analysis.current_ratio, 1, 0.005);
}

TEST(SeriesTest, AnAcknowledgementAcceptsWhatCameBefore) {
  const SeriesAnalysis analysis = Analyse(Levels({1, 1.06, 1.12}), {"c40"});
  EXPECT_THAT(Summary(analysis),
              ElementsAre("c20 acknowledged", "c40 acknowledged"));
}

TEST(SeriesTest, AnAcknowledgementOfTheFirstCommitChangesNothing) {
  EXPECT_THAT(Summary(Analyse(Levels({1, 1.06}), {"c0"})),
              ElementsAre("c20 open"));
}

TEST(SeriesTest, UnknownAcknowledgementsAreNamed) {
  const SeriesAnalysis analysis = Analyse(Levels({1}), {"nope", "c5"});
  EXPECT_THAT(analysis.unknown_acknowledgements, ElementsAre("nope"));
}

TEST(SeriesTest, TheCanaryTellsWhenTheDeviceMoved) {
  const SeriesAnalysis device = Analyse(Levels({1, 1.3, 1.3}, {1, 1.3, 1.3}));
  ASSERT_THAT(Summary(device), ElementsAre("c20 open"));
  EXPECT_TRUE(device.changes[0].device_moved);
  const SeriesAnalysis code = Analyse(Levels({1, 1.3, 1.3}, {1, 1, 1}));
  ASSERT_THAT(Summary(code), ElementsAre("c20 open"));
  EXPECT_FALSE(code.changes[0].device_moved);
  // A canary that moved much less does not explain it.
  const SeriesAnalysis partly = Analyse(Levels({1, 1.3, 1.3}, {1, 1.05, 1.05}));
  EXPECT_FALSE(partly.changes[0].device_moved);
}

TEST(SeriesTest, AnEmptySeriesHasNoBaseline) {
  const SeriesAnalysis analysis = Analyse({}, {"c0"});
  EXPECT_EQ(analysis.baseline_seconds, 0);
  EXPECT_THAT(analysis.changes, IsEmpty());
  EXPECT_THAT(analysis.unknown_acknowledgements, ElementsAre("c0"));
}

TEST(SeriesTest, RejectsPointsWithoutATime) {
  std::vector<HistoryPoint> points = Levels({1});
  points[3].seconds = 0;
  const absl::Status status = AnalyseSeries(points, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "point 3 (c3) of the series has no positive time");
  EXPECT_EQ(AnalyseSeries(Levels({1}), {}, {.threshold = 0}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(SeriesTest, StatesHaveNames) {
  EXPECT_EQ(ChangeStateName(ChangeState::kAcknowledged), "acknowledged");
  EXPECT_EQ(ChangeStateName(ChangeState::kFaster), "faster");
  EXPECT_EQ(ChangeStateName(ChangeState::kOpen), "open");
  EXPECT_EQ(ChangeStateName(ChangeState::kResolved), "resolved");
  EXPECT_EQ(ChangeStateName(ChangeState::kMinor), "minor");
}

}  // namespace
}  // namespace tilefarm::regression
