// The device registry by itself, under a fake clock.
#include "server/farm/device_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/server/fake_worker.h"
#include "tests/support/fake_clock.h"

namespace tilefarm::farm {
namespace {

using ::testing::ElementsAre;
using testing::FakeLink;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kFingerprint;
using testing::TestHello;
using testing::TestTarget;

class DeviceRegistryTest : public ::testing::Test, public DeviceListener {
 protected:
  DeviceRegistryTest() { registry_.SetListener(this); }

  void OnDeviceEvent(const DeviceEvent& event) override {
    events_.push_back(event.device + " " + event.action);
  }

  static DeviceRegistry::Options Options(Clock& clock) {
    return {.has_canary = [](const target::Target&) { return true; },
            .fingerprint = kFingerprint,
            .most_devices_of_owner = 2,
            .most_devices = 4,
            .clock = &clock};
  }
  // Returns the session.
  int64_t Connect(const WorkerHello& hello, int capacity = 1) {
    link_ = std::make_shared<FakeLink>();
    const int64_t session =
        registry_.Connect(hello, *DeviceRegistry::CheckHello(hello), link_)
            .session;
    registry_.OnState(hello.name, /*draining=*/false, capacity,
                      /*has_unknown_leases=*/false);
    registry_.Refresh(hello.name, 0);
    return session;
  }
  int64_t Connect(const std::string& name, int capacity = 1) {
    return Connect(TestHello(name), capacity);
  }
  void PassCanary(const std::string& name, double seconds = 1e-3) {
    registry_.OnCanaryGranted(name);
    registry_.OnCanary(name, {.seconds = seconds, .error = ""});
    registry_.Refresh(name, 0);
  }
  DeviceState StateOf(const std::string& name, int leases = 0) {
    return registry_.Status(name, leases).state;
  }

  testing::FakeClock clock_;
  std::vector<std::string> events_;
  std::shared_ptr<FakeLink> link_;  // of the last connection
  DeviceRegistry registry_{Options(clock_)};
};

// --- Connections -------------------------------------------------------------

TEST_F(DeviceRegistryTest, RefusesHellosThatItCannotUse) {
  EXPECT_TRUE(DeviceRegistry::CheckHello(TestHello("w")).ok());
  EXPECT_EQ(DeviceRegistry::CheckHello(TestHello("")).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DeviceRegistry::CheckHello(TestHello("w", "")).status().code(),
            absl::StatusCode::kInvalidArgument);
  WorkerHello hello = TestHello("w");
  hello.device.target = "toaster";
  EXPECT_EQ(DeviceRegistry::CheckHello(hello).status().code(),
            absl::StatusCode::kInvalidArgument);
  hello = TestHello("w");
  hello.protocol_version = 99;
  EXPECT_EQ(DeviceRegistry::CheckHello(hello).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(DeviceRegistryTest, BoundsTheNamesOfAnOwnerAndOfAll) {
  const auto room = [&](const std::string& name, const std::string& owner) {
    WorkerHello hello = TestHello(name);
    hello.owner = owner;
    return registry_.CheckRoom(hello).code();
  };
  Connect("rack");
  Connect("rack.1");
  EXPECT_EQ(room("rack.2", "rack"), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(room("rack.1", "rack"), absl::StatusCode::kOk);  // known
  EXPECT_EQ(room("racket", "racket"), absl::StatusCode::kOk);
  Connect("racket");
  Connect("desk");
  EXPECT_EQ(room("sofa", ""), absl::StatusCode::kResourceExhausted);
}

TEST_F(DeviceRegistryTest, ASecondConnectionReplacesTheFirst) {
  const int64_t first = Connect("w");
  const std::shared_ptr<FakeLink> old = link_;
  const int64_t second = Connect("w");
  ASSERT_TRUE(old->closed().has_value());
  EXPECT_EQ(old->closed()->code(), absl::StatusCode::kAborted);
  EXPECT_EQ(registry_.FindSession(first), nullptr);
  EXPECT_EQ(registry_.FindSession(second), registry_.Find("w"));
  EXPECT_FALSE(link_->closed().has_value());
  EXPECT_EQ(registry_.devices().size(), 1u);
}

TEST_F(DeviceRegistryTest, ABootIdOrOtherHardwareMakesARestart) {
  EXPECT_FALSE(registry_.IsRestart(TestHello("w")));
  Connect("w");
  EXPECT_FALSE(registry_.IsRestart(TestHello("w")));
  EXPECT_TRUE(registry_.IsRestart(TestHello("w", "boot-2")));
  WorkerHello changed = TestHello("w");
  changed.device.cores = 2;
  EXPECT_TRUE(registry_.IsRestart(changed));
}

TEST_F(DeviceRegistryTest, AnEndedSessionLeavesTheDeviceOffline) {
  const int64_t session = Connect("w");
  EXPECT_EQ(StateOf("w"), DeviceState::kChecking);
  registry_.Disconnect(session);
  EXPECT_EQ(registry_.FindSession(session), nullptr);
  EXPECT_EQ(StateOf("w"), DeviceState::kOffline);
  EXPECT_EQ(registry_.Status("w", 0).reason, "its connection ended");
  EXPECT_THAT(events_, ElementsAre("w connect", "w disconnect"));
}

TEST_F(DeviceRegistryTest, ClosesEveryStream) {
  const int64_t session = Connect("w");
  registry_.CloseAll(absl::UnavailableError("the server ends"));
  EXPECT_TRUE(link_->closed().has_value());
  EXPECT_EQ(registry_.FindSession(session), nullptr);
  EXPECT_FALSE(registry_.Find("w")->connected());
}

TEST_F(DeviceRegistryTest, KnowsWhetherSomeDeviceHasUnknownLeases) {
  const int64_t session = Connect("w");
  EXPECT_FALSE(registry_.AnyUnknownLeases());
  registry_.OnState("w", false, 1, /*has_unknown_leases=*/true);
  EXPECT_TRUE(registry_.AnyUnknownLeases());
  registry_.Disconnect(session);
  EXPECT_FALSE(registry_.AnyUnknownLeases());
}

// --- Availability ------------------------------------------------------------

TEST_F(DeviceRegistryTest, ADeviceHasAsManySlotsAsItsWorkerSays) {
  Connect("w", 2);
  // Connected, but not usable before its canary passed.
  EXPECT_FALSE(registry_.Refresh("w", 0).works);
  EXPECT_EQ(registry_.Refresh("w", 0).slots, 2);
  PassCanary("w");
  EXPECT_TRUE(registry_.Refresh("w", 1).free);
  EXPECT_TRUE(registry_.Refresh("w", 2).works);
  EXPECT_FALSE(registry_.Refresh("w", 2).free);
  EXPECT_EQ(StateOf("w", 2), DeviceState::kBusy);
  registry_.SetClogged("w", true);
  EXPECT_FALSE(registry_.Refresh("w", 0).free);
}

TEST_F(DeviceRegistryTest, ANewConnectionHasNoCapacityBeforeItsState) {
  Connect("w", 2);
  PassCanary("w");
  const WorkerHello hello = TestHello("w");
  registry_.Connect(hello, TestTarget(), std::make_shared<FakeLink>());
  const Availability availability = registry_.Refresh("w", 0);
  EXPECT_TRUE(availability.works);
  EXPECT_FALSE(availability.free);
  EXPECT_EQ(availability.slots, 0);
}

TEST_F(DeviceRegistryTest, DrainingOrderedAndForeignDevicesGetNothing) {
  Connect("w");
  PassCanary("w");
  registry_.OnState("w", /*draining=*/true, 1, false);
  EXPECT_FALSE(registry_.Refresh("w", 0).works);
  EXPECT_EQ(StateOf("w"), DeviceState::kDraining);
  registry_.OnState("w", /*draining=*/false, 1, false);
  ASSERT_TRUE(registry_.SetOrder("w", Order::kDrained, "by ann").ok());
  EXPECT_FALSE(registry_.Refresh("w", 0).works);
  EXPECT_EQ(StateOf("w"), DeviceState::kDrained);
  EXPECT_EQ(StateOf("w", 1), DeviceState::kDraining);
  WorkerHello hello = TestHello("v");
  hello.fingerprint = "llvm-18+tf1";
  Connect(hello);
  EXPECT_EQ(registry_.Refresh("v", 0).slots, 0);
  EXPECT_EQ(StateOf("v"), DeviceState::kIncompatible);
  EXPECT_THAT(registry_.Status("v", 0).reason, HasSubstr("llvm-18+tf1"));
}

TEST_F(DeviceRegistryTest, ARestEndsByTimeAlone) {
  const HealthRules rules;
  for (int i = 0; i < rules.barren_connections; ++i) {
    const int64_t session =
        Connect(TestHello("w", "boot-" + std::to_string(i)));
    clock_.Advance(absl::Seconds(1));
    registry_.Disconnect(session);
    registry_.Refresh("w", 0);
  }
  Connect(TestHello("w", "boot-last"));
  EXPECT_THAT(registry_.resting(), ElementsAre("w"));
  EXPECT_EQ(StateOf("w"), DeviceState::kPaused);
  EXPECT_EQ(registry_.Refresh("w", 0).slots, 0);
  clock_.Advance(rules.first_rest);
  EXPECT_EQ(registry_.Refresh("w", 0).slots, 1);
  EXPECT_THAT(registry_.resting(), IsEmpty());
}

// --- Health ------------------------------------------------------------------

TEST_F(DeviceRegistryTest, ACanaryIsDueAtFirstAndAgainAfterThePeriod) {
  Connect("w");
  EXPECT_THAT(registry_.DueCanaries(), ElementsAre("w"));
  registry_.OnCanaryGranted("w");
  registry_.Refresh("w", 1);
  EXPECT_THAT(registry_.DueCanaries(), IsEmpty());
  registry_.OnCanaryLost("w");
  registry_.Refresh("w", 0);
  EXPECT_THAT(registry_.DueCanaries(), ElementsAre("w"));
  PassCanary("w");
  EXPECT_THAT(registry_.DueCanaries(), IsEmpty());
  EXPECT_EQ(StateOf("w"), DeviceState::kIdle);
  clock_.Advance(HealthRules().canary_period);
  EXPECT_THAT(registry_.DueCanaries(), ElementsAre("w"));
  // A device whose slots are all used cannot take one.
  registry_.Refresh("w", 1);
  EXPECT_THAT(registry_.DueCanaries(), IsEmpty());
}

TEST_F(DeviceRegistryTest, AFailedCanaryQuarantinesAndIsNoted) {
  Connect("w");
  registry_.OnCanaryGranted("w");
  registry_.OnCanary("w", {.kind = CanaryResult::Kind::kFailed,
                           .seconds = 0,
                           .error = "wrong_result"});
  EXPECT_FALSE(registry_.Refresh("w", 0).works);
  EXPECT_EQ(StateOf("w"), DeviceState::kQuarantined);
  EXPECT_THAT(registry_.Status("w", 0).reason, HasSubstr("wrong_result"));
  EXPECT_THAT(events_, ElementsAre("w connect", "w quarantine"));
}

TEST_F(DeviceRegistryTest, KnowsTheBestCanaryByDeviceIdUntilAnOrderEnds) {
  Connect("w");
  PassCanary("w", 1e-3);
  const std::string id = registry_.Find("w")->device_id;
  EXPECT_EQ(registry_.CanarySeconds(id), 1e-3);
  ASSERT_TRUE(registry_.SetOrder("w", Order::kNone, "").ok());
  EXPECT_EQ(registry_.CanarySeconds(id), 0);
  registry_.Refresh("w", 0);
  EXPECT_THAT(registry_.DueCanaries(), ElementsAre("w"));
}

TEST_F(DeviceRegistryTest, ACrashIsDoubtedAndASuccessIsNot) {
  Connect("w");
  PassCanary("w");
  EXPECT_FALSE(registry_.OnOutcome("w", /*ok=*/true, /*crashed=*/false));
  EXPECT_TRUE(registry_.OnOutcome("w", /*ok=*/false, /*crashed=*/true));
}

TEST_F(DeviceRegistryTest, CountsTrialsOverTheWindow) {
  Connect("w");
  PassCanary("w");
  for (int i = 0; i < 11; ++i) {
    registry_.OnOutcome("w", true, false);
    clock_.Advance(absl::Seconds(1));
  }
  EXPECT_DOUBLE_EQ(registry_.Status("w", 0).trials_per_second, 1.0);
  clock_.Advance(Timeouts().rate_window);
  EXPECT_EQ(registry_.Status("w", 0).trials_per_second, 0);
}

// --- Operators' orders -------------------------------------------------------

TEST_F(DeviceRegistryTest, KeepsTheStateOfTheLastFullMeasurement) {
  Connect("w");
  const auto report = [&](const std::string& state) {
    registry_.OnReport("w", state, -absl::InfiniteDuration());
    return registry_.Status("w", 0).device_state;
  };
  EXPECT_EQ(report(R"({"load":1})"), R"({"load":1})");
  const std::string full = R"({"load":2,"canary_seconds":0.00001})";
  EXPECT_EQ(report(full), full);
  EXPECT_EQ(report(""), full);               // only built
  EXPECT_EQ(report(R"({"load":3})"), full);  // crashed
  EXPECT_EQ(report(R"({"canary_seconds":0.00002})"),
            R"({"canary_seconds":0.00002})");
}

TEST_F(DeviceRegistryTest, RemembersADeviceThatHasNotConnectedYet) {
  registry_.Know({.name = "w",
                  .order = Order::kQuarantined,
                  .order_reason = "by ann",
                  .model = "Test Processor",
                  .target = "x86-64:znver4,cores=4"});
  const DeviceStatus status = registry_.Status("w", 0);
  EXPECT_EQ(status.state, DeviceState::kOffline);
  EXPECT_EQ(status.model, "Test Processor");
  EXPECT_EQ(status.reason,
            "not connected since the server started; quarantined by ann");
  Connect("w");
  EXPECT_EQ(StateOf("w"), DeviceState::kQuarantined);
}

TEST_F(DeviceRegistryTest, AReservationEndsAtItsTime) {
  Connect("w");
  ASSERT_TRUE(
      registry_.Reserve("w", "ann", clock_.Now() + absl::Minutes(1)).ok());
  EXPECT_THAT(registry_.Status("w", 0).reason,
              HasSubstr("reserved for ann until 20"));
  EXPECT_THAT(registry_.ExpireReservations(), IsEmpty());
  clock_.Advance(absl::Minutes(1));
  EXPECT_THAT(registry_.ExpireReservations(), ElementsAre("w"));
  EXPECT_THAT(registry_.ExpireReservations(), IsEmpty());
  EXPECT_EQ(registry_.Find("w")->known.reserved_for, "");
  EXPECT_EQ(events_.back(), "w release");
}

TEST_F(DeviceRegistryTest, OnlyADeviceThatIsGoneIsForgotten) {
  const int64_t session = Connect("w");
  EXPECT_EQ(registry_.CheckForget("w").code(),
            absl::StatusCode::kFailedPrecondition);
  registry_.Disconnect(session);
  ASSERT_TRUE(registry_.CheckForget("w").ok());
  registry_.Forget("w");
  EXPECT_EQ(registry_.Find("w"), nullptr);
  EXPECT_THAT(registry_.DueCanaries(), IsEmpty());
  for (const absl::Status& status :
       {registry_.CheckForget("w"), registry_.SetOrder("w", Order::kNone, ""),
        registry_.Reserve("w", "ann", clock_.Now())}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  }
}

}  // namespace
}  // namespace tilefarm::farm
