// Error rates of the tests under noise that is known: the claims of
// docs/decisions/measurement/sequential-looks.md. Seeds are fixed.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "server/regression/confirmed_test.h"
#include "tests/server/regression/random_noise.h"

namespace tilefarm::regression {
namespace {

// The log-ratio of cluster `index` of a change of `change` (a logarithm).
// `sign` is 1 where the candidate comes first, -1 otherwise.
using Model =
    std::function<double(double change, double sign, int index, Rng& rng)>;

struct NamedModel {
  std::string name;
  Model model;
};

// A scale of `s` that processes share in phases of load.
double Phase(double s, int index, uint64_t salt) {
  Rng rng(salt + static_cast<uint64_t>(index / 7));
  return rng.Chance(0.4) ? 4 * s : s;
}

std::vector<NamedModel> Models(double s) {
  return {
      {"normal", [=](double change, double, int,
                     Rng& rng) { return change + s * Normal(rng); }},
      {"no variance", [=](double change, double, int,
                          Rng& rng) { return change + s * StudentT(rng, 2); }},
      {"no mean", [=](double change, double, int,
                      Rng& rng) { return change + s / 3 * StudentT(rng, 1); }},
      // Offsets of whole processes: bad pages for one of the artifacts.
      {"pages",
       [=](double change, double, int, Rng& rng) {
         const double candidate = rng.Chance(0.15) ? 5 * s : 0;
         const double baseline = rng.Chance(0.15) ? 5 * s : 0;
         return change + candidate - baseline + s / 2 * Normal(rng);
       }},
      // The artifact that comes first is slower, by a skewed amount, and more
      // so from process to process: the coin makes it noise.
      {"order and drift",
       [=](double change, double sign, int index, Rng& rng) {
         const double order = s / 2 * std::exp(Normal(rng)) + 2e-4 * index;
         return change + sign * order + s / 2 * Normal(rng);
       }},
      // Load of other processes comes and goes.
      {"load",
       [=](double change, double sign, int index, Rng& rng) {
         const double scale = Phase(s / 2, index, 17);
         return change + sign * scale + scale * Normal(rng);
       }},
  };
}

struct Rates {
  int suspects = 0, slower = 0, same = 0, faster = 0, inconclusive = 0;
  double clusters = 0;
};

Rates Simulate(const Model& model, double change, int runs, uint64_t seed,
               const GateOptions& options = {}, int benchmarks = 1) {
  Rates rates;
  for (int run = 0; run < runs; ++run) {
    Rng rng(seed + static_cast<uint64_t>(run));
    ConfirmedTest test = *ConfirmedTest::Create(options, benchmarks);
    const uint64_t coins[2] = {rng.Next(), rng.Next()};
    int index = 0;
    while (test.clusters_wanted() > 0) {
      const bool confirming =
          test.phase() == ConfirmedTest::Phase::kConfirmation;
      const double sign =
          CandidateFirst(coins[confirming ? 1 : 0], index) ? 1 : -1;
      EXPECT_TRUE(test.Add(model(change, sign, index, rng)).ok());
      ++index;
    }
    const TestOutcome outcome = test.outcome();
    rates.suspects += test.confirmation() != nullptr ? 1 : 0;
    rates.slower += outcome.confirmed ? 1 : 0;
    rates.same += outcome.verdict == Verdict::kSame ? 1 : 0;
    rates.faster += outcome.verdict == Verdict::kFaster ? 1 : 0;
    rates.inconclusive += outcome.verdict == Verdict::kInconclusive ? 1 : 0;
    rates.clusters += static_cast<double>(index) / runs;
  }
  return rates;
}

constexpr int kRuns = 1000;

TEST(ErrorRatesTest, WithoutAChangeThereIsNoAlarm) {
  for (const double s : {0.003, 0.01, 0.03}) {
    for (const auto& [name, model] : Models(s)) {
      const Rates rates = Simulate(model, 0, kRuns, 1);
      EXPECT_EQ(rates.slower, 0) << name << " " << s;
      // A wrong verdict of the screening: 5 %, of which a half is slower.
      EXPECT_LE(rates.suspects + rates.faster, kRuns / 100) << name << " " << s;
    }
  }
}

// The worst case of the hypothesis that is tested: a change of just the
// threshold. The screening's level is 2.5 % on each side, the confirmation's
// 1 %.
TEST(ErrorRatesTest, AtTheThresholdErrorsAreWithinTheirBounds) {
  for (const auto& [name, model] : Models(0.01)) {
    const Rates rates = Simulate(model, std::log(1.03), kRuns, 2);
    // Three standard deviations above 2.5 %.
    EXPECT_LE(rates.suspects, 40) << name;
    EXPECT_LE(rates.same, 40) << name;
    EXPECT_LE(rates.slower, 2) << name;
  }
}

// One test alone, at its own level of 5 %, of the hypothesis that there is no
// change: how often does any look's interval miss the ratio?
TEST(ErrorRatesTest, RepeatedLooksKeepTheLevel) {
  for (const auto& [name, model] : Models(0.01)) {
    int misses = 0;
    for (int run = 0; run < kRuns; ++run) {
      Rng rng(3000 + static_cast<uint64_t>(run));
      // No verdict settles it before the last look.
      SequentialTest test = *SequentialTest::Create(
          {.threshold = 1e-9, .error = 0.05, .most_clusters = 48, .looks = 6});
      const uint64_t coins = rng.Next();
      for (int i = 0; test.clusters_to_next_look() > 0; ++i) {
        const double sign = CandidateFirst(coins, i) ? 1 : -1;
        EXPECT_TRUE(test.Add(model(0, sign, i, rng)).ok());
      }
      misses += test.verdict() != Verdict::kInconclusive ? 1 : 0;
    }
    // Three standard deviations above 5 %, of 1,000.
    EXPECT_LE(misses, 71) << name;
    // And not so few that the intervals would be much too wide.
    EXPECT_GE(misses, 10) << name;
  }
}

TEST(ErrorRatesTest, TenPercentAreFound) {
  for (const auto& [name, model] : Models(0.015)) {
    const Rates rates = Simulate(model, std::log(1.10), kRuns, 4);
    EXPECT_GE(rates.slower, 990) << name;
    EXPECT_LE(rates.clusters, 40) << name;
  }
}

TEST(ErrorRatesTest, FivePercentAreFound) {
  for (const auto& [name, model] : Models(0.008)) {
    const Rates rates = Simulate(model, std::log(1.05), kRuns, 5);
    EXPECT_GE(rates.slower, 900) << name;
  }
}

TEST(ErrorRatesTest, TwoPercentAreNoRegression) {
  for (const auto& [name, model] : Models(0.008)) {
    EXPECT_EQ(Simulate(model, std::log(1.02), kRuns, 6).slower, 0) << name;
  }
}

// A suite of 20: none of its benchmarks raises an alarm in 99 % of runs.
TEST(ErrorRatesTest, ASuiteKeepsItsError) {
  const NamedModel heavy = Models(0.01)[1];
  const Rates unchanged =
      Simulate(heavy.model, 0, 4 * kRuns, 7, GateOptions(), 20);
  EXPECT_EQ(unchanged.slower, 0);
  EXPECT_LE(unchanged.suspects + unchanged.faster, 10);
  const Rates changed =
      Simulate(heavy.model, std::log(1.10), kRuns, 8, GateOptions(), 20);
  EXPECT_GE(changed.slower, 990);
}

}  // namespace
}  // namespace tilefarm::regression
