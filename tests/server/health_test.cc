// The rules of device health, with times set by the tests.
#include "server/farm/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tilefarm::farm {
namespace {

using ::testing::HasSubstr;
using State = DeviceHealth::State;

constexpr double kKnown = 1e-3;

class HealthTest : public ::testing::Test {
 protected:
  HealthTest() : health_(rules_, kKnown) {
    health_.OnConnect(now_, /*restarted=*/true);
  }

  std::optional<HealthChange> Canary(double factor) {
    health_.CanaryGranted();
    return health_.OnCanary(now_, {.seconds = factor * kKnown});
  }
  std::optional<HealthChange> CanaryFails() {
    health_.CanaryGranted();
    return health_.OnCanary(now_, {.kind = CanaryResult::Kind::kFailed,
                                   .error = "run_error: signal 11"});
  }
  // Advances the time until a canary is due; returns the duration.
  absl::Duration UntilCanary() {
    const absl::Duration from = now_;
    while (!health_.canary_due(now_)) now_ += absl::Milliseconds(250);
    return now_ - from;
  }
  // A connection that ends after a second without a result.
  std::optional<HealthChange> Flap() {
    now_ += absl::Seconds(1);
    health_.OnDisconnect(now_);
    return health_.OnConnect(now_, /*restarted=*/true);
  }

  HealthRules rules_;
  DeviceHealth health_;
  absl::Duration now_ = absl::Hours(1);
};

TEST(HealthRulesTest, AreSetByName) {
  HealthRules rules;
  Settings settings = HealthSettings(rules);
  EXPECT_TRUE(settings.SetPair("unsteady_factor=2.5").ok());
  EXPECT_TRUE(settings.SetPair("canary_period=5s").ok());
  EXPECT_TRUE(settings.SetPair("max_doubts=4").ok());
  EXPECT_EQ(rules.unsteady_factor, 2.5);
  EXPECT_EQ(rules.canary_period, absl::Seconds(5));
  EXPECT_EQ(rules.max_doubts, 4);
  EXPECT_TRUE(CheckHealth(rules).ok());
  EXPECT_EQ(settings.SetPair("unsteady_factor=0.5").code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(settings.SetPair("patience=1s").code(),
            absl::StatusCode::kInvalidArgument);
  // Rules that contradict each other.
  for (const char* pair :
       {"unsteady_factor=9", "first_retry=1h", "first_rest=1h"}) {
    HealthRules broken;
    ASSERT_TRUE(HealthSettings(broken).SetPair(pair).ok());
    EXPECT_EQ(CheckHealth(broken).code(), absl::StatusCode::kInvalidArgument)
        << pair;
  }
}

TEST_F(HealthTest, ANewDeviceWorksOnceItsCanaryHasPassed) {
  EXPECT_EQ(health_.state(), State::kUnchecked);
  EXPECT_FALSE(health_.works(now_));
  EXPECT_TRUE(health_.promising(now_));
  EXPECT_TRUE(health_.canary_due(now_));
  health_.CanaryGranted();
  EXPECT_FALSE(health_.canary_due(now_));
  EXPECT_EQ(health_.OnCanary(now_, {.seconds = kKnown}), std::nullopt);
  EXPECT_TRUE(health_.works(now_));
  EXPECT_EQ(health_.reason(now_), "");
}

TEST_F(HealthTest, WithoutACanaryADeviceIsTrusted) {
  DeviceHealth health;
  health.OnConnect(now_, true);
  EXPECT_TRUE(health.works(now_));
  EXPECT_FALSE(health.canary_due(now_));
  EXPECT_FALSE(health.OnResult(now_, false, true));
}

TEST_F(HealthTest, CanaryRunsPeriodicallyAndAfterManyResults) {
  Canary(1);
  EXPECT_GE(UntilCanary(), rules_.canary_period);
  Canary(1);
  for (int i = 1; i < rules_.canary_results; ++i) {
    health_.OnResult(now_, true, false);
    ASSERT_FALSE(health_.canary_due(now_));
  }
  health_.OnResult(now_, true, false);
  EXPECT_TRUE(health_.canary_due(now_));
}

TEST_F(HealthTest, ACrashWaitsForACanarySoonAfter) {
  Canary(1);
  EXPECT_TRUE(health_.OnResult(now_, /*ok=*/false, /*crashed=*/true));
  EXPECT_FALSE(health_.canary_due(now_));
  EXPECT_LE(UntilCanary(), rules_.failure_gap + absl::Milliseconds(250));
}

TEST_F(HealthTest, OtherFailuresWaitOnlyWhereManyComeInARow) {
  Canary(1);
  for (int i = 1; i < rules_.failures_in_a_row; ++i) {
    EXPECT_FALSE(health_.OnResult(now_, false, false)) << i;
  }
  EXPECT_TRUE(health_.OnResult(now_, false, false));
  Canary(1);
  // A success between failures resets the count.
  for (int i = 1; i < rules_.failures_in_a_row; ++i) {
    health_.OnResult(now_, false, false);
  }
  health_.OnResult(now_, true, false);
  EXPECT_FALSE(health_.OnResult(now_, false, false));
}

TEST_F(HealthTest, ASlowCanaryMakesItUnsteadyAndItWorksOn) {
  Canary(1);
  UntilCanary();
  const auto change = Canary(1.6);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->action, "unsteady");
  EXPECT_THAT(change->detail, HasSubstr("1600.0 us, 1.6 times"));
  EXPECT_TRUE(health_.works(now_));
  EXPECT_LE(UntilCanary(), rules_.unsteady_period + absl::Milliseconds(250));
  EXPECT_EQ(Canary(1.1)->action, "recover");
  EXPECT_EQ(health_.state(), State::kSteady);
}

TEST_F(HealthTest, UnsteadyForAMinutePauses) {
  Canary(1);
  UntilCanary();
  const absl::Duration since = now_;
  std::optional<HealthChange> change = Canary(2);
  while (health_.state() == State::kUnsteady) {
    UntilCanary();
    change = Canary(2);
  }
  EXPECT_GE(now_ - since, rules_.unsteady_limit);
  EXPECT_EQ(change->action, "pause");
  EXPECT_THAT(health_.reason(now_), HasSubstr("2.0 times its known"));
  EXPECT_FALSE(health_.works(now_));
}

TEST_F(HealthTest, MuchSlowerPausesAtOnceUntilACanaryPasses) {
  Canary(1);
  UntilCanary();
  EXPECT_EQ(Canary(4)->action, "pause");
  EXPECT_FALSE(health_.promising(now_));
  // A device that is still slow does not come back.
  UntilCanary();
  Canary(1.6);
  EXPECT_EQ(health_.state(), State::kPaused);
  UntilCanary();
  EXPECT_EQ(Canary(1)->action, "recover");
  EXPECT_TRUE(health_.works(now_));
}

// A machine that became slow for good, or whose fast time was an exception.
TEST_F(HealthTest, SlowForAMinuteOfItsPauseItWorksOnUntilACanaryIsGood) {
  for (const double factor : {1.6, 4.0}) {
    Canary(1);
    UntilCanary();
    std::optional<HealthChange> change = Canary(5);
    EXPECT_EQ(change->action, "pause");
    const absl::Duration since = now_;
    while (health_.state() == State::kPaused) {
      ASSERT_LT(now_ - since, 3 * rules_.pause_limit);
      UntilCanary();
      change = Canary(factor);
    }
    EXPECT_GE(now_ - since, rules_.pause_limit);
    EXPECT_EQ(change->action, "unsteady");
    // Not only for a minute.
    const absl::Duration until = now_ + 3 * rules_.unsteady_limit;
    while (now_ < until) {
      EXPECT_TRUE(health_.works(now_));
      EXPECT_EQ(health_.state(), State::kUnsteady);
      UntilCanary();
      EXPECT_EQ(Canary(factor), std::nullopt);
    }
    EXPECT_EQ(Canary(1)->action, "recover");
    // Next time, it is paused again first.
    now_ += rules_.forgiven_after;
    EXPECT_EQ(Canary(5)->action, "pause");
    UntilCanary();
    EXPECT_EQ(Canary(1)->action, "recover");
  }
  // A failure does not count as slowness.
  Canary(5);
  for (int i = 0; i < 10; ++i) {
    UntilCanary();
    CanaryFails();
    EXPECT_EQ(health_.state(), State::kQuarantined);
  }
  UntilCanary();
  EXPECT_EQ(Canary(2)->action, "pause");
}

TEST_F(HealthTest, AFailedCanaryQuarantinesAndIsTriedLessAndLessOften) {
  const auto change = CanaryFails();
  EXPECT_EQ(change->action, "quarantine");
  EXPECT_THAT(change->detail, HasSubstr("run_error: signal 11"));
  std::vector<double> waits;
  for (int i = 0; i < 11; ++i) {
    waits.push_back(absl::ToDoubleSeconds(UntilCanary()));
    CanaryFails();
  }
  EXPECT_THAT(waits, ::testing::ElementsAre(1, 2, 4, 8, 16, 32, 64, 128, 256,
                                            300, 300));
  UntilCanary();
  EXPECT_EQ(Canary(1)->action, "recover");
  EXPECT_TRUE(health_.works(now_));
}

TEST_F(HealthTest, FlappingBetweenGoodAndBadRestsLongerAndLonger) {
  std::vector<double> waits;
  Canary(1);
  for (int i = 0; i < 4; ++i) {
    health_.OnResult(now_, false, true);
    UntilCanary();
    CanaryFails();
    waits.push_back(absl::ToDoubleSeconds(UntilCanary()));
    Canary(1);
  }
  EXPECT_THAT(waits, ::testing::ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(health_.reason(now_), "");
  // After a long good time, it is forgiven.
  now_ += rules_.forgiven_after;
  CanaryFails();
  EXPECT_EQ(absl::ToDoubleSeconds(UntilCanary()), 1);
}

TEST_F(HealthTest, ACutConnectionChangesNothing) {
  Canary(1);
  now_ += absl::Seconds(10);
  health_.OnDisconnect(now_);
  EXPECT_EQ(health_.OnConnect(now_, /*restarted=*/false), std::nullopt);
  EXPECT_TRUE(health_.works(now_));
  EXPECT_FALSE(health_.canary_due(now_));
}

TEST_F(HealthTest, ACanaryLostWithItsWorkerIsNoFailure) {
  health_.CanaryGranted();
  health_.OnDisconnect(now_);
  health_.OnCanaryLost(now_);
  health_.OnConnect(now_, /*restarted=*/true);
  EXPECT_EQ(health_.state(), State::kUnchecked);
  EXPECT_TRUE(health_.canary_due(now_));
}

TEST_F(HealthTest, ReconnectingDoesNotEndAQuarantine) {
  for (int i = 0; i < 5; ++i) {
    CanaryFails();
    UntilCanary();
  }
  CanaryFails();
  health_.OnDisconnect(now_ + absl::Minutes(1));
  health_.OnConnect(now_, /*restarted=*/true);
  EXPECT_EQ(health_.state(), State::kQuarantined);
  EXPECT_FALSE(health_.canary_due(now_));
}

TEST_F(HealthTest, ADeviceThatComesAndGoesRestsLongerAndLonger) {
  Canary(1);
  for (int i = 1; i < rules_.barren_connections; ++i) {
    EXPECT_EQ(Flap(), std::nullopt);
  }
  const auto change = Flap();
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->action, "rest");
  Canary(1);
  EXPECT_FALSE(health_.works(now_));
  EXPECT_THAT(health_.reason(now_), HasSubstr("rests for another 1s"));
  now_ += rules_.first_rest;
  EXPECT_TRUE(health_.works(now_));
  // Each further one doubles the pause; reconnecting during it does not.
  Flap();
  Canary(1);
  EXPECT_THAT(health_.reason(now_), HasSubstr("rests for another 2s"));
  Flap();
  EXPECT_THAT(health_.reason(now_), HasSubstr("rests for another 1s"));
  for (int i = 0; i < 30; ++i) {
    now_ += rules_.last_rest;
    Flap();
  }
  Canary(1);
  now_ += rules_.last_rest;
  EXPECT_TRUE(health_.works(now_));
}

TEST_F(HealthTest, ConnectionsThatBroughtResultsAreNoFlapping) {
  for (int i = 0; i < 50; ++i) {
    Canary(1);
    health_.OnResult(now_, true, false);
    EXPECT_EQ(Flap(), std::nullopt);
  }
}

TEST_F(HealthTest, LongIdleConnectionsAreNoFlapping) {
  for (int i = 0; i < 50; ++i) {
    Canary(1);
    now_ += rules_.barren_connection;
    EXPECT_EQ(Flap(), std::nullopt);
  }
}

TEST_F(HealthTest, TheKnownTimeIsTheBestSoFar) {
  Canary(0.5);
  EXPECT_DOUBLE_EQ(health_.known_seconds(), 0.5 * kKnown);
  UntilCanary();
  Canary(0.7);
  EXPECT_DOUBLE_EQ(health_.known_seconds(), 0.5 * kKnown);
  UntilCanary();
  EXPECT_EQ(Canary(0.8)->action, "unsteady");
}

TEST_F(HealthTest, AnOperatorsResumeStartsAnew) {
  CanaryFails();
  health_.Reset(now_);
  EXPECT_TRUE(health_.canary_due(now_));
  // The present time becomes the reference.
  EXPECT_EQ(Canary(10), std::nullopt);
  EXPECT_TRUE(health_.works(now_));
}

}  // namespace
}  // namespace tilefarm::farm
