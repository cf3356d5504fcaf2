#include "server/regression/change_points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/rng.h"
#include "tests/server/regression/known_series.h"
#include "tests/server/regression/r_random.h"
#include "tests/server/regression/random_noise.h"

namespace tilefarm::regression {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<ChangePoint> Find(const std::vector<double>& values,
                              const ChangePointOptions& options = {}) {
  const absl::StatusOr<std::vector<ChangePoint>> changes =
      FindChangePoints(values, options);
  EXPECT_TRUE(changes.ok()) << changes.status();
  return *changes;
}

std::vector<size_t> Indices(const std::vector<ChangePoint>& changes) {
  std::vector<size_t> indices;
  for (const ChangePoint& change : changes) indices.push_back(change.index);
  return indices;
}

TEST(RRandomTest, NumbersAreThoseOfR) {
  // set.seed(1); runif(2); set.seed(42); runif(1)
  RRandom one(1);
  EXPECT_NEAR(one.Uniform(), 0.2655087, 5e-8);
  EXPECT_NEAR(one.Uniform(), 0.3721239, 5e-8);
  EXPECT_NEAR(RRandom(42).Uniform(), 0.9148060, 5e-8);
  // set.seed(1); rnorm(3)
  std::vector<double> normals;
  RRandom(1).Normals(3, 0, 1, &normals);
  EXPECT_NEAR(normals[0], -0.6264538, 5e-8);
  EXPECT_NEAR(normals[1], 0.1836433, 5e-8);
  EXPECT_NEAR(normals[2], -0.8356286, 5e-8);
}

TEST(ChangePointsTest, FindsAStep) {
  std::vector<double> values;
  for (int i = 0; i < 30; ++i) values.push_back(1 + 0.01 * (i % 3));
  for (int i = 0; i < 30; ++i) values.push_back(2 + 0.01 * (i % 3));
  const std::vector<ChangePoint> changes = Find(values);
  ASSERT_THAT(Indices(changes), ElementsAre(30));
  EXPECT_DOUBLE_EQ(changes[0].before, 1.01);
  EXPECT_DOUBLE_EQ(changes[0].after, 2.01);
  EXPECT_DOUBLE_EQ(changes[0].magnitude(), 1);
  // No permutation reaches it.
  EXPECT_DOUBLE_EQ(changes[0].p_value, 1.0 / 500);
}

TEST(ChangePointsTest, ShortOrConstantSeriesHaveNone) {
  EXPECT_THAT(Find({}), IsEmpty());
  EXPECT_THAT(Find({1, 2, 3, 4, 5, 6, 7}), IsEmpty());
  EXPECT_THAT(Find(std::vector<double>(100, 3.5)), IsEmpty());
}

TEST(ChangePointsTest, ASingleOutlierIsNoChange) {
  std::vector<double> values(60, 1);
  for (size_t i = 0; i < values.size(); ++i) values[i] += 0.001 * (i % 5);
  values[30] = 50;
  EXPECT_THAT(Find(values), IsEmpty());
}

TEST(ChangePointsTest, SegmentsHaveTheirLeastSize) {
  // Three points of another level at the end are too few, five are not.
  std::vector<double> values;
  for (int i = 0; i < 40; ++i) values.push_back(0.01 * (i % 3));
  for (int i = 0; i < 3; ++i) values.push_back(1);
  for (const size_t index : Indices(Find(values))) EXPECT_LE(index, 39u);
  for (int i = 0; i < 2; ++i) values.push_back(1);
  EXPECT_THAT(Indices(Find(values)), ElementsAre(40));
}

TEST(ChangePointsTest, AreDeterministicUnderASeed) {
  const std::vector<double> values = SyntheticSeries()[18].values;
  const std::vector<ChangePoint> first = Find(values, {.seed = 5});
  const std::vector<ChangePoint> again = Find(values, {.seed = 5});
  ASSERT_EQ(first.size(), again.size());
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].index, again[i].index);
    EXPECT_EQ(first[i].p_value, again[i].p_value);
  }
}

TEST(ChangePointsTest, DoNotDependOnUnitOrLevel) {
  const std::vector<double> values = SyntheticSeries()[10].values;
  std::vector<double> scaled, shifted, mirrored;
  for (const double value : values) {
    scaled.push_back(1024 * value);
    shifted.push_back(8 + value);
    mirrored.push_back(-value);
  }
  const std::vector<size_t> indices = Indices(Find(values));
  EXPECT_EQ(Indices(Find(scaled)), indices);
  EXPECT_EQ(Indices(Find(shifted)), indices);
  EXPECT_EQ(Indices(Find(mirrored)), indices);
}

// The paper's definition, by all pairs.
double StatisticByDefinition(const std::vector<double>& x, size_t tau,
                             size_t kappa) {
  double across = 0, left = 0, right = 0;
  for (size_t i = 0; i < kappa; ++i) {
    for (size_t j = i + 1; j < kappa; ++j) {
      const double distance = std::abs(x[i] - x[j]);
      (j < tau ? left : i >= tau ? right : across) += distance;
    }
  }
  const auto m = static_cast<double>(tau);
  const auto n = static_cast<double>(kappa - tau);
  const double energy = 2 * across / (m * n) - 2 * left / (m * (m - 1)) -
                        2 * right / (n * (n - 1));
  return m * n / (m + n) * energy;
}

TEST(ChangePointsTest, TheFirstSplitMaximisesTheStatistic) {
  Rng rng(9);
  for (int round = 0; round < 20; ++round) {
    // A level change so large that it is significant and its split the first.
    std::vector<double> x;
    const size_t n = 16 + rng.Below(20);
    const size_t step = 5 + rng.Below(n - 10);
    for (size_t i = 0; i < n; ++i) {
      x.push_back(Normal(rng) + (i < step ? 0 : 9));
    }
    double best = 0;
    size_t best_tau = 0;
    for (size_t tau = 4; tau + 4 <= n; ++tau) {
      for (size_t kappa = tau + 4; kappa <= n; ++kappa) {
        const double statistic = StatisticByDefinition(x, tau, kappa);
        if (statistic > best) {
          best = statistic;
          best_tau = tau;
        }
      }
    }
    EXPECT_THAT(Indices(Find(x)), ::testing::Contains(best_tau));
  }
}

// What e.divisive(X, R = 499, alpha = 1) of ecp gives: 108, 201 and 308,
// counted from 1 (James and Matteson, 2014, section 4.1), and 101 and 201.
TEST(ChangePointsTest, FindsThePublishedChangesOfTheLiterature) {
  const std::vector<KnownSeries> series = LiteratureSeries();
  const ChangePointOptions ecp = {
      .least_segment = 30, .significance = 0.05, .permutations = 499};
  EXPECT_THAT(Indices(Find(series[0].values, ecp)), ElementsAre(107, 200, 307));
  EXPECT_THAT(Indices(Find(series[1].values, ecp)), ElementsAre(100, 200));
  // Otava reports 6 and 4, counted from 0.
  const ChangePointOptions otava = {.least_segment = 2, .significance = 0.05};
  EXPECT_THAT(Indices(Find(series[2].values, otava)), ElementsAre(6));
  EXPECT_THAT(Indices(Find(series[3].values, otava)), ElementsAre(4));
}

TEST(ChangePointsTest, PrecisionAndRecallOnKnownSeries) {
  size_t known = 0, found = 0, matched = 0;
  size_t alarms = 0, matched_alarms = 0;
  for (const KnownSeries& series : SyntheticSeries()) {
    const std::vector<size_t> indices = Indices(Find(series.values));
    const std::vector<size_t> by_threshold =
        ThresholdAlarms(series.values, series.threshold);
    known += series.changes.size();
    found += indices.size();
    matched += Matches(series.changes, indices, 5);
    alarms += by_threshold.size();
    matched_alarms += Matches(series.changes, by_threshold, 5);
  }
  // Exact: everything here is deterministic.
  // change_points_report prints the table.
  EXPECT_EQ(known, 28u);
  EXPECT_EQ(found, 30u);
  EXPECT_EQ(matched, 28u);
  EXPECT_EQ(alarms, 107u);
  EXPECT_EQ(matched_alarms, 16u);
}

// The significance is the rate at which series without changes get one.
TEST(ChangePointsTest, FalseAlarmsAreAsRareAsTheSignificance) {
  constexpr int kSeries = 400;
  int false_alarms = 0;
  for (int i = 0; i < kSeries; ++i) {
    Rng rng(1000 + static_cast<uint64_t>(i));
    std::vector<double> values;
    for (int point = 0; point < 60; ++point) {
      values.push_back(StudentT(rng, 2));
    }
    if (!Find(values, {.significance = 0.05, .permutations = 99}).empty()) {
      ++false_alarms;
    }
  }
  // 5 % of 400 are 20, with a standard deviation of 4.4.
  EXPECT_LE(false_alarms, 33);
  EXPECT_GE(false_alarms, 7);
}

// Points that come later change nothing before the last window.
TEST(ChangePointsTest, LongSeriesKeepOldResults) {
  Rng rng(4);
  std::vector<double> values;
  for (int i = 0; i < 1200; ++i) {
    const double level = (i / 130) % 2 == 0 ? 0 : 5;
    values.push_back(level + Normal(rng));
  }
  const ChangePointOptions options = {.permutations = 99, .window = 256};
  const std::vector<size_t> all = Indices(Find(values, options));
  EXPECT_EQ(Matches({130, 260, 390, 520, 650, 780, 910, 1040, 1170}, all, 5),
            9u);
  values.resize(1000);
  for (const size_t index : Indices(Find(values, options))) {
    if (index >= 1000 - 256) break;
    EXPECT_THAT(all, ::testing::Contains(index));
  }
}

TEST(ChangePointsTest, TheLongestSeriesIsAnalysed) {
  Rng rng(5);
  std::vector<double> values;
  for (size_t i = 0; i < kMostSeriesPoints; ++i) {
    values.push_back((i < 6000 ? 0 : 4) + Normal(rng));
  }
  const std::vector<size_t> indices =
      Indices(Find(values, {.permutations = 99, .window = 128}));
  EXPECT_EQ(Matches({6000}, indices, 5), 1u);
}

TEST(ChangePointsTest, RejectsBadInput) {
  const auto message = [](const std::vector<double>& values,
                          const ChangePointOptions& options) {
    const absl::Status status = FindChangePoints(values, options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(message(std::vector<double>(10'001, 1), {}),
              HasSubstr("limit is 10000"));
  EXPECT_THAT(message({1, std::nan(""), 2}, {}), HasSubstr("point 1"));
  EXPECT_THAT(message({std::numeric_limits<double>::infinity()}, {}),
              HasSubstr("point 0"));
  EXPECT_THAT(message({}, {.least_segment = 1}), HasSubstr("at least 2"));
  EXPECT_THAT(message({}, {.least_segment = 10, .window = 39}),
              HasSubstr("window"));
  EXPECT_THAT(message({}, {.window = 5000}), HasSubstr("4096"));
  EXPECT_THAT(message({}, {.significance = 0}), HasSubstr("significance"));
  EXPECT_THAT(message({}, {.significance = 1}), HasSubstr("significance"));
  EXPECT_THAT(message({}, {.permutations = 0}), HasSubstr("permutations"));
  EXPECT_THAT(message({}, {.significance = 0.01, .permutations = 50}),
              HasSubstr("50 permutations"));
}

}  // namespace
}  // namespace tilefarm::regression
