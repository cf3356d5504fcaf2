#include "server/regression/bisect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "base/rng.h"
#include "tests/server/regression/random_noise.h"

namespace tilefarm::regression {
namespace {

using ::testing::HasSubstr;
using Kind = BisectStep::Kind;

Bisection Create(int commits, const BisectOptions& options = {}) {
  absl::StatusOr<Bisection> bisection = Bisection::Create(commits, options);
  EXPECT_TRUE(bisection.ok()) << bisection.status();
  return *std::move(bisection);
}

// Answers until the end.
BisectStep RunToEnd(
    Bisection& bisection,
    const std::function<BisectAnswer(const BisectStep&)>& answer) {
  while (bisection.Next().kind == Kind::kMeasure) {
    EXPECT_TRUE(bisection.Report(answer(bisection.Next())).ok());
  }
  return bisection.Next();
}

// Right answers if `first_bad` is the first slow commit.
std::function<BisectAnswer(const BisectStep&)> Truth(int first_bad) {
  return [first_bad](const BisectStep& step) {
    const bool differ =
        (step.commit >= first_bad) != (step.reference >= first_bad);
    return differ ? BisectAnswer::kBad : BisectAnswer::kGood;
  };
}

TEST(BisectionTest, AsksFirstWhetherThereIsAChange) {
  const Bisection bisection = Create(65);
  EXPECT_EQ(bisection.Next().commit, 64);
  EXPECT_EQ(bisection.Next().reference, 0);
}

TEST(BisectionTest, FindsEveryCommitWithFewBuilds) {
  for (const int commits : {2, 3, 4, 5, 17, 64, 100}) {
    for (int first_bad = 1; first_bad < commits; ++first_bad) {
      Bisection bisection = Create(commits);
      const BisectStep end = RunToEnd(bisection, Truth(first_bad));
      EXPECT_EQ(end.kind, Kind::kFound) << commits << " " << first_bad;
      EXPECT_EQ(end.commit, first_bad);
      EXPECT_GE(end.probability, 0.99);
      // Both ends, and one build for each halving.
      const int halvings = static_cast<int>(std::ceil(std::log2(commits - 1)));
      EXPECT_LE(bisection.builds(), 2 + halvings)
          << commits << " " << first_bad;
    }
  }
}

TEST(BisectionTest, ComparesTheNeighboursDirectly) {
  Bisection bisection = Create(64);
  bool edge = false;
  RunToEnd(bisection, [&](const BisectStep& step) {
    edge |= step.commit == 40 && step.reference == 39;
    return Truth(40)(step);
  });
  EXPECT_TRUE(edge);
}

TEST(BisectionTest, SaysWhenThereIsNoChange) {
  Bisection bisection = Create(64);
  const BisectStep end = RunToEnd(
      bisection, [](const BisectStep&) { return BisectAnswer::kGood; });
  EXPECT_EQ(end.kind, Kind::kNoChange);
  EXPECT_EQ(bisection.questions(), 2);
}

TEST(BisectionTest, OneWrongGoodDoesNotEndIt) {
  Bisection bisection = Create(64);
  int questions = 0;
  const BisectStep end = RunToEnd(bisection, [&](const BisectStep& step) {
    return questions++ == 0 ? BisectAnswer::kGood : Truth(7)(step);
  });
  EXPECT_EQ(end.kind, Kind::kFound);
  EXPECT_EQ(end.commit, 7);
}

// Whatever single answer is wrong, the others correct it.
TEST(BisectionTest, SurvivesAnyWrongAnswer) {
  for (const int first_bad : {1, 2, 31, 40, 62, 63}) {
    for (int wrong = 1; wrong < 12; ++wrong) {
      Bisection bisection = Create(64);
      int questions = 0;
      const BisectStep end = RunToEnd(bisection, [&](const BisectStep& step) {
        const BisectAnswer truth = Truth(first_bad)(step);
        if (questions++ != wrong) return truth;
        return truth == BisectAnswer::kBad ? BisectAnswer::kGood
                                           : BisectAnswer::kBad;
      });
      EXPECT_EQ(end.kind, Kind::kFound) << first_bad << " " << wrong;
      EXPECT_EQ(end.commit, first_bad) << wrong;
    }
  }
}

TEST(BisectionTest, SkipsCommitsThatDoNotBuild) {
  Bisection bisection = Create(64);
  const BisectStep end = RunToEnd(bisection, [&](const BisectStep& step) {
    if (step.commit > 20 && step.commit < 40) return BisectAnswer::kSkip;
    return Truth(50)(step);
  });
  EXPECT_EQ(end.kind, Kind::kFound);
  EXPECT_EQ(end.commit, 50);
}

TEST(BisectionTest, NextToSkippedCommitsTheAnswerIsARange) {
  Bisection bisection = Create(64);
  const BisectStep end = RunToEnd(bisection, [&](const BisectStep& step) {
    if (step.commit >= 28 && step.commit <= 30) return BisectAnswer::kSkip;
    return Truth(30)(step);
  });
  EXPECT_EQ(end.kind, Kind::kRange);
  EXPECT_EQ(end.first, 28);
  EXPECT_EQ(end.last, 31);
  EXPECT_FALSE(bisection.built(28));
}

TEST(BisectionTest, NothingBetweenBuilds) {
  Bisection bisection = Create(10);
  const BisectStep end = RunToEnd(bisection, [&](const BisectStep& step) {
    return step.commit == 9 ? BisectAnswer::kBad : BisectAnswer::kSkip;
  });
  EXPECT_EQ(end.kind, Kind::kRange);
  EXPECT_EQ(end.first, 1);
  EXPECT_EQ(end.last, 9);
}

TEST(BisectionTest, AnUnclearCommitIsAskedAgainAndThenSkipped) {
  Bisection bisection = Create(64);
  int unclear = 0;
  const BisectStep end = RunToEnd(bisection, [&](const BisectStep& step) {
    if (step.commit == 31) {
      ++unclear;
      return BisectAnswer::kUnclear;
    }
    return Truth(40)(step);
  });
  EXPECT_EQ(unclear, BisectOptions().most_unclear);
  EXPECT_EQ(end.kind, Kind::kFound);
  EXPECT_EQ(end.commit, 40);
}

TEST(BisectionTest, IsUndecidedWhereTheEndsAre) {
  Bisection skipped = Create(64);
  const BisectStep skip =
      RunToEnd(skipped, [](const BisectStep&) { return BisectAnswer::kSkip; });
  EXPECT_EQ(skip.kind, Kind::kUndecided);
  EXPECT_THAT(skip.reason, HasSubstr("does not build"));
  Bisection unclear = Create(64);
  const BisectStep end = RunToEnd(
      unclear, [](const BisectStep&) { return BisectAnswer::kUnclear; });
  EXPECT_EQ(end.kind, Kind::kUndecided);
  EXPECT_THAT(end.reason, HasSubstr("stays unclear"));
}

TEST(BisectionTest, IsUndecidedWhereTheNeighboursAre) {
  Bisection bisection = Create(64);
  const BisectStep end = RunToEnd(bisection, [&](const BisectStep& step) {
    return step.reference > 0 ? BisectAnswer::kUnclear : Truth(40)(step);
  });
  EXPECT_EQ(end.kind, Kind::kUndecided);
  EXPECT_EQ(end.first, 40);
  EXPECT_EQ(end.last, 40);
  EXPECT_THAT(end.reason, HasSubstr("cannot be told apart"));
}

TEST(BisectionTest, IsUndecidedAfterTooManyQuestions) {
  Bisection bisection = Create(64, {.most_questions = 50});
  Rng rng(1);
  const BisectStep end = RunToEnd(bisection, [&](const BisectStep& step) {
    if (step.commit == 63 && step.reference == 0) return BisectAnswer::kBad;
    return rng.Chance(0.5) ? BisectAnswer::kBad : BisectAnswer::kGood;
  });
  if (end.kind == Kind::kUndecided) {
    EXPECT_EQ(bisection.questions(), 50);
    EXPECT_THAT(end.reason, HasSubstr("contradict"));
  }
  EXPECT_LE(bisection.questions(), 50);
}

TEST(BisectionTest, TakesNoAnswerAtItsEnd) {
  Bisection bisection = Create(2);
  RunToEnd(bisection, Truth(1));
  EXPECT_EQ(bisection.Report(BisectAnswer::kGood).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(BisectionTest, RejectsOptionsOutOfRange) {
  const auto code = [](int commits, const BisectOptions& options = {}) {
    return Bisection::Create(commits, options).status().code();
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code(1), invalid);
  EXPECT_EQ(code(100'001), invalid);
  EXPECT_EQ(code(9, {.answer_error = 0}), invalid);
  EXPECT_EQ(code(9, {.answer_error = 0.5}), invalid);
  EXPECT_EQ(code(9, {.confidence = 0.5}), invalid);
  EXPECT_EQ(code(9, {.confidence = 1}), invalid);
  EXPECT_EQ(code(9, {.most_unclear = 0}), invalid);
  EXPECT_EQ(code(9, {.most_questions = 0}), invalid);
}

SideTest Settled(double ratio, const SideOptions& options = {}) {
  absl::StatusOr<SideTest> test = SideTest::Create(options);
  EXPECT_TRUE(test.ok()) << test.status();
  for (int i = 0; test->clusters_to_next_look() > 0; ++i) {
    EXPECT_TRUE(test->Add(std::log(ratio) + (i % 2 == 0 ? 1e-3 : -1e-3)).ok());
  }
  EXPECT_TRUE(test->settled());
  return *test;
}

TEST(SideTestTest, TellsOnWhichSideOfTheBoundARatioIs) {
  EXPECT_EQ(Settled(1.05).side(), Side::kAbove);
  EXPECT_EQ(Settled(1.0).side(), Side::kBelow);
  EXPECT_EQ(Settled(1.025).side(), Side::kUnclear);
  EXPECT_NEAR(Settled(1.05).interval().ratio, 1.05, 1e-3);
  EXPECT_GT(Settled(1.05).interval().low, 1.025);
}

TEST(SideTestTest, EndsWithItsBudget) {
  absl::StatusOr<SideTest> test = SideTest::Create({});
  ASSERT_TRUE(test.ok());
  ASSERT_TRUE(test->Add(0.05).ok());
  test->Finish();
  EXPECT_TRUE(test->settled());
  EXPECT_EQ(test->side(), Side::kUnclear);
}

TEST(SideTestTest, RejectsOptionsOutOfRange) {
  const auto code = [](const SideOptions& options) {
    return SideTest::Create(options).status().code();
  };
  EXPECT_EQ(code({.bound = 0}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.bound = std::nan("")}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.error = 0}), absl::StatusCode::kInvalidArgument);
}

// 64 commits, one of which is 5 % slower, and noise between processes with
// heavy tails: the whole procedure, measurements included.
TEST(BisectionTest, FindsASlowdownInNoise) {
  constexpr int kRuns = 200;
  int right = 0, builds = 0;
  for (int run = 0; run < kRuns; ++run) {
    Rng rng(500 + static_cast<uint64_t>(run));
    const int first_bad = 1 + static_cast<int>(rng.Below(63));
    Bisection bisection = Create(64);
    const BisectStep end = RunToEnd(bisection, [&](const BisectStep& step) {
      absl::StatusOr<SideTest> test =
          SideTest::Create({.bound = std::sqrt(1.05)});
      const bool differ =
          (step.commit >= first_bad) != (step.reference >= first_bad);
      while (test->clusters_to_next_look() > 0) {
        EXPECT_TRUE(
            test->Add((differ ? std::log(1.05) : 0) + 0.015 * StudentT(rng, 2))
                .ok());
      }
      switch (test->side()) {
        case Side::kAbove:
          return BisectAnswer::kBad;
        case Side::kBelow:
          return BisectAnswer::kGood;
        case Side::kUnclear:
          break;
      }
      return BisectAnswer::kUnclear;
    });
    right += end.kind == Kind::kFound && end.commit == first_bad ? 1 : 0;
    builds += bisection.builds();
  }
  EXPECT_GE(right, 198);
  EXPECT_LE(builds, 9 * kRuns);
}

}  // namespace
}  // namespace tilefarm::regression
