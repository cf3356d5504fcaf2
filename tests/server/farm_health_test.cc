// Canaries, doubts and operators' orders in the farm, under a fake clock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/farm/farm.h"
#include "tests/server/fake_worker.h"
#include "tests/support/fake_clock.h"

namespace tilefarm::farm {
namespace {

using testing::FakeLink;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kFingerprint;
using testing::Measured;
using ::testing::SizeIs;
using testing::TestHello;
using testing::TestTarget;

class FarmHealthTest : public ::testing::Test,
                       public ResultSink,
                       public DeviceListener {
 protected:
  FarmHealthTest()
      : farm_({.canary =
                   [](const target::Target& device) {
                     WorkItem item;
                     item.target = device;
                     return std::make_optional(item);
                   },
               .clock = &clock_,
               .fingerprint = kFingerprint}) {
    farm_.SetSink(this);
    farm_.SetListener(this);
  }

  void OnResult(Completion completion) override {
    if (completion.item.purpose == Purpose::kCanary) {
      canaries.push_back(completion.trusted);
    } else {
      recorded.push_back(std::move(completion));
    }
  }
  void OnDeviceEvent(const DeviceEvent& event) override {
    events.push_back(event.device + " " + event.action);
  }

  struct Worker {
    std::shared_ptr<FakeLink> link = std::make_shared<FakeLink>();
    int64_t session = 0;
    size_t seen = 0;
  };
  Worker Connect(const std::string& name, int slots = 2,
                 const std::string& boot = "boot") {
    Worker worker;
    worker.session = *farm_.Connect(TestHello(name, boot), worker.link);
    farm_.OnState(worker.session, {}, false, slots);
    return worker;
  }
  // Connects and passes the canary.
  Worker ConnectWell(const std::string& name) {
    Worker worker = Connect(name);
    EXPECT_TRUE(Canary(worker, Measured(1e-3)));
    return worker;
  }
  static Measurement Failed(database::Status status) {
    Measurement measured;
    measured.status = status;
    measured.error = "signal 11";
    return measured;
  }
  // The next lease that the worker has not answered yet.
  std::optional<Lease> Next(Worker& worker) {
    const std::vector<Lease> all = worker.link->leases();
    if (worker.seen == all.size()) return std::nullopt;
    return all[worker.seen++];
  }
  void Report(const Worker& worker, const Lease& lease,
              const Measurement& measured) {
    farm_.OnResult(worker.session, {.lease_id = lease.lease_id,
                                    .attempt = lease.attempt,
                                    .candidate_id = lease.item.candidate_id,
                                    .measurement = measured});
  }
  // Answers the next lease, which must be a canary.
  bool Canary(Worker& worker, const Measurement& measured) {
    const auto lease = Next(worker);
    if (!lease.has_value() || lease->item.purpose != Purpose::kCanary) {
      return false;
    }
    Report(worker, *lease, measured);
    farm_.Committed(lease->item.candidate_id, false);
    return true;
  }
  // The candidate id of the next lease; empty: there is none.
  std::string Trial(Worker& worker, const Measurement& measured) {
    const auto lease = Next(worker);
    if (!lease.has_value()) return "";
    Report(worker, *lease, measured);
    return lease->item.candidate_id;
  }
  void Add(const std::string& id, const std::string& queue = "job") {
    WorkItem item;
    item.candidate_id = id;
    item.queue = queue;
    item.task_id = "task";
    item.target = TestTarget();
    ASSERT_TRUE(farm_.Add(item).ok());
  }
  void Pass(absl::Duration time) {
    clock_.Advance(time);
    farm_.Tick();
  }
  DeviceStatus Device(const std::string& name = "w") {
    for (const DeviceStatus& device : farm_.Devices()) {
      if (device.name == name) return device;
    }
    ADD_FAILURE() << "no device " << name;
    return {};
  }

  testing::FakeClock clock_;
  std::vector<bool> canaries;
  std::vector<Completion> recorded;
  std::vector<std::string> events;
  Farm farm_;
};

TEST_F(FarmHealthTest, NothingIsMeasuredBeforeTheFirstCanaryPassed) {
  Add("a");
  Worker worker = Connect("w");
  EXPECT_EQ(Device().state, DeviceState::kChecking);
  EXPECT_THAT(worker.link->leases(), SizeIs(1));
  EXPECT_TRUE(Canary(worker, Measured(1e-3)));
  EXPECT_EQ(Trial(worker, Measured(1e-3)), "a");
  ASSERT_THAT(recorded, SizeIs(1));
  EXPECT_FALSE(recorded[0].unsteady);
  EXPECT_THAT(canaries, ::testing::ElementsAre(true));
}

TEST_F(FarmHealthTest, AWrongCanaryQuarantinesUntilOnePasses) {
  Add("a");
  Worker worker = Connect("w");
  EXPECT_TRUE(Canary(worker, Failed(database::Status::kWrongResult)));
  EXPECT_EQ(Device().state, DeviceState::kQuarantined);
  EXPECT_THAT(Device().reason, HasSubstr("wrong_result"));
  EXPECT_THAT(farm_.WhyNoDevice(TestTarget()), HasSubstr("wrong_result"));
  EXPECT_EQ(farm_.SlotsFor(TestTarget()), 0);
  Pass(absl::Seconds(1));
  EXPECT_TRUE(Canary(worker, Measured(1e-3)));
  EXPECT_EQ(Trial(worker, Measured(1e-3)), "a");
  EXPECT_THAT(events, ::testing::IsSupersetOf(
                          {"w connect", "w quarantine", "w recover"}));
}

TEST_F(FarmHealthTest, ADriftingDeviceIsPausedAndItsRecordsAreSuspect) {
  Worker worker = ConnectWell("w");
  Pass(absl::Minutes(1));
  EXPECT_TRUE(Canary(worker, Measured(1.7e-3)));
  EXPECT_THAT(canaries, ::testing::ElementsAre(true, false));
  // An unsteady device keeps working, and its records have a flag.
  EXPECT_TRUE(Device().unsteady);
  EXPECT_THAT(Device().reason,
              HasSubstr("unsteady: its canary took 1700.0 us"));
  Add("a");
  EXPECT_EQ(Trial(worker, Measured(1e-3)), "a");
  ASSERT_THAT(recorded, SizeIs(1));
  EXPECT_TRUE(recorded[0].unsteady);
  Pass(absl::Seconds(10));
  EXPECT_TRUE(Canary(worker, Measured(5e-3)));
  EXPECT_EQ(Device().state, DeviceState::kPaused);
  Add("b");
  EXPECT_EQ(Next(worker), std::nullopt);
}

TEST_F(FarmHealthTest, ACrashCountsOnceTheCanaryPassed) {
  Worker worker = ConnectWell("w");
  Add("a");
  EXPECT_EQ(Trial(worker, Failed(database::Status::kRunError)), "a");
  EXPECT_THAT(recorded, IsEmpty());
  EXPECT_EQ(farm_.Counts("job").outstanding(), 1);
  Pass(absl::Seconds(2));
  EXPECT_TRUE(Canary(worker, Measured(1e-3)));
  ASSERT_THAT(recorded, SizeIs(1));
  EXPECT_EQ(recorded[0].measurement.status, database::Status::kRunError);
}

TEST_F(FarmHealthTest, ABrokenDevicesCrashesAreNotTheCandidates) {
  Worker broken = ConnectWell("broken");
  Add("a");
  EXPECT_EQ(Trial(broken, Failed(database::Status::kRunError)), "a");
  Pass(absl::Seconds(2));
  EXPECT_TRUE(Canary(broken, Failed(database::Status::kRunError)));
  EXPECT_EQ(Device("broken").state, DeviceState::kQuarantined);
  EXPECT_THAT(recorded, IsEmpty());
  // Its worker may drop the result.
  EXPECT_THAT(broken.link->acks(),
              ::testing::Contains(::testing::Pair(::testing::_, true)));
  Worker well = ConnectWell("well");
  EXPECT_EQ(Trial(well, Measured(1e-3)), "a");
  ASSERT_THAT(recorded, SizeIs(1));
  EXPECT_EQ(recorded[0].measurement.status, database::Status::kOk);
}

TEST_F(FarmHealthTest, ACandidateThatBreaksTheCanaryIsBlamedInTheEnd) {
  Worker worker = ConnectWell("w");
  Add("poison");
  for (int i = 0; i < HealthRules().max_doubts; ++i) {
    EXPECT_EQ(Trial(worker, Failed(database::Status::kRunError)), "poison");
    Pass(absl::Seconds(2));
    EXPECT_TRUE(Canary(worker, Failed(database::Status::kRunError)));
    EXPECT_THAT(recorded, IsEmpty());
    Pass(absl::Minutes(5));
    EXPECT_TRUE(Canary(worker, Measured(1e-3)));
  }
  EXPECT_EQ(Trial(worker, Failed(database::Status::kRunError)), "poison");
  EXPECT_THAT(recorded, SizeIs(1));
}

TEST_F(FarmHealthTest, ADoubtedResultDoesNotWaitForAWorkerThatIsGone) {
  Worker worker = ConnectWell("w");
  Add("a");
  EXPECT_EQ(Trial(worker, Failed(database::Status::kRunError)), "a");
  farm_.Disconnect(worker.session);
  EXPECT_EQ(farm_.Counts("job").ready, 1);
  // The result was not acknowledged, so the spool sends it again; now the
  // canary passes.
  Worker back = Connect("w", /*slots=*/0);
  farm_.OnResult(back.session,
                 {.lease_id = worker.link->leases().back().lease_id,
                  .candidate_id = "a",
                  .measurement = Failed(database::Status::kRunError)});
  EXPECT_EQ(farm_.Counts("job").ready, 0);
  farm_.OnState(back.session, {}, false, 2);
  Pass(absl::Seconds(2));
  EXPECT_TRUE(Canary(back, Measured(1e-3)));
  EXPECT_THAT(recorded, SizeIs(1));
}

TEST_F(FarmHealthTest, RemovingAQueueForgetsItsDoubtedResults) {
  Worker worker = ConnectWell("w");
  Add("a");
  Trial(worker, Failed(database::Status::kRunError));
  farm_.RemoveQueue("job");
  EXPECT_TRUE(worker.link->acks().back().second);
  Pass(absl::Seconds(2));
  EXPECT_TRUE(Canary(worker, Measured(1e-3)));
  EXPECT_THAT(recorded, IsEmpty());
}

TEST_F(FarmHealthTest, AKilledWorkerIsNoFailureOfTheDevice) {
  Worker worker = Connect("w");  // its canary is being measured
  Worker back = Connect("w", 2, "boot-2");
  EXPECT_EQ(Device().state, DeviceState::kChecking);
  EXPECT_TRUE(Canary(back, Measured(1e-3)));
  EXPECT_EQ(Device().state, DeviceState::kIdle);
  EXPECT_THAT(events, ::testing::Not(::testing::Contains("w quarantine")));
}

TEST_F(FarmHealthTest, AHangingCanaryQuarantines) {
  Worker worker = Connect("w");
  const Lease lease = *Next(worker);
  const HeldLease held[] = {{lease.lease_id, 1, Phase::kRunning}};
  for (int i = 0; i < 30; ++i) {
    farm_.OnState(worker.session, held, false, 2);
    Pass(absl::Seconds(5));
  }
  EXPECT_EQ(Device().state, DeviceState::kQuarantined);
  EXPECT_THAT(Device().reason, HasSubstr("never came back"));
}

TEST_F(FarmHealthTest, DrainedDeviceFinishesWhatItHoldsAndGetsNothing) {
  Worker worker = ConnectWell("w");
  Add("a");
  ASSERT_TRUE(farm_.SetOrder("w", Order::kDrained, "by ann: the fan").ok());
  EXPECT_EQ(Device().state, DeviceState::kDraining);
  EXPECT_EQ(Device().reason, "drained by ann: the fan");
  Add("b");
  EXPECT_THAT(worker.link->cancelled(), IsEmpty());
  EXPECT_EQ(Trial(worker, Measured(1e-3)), "a");
  EXPECT_THAT(recorded, SizeIs(1));
  EXPECT_EQ(Device().state, DeviceState::kDrained);
  Pass(absl::Minutes(10));
  EXPECT_EQ(Next(worker), std::nullopt);
  // After resuming, it must first pass a canary.
  ASSERT_TRUE(farm_.SetOrder("w", Order::kNone, "").ok());
  EXPECT_TRUE(Canary(worker, Measured(1e-3)));
  EXPECT_EQ(Trial(worker, Measured(1e-3)), "b");
}

TEST_F(FarmHealthTest, AnOperatorsQuarantineLastsWhateverTheDeviceDoes) {
  Worker worker = ConnectWell("w");
  ASSERT_TRUE(farm_.SetOrder("w", Order::kQuarantined, "by ann").ok());
  Add("a");
  farm_.Disconnect(worker.session);
  Worker back = Connect("w", 2, "boot-2");
  Pass(absl::Hours(24));
  EXPECT_THAT(back.link->leases(), IsEmpty());
  EXPECT_EQ(Device().state, DeviceState::kQuarantined);
  EXPECT_EQ(farm_.SetOrder("x", Order::kDrained, "").code(),
            absl::StatusCode::kNotFound);
}

TEST_F(FarmHealthTest, AReservedDeviceWorksForOneUserUntilTheTimeIsOver) {
  Worker worker = ConnectWell("w");
  farm_.OpenQueue("anns", {.user = "ann"});
  farm_.OpenQueue("bobs", {.user = "bob"});
  ASSERT_TRUE(farm_.Reserve("w", "ann", clock_.Now() + absl::Minutes(30)).ok());
  Add("b", "bobs");
  EXPECT_EQ(Next(worker), std::nullopt);
  EXPECT_EQ(farm_.SlotsFor(TestTarget(), {.user = "bob"}), 0);
  EXPECT_THAT(farm_.WhyNoDevice(TestTarget(), {.user = "bob"}),
              HasSubstr("w is reserved for ann"));
  EXPECT_THAT(Device().reason, HasSubstr("reserved for ann until 20"));
  Add("a", "anns");
  EXPECT_EQ(Trial(worker, Measured(1e-3)), "a");
  // Its canaries continue meanwhile.
  Pass(absl::Minutes(29));
  EXPECT_TRUE(Canary(worker, Measured(1e-3)));
  EXPECT_EQ(Next(worker), std::nullopt);
  Pass(absl::Minutes(1));
  EXPECT_THAT(events, ::testing::Contains("w release"));
  std::string next = Trial(worker, Measured(1e-3));
  if (next.rfind("canary", 0) == 0) next = Trial(worker, Measured(1e-3));
  EXPECT_EQ(next, "b");
}

TEST_F(FarmHealthTest, OnlyADeviceThatIsGoneIsForgotten) {
  Worker worker = ConnectWell("w");
  EXPECT_EQ(farm_.Forget("w").code(), absl::StatusCode::kFailedPrecondition);
  Add("a");
  farm_.Disconnect(worker.session);
  EXPECT_TRUE(farm_.Forget("w").ok());
  EXPECT_THAT(farm_.Devices(), IsEmpty());
  EXPECT_EQ(farm_.Counts("job").ready, 1);
  EXPECT_EQ(farm_.Forget("w").code(), absl::StatusCode::kNotFound);
}

TEST_F(FarmHealthTest, ADeviceThatComesAndGoesHoldsNoWorkHostage) {
  Worker steady = ConnectWell("steady");
  for (int i = 0; i < HealthRules().barren_connections; ++i) {
    Worker worker = Connect("flaps", 2, "boot-" + std::to_string(i));
    Pass(absl::Seconds(1));
    farm_.Disconnect(worker.session);
  }
  Worker worker = Connect("flaps", 2, "boot-last");
  EXPECT_EQ(Device("flaps").state, DeviceState::kPaused);
  EXPECT_THAT(Device("flaps").reason, HasSubstr("connections in a row"));
  EXPECT_TRUE(Canary(worker, Measured(1e-3)));
  Add("a");
  Add("b");
  Add("c");
  EXPECT_EQ(Next(worker), std::nullopt);
  EXPECT_EQ(Trial(steady, Measured(1e-3)), "a");
  Add("d");  // the steady one has no free slot
  EXPECT_EQ(Next(worker), std::nullopt);
  Pass(absl::Seconds(1));
  EXPECT_EQ(Trial(worker, Measured(1e-3)), "d");
}

TEST_F(FarmHealthTest, RequirementsAndLabelsDecideWhoMayMeasure) {
  Worker plain = ConnectWell("plain");
  const std::string demands[] = {"label.rack=b2"};
  farm_.OpenQueue("job",
                  {.requirements = *ParseRequirements(demands, TestTarget())});
  Add("a");
  EXPECT_EQ(Next(plain), std::nullopt);
  EXPECT_THAT(farm_.WhyNoDevice(
                  TestTarget(),
                  {.requirements = *ParseRequirements(demands, TestTarget())}),
              HasSubstr("plain has not label.rack=b2"));
  WorkerHello hello = TestHello("labelled");
  hello.device.labels["rack"] = "b2";
  Worker labelled;
  labelled.session = *farm_.Connect(hello, labelled.link);
  farm_.OnState(labelled.session, {}, false, 1);
  EXPECT_TRUE(Canary(labelled, Measured(1e-3)));
  EXPECT_EQ(Trial(labelled, Measured(1e-3)), "a");
}

TEST_F(FarmHealthTest, OneUsersFloodDoesNotKeepAnotherWaiting) {
  Worker worker = ConnectWell("w");
  for (int job = 0; job < 20; ++job) {
    const std::string queue = "ann-" + std::to_string(job);
    farm_.OpenQueue(queue, {.user = "ann", .priority = 10});
    for (int i = 0; i < 50; ++i) Add(queue + "/" + std::to_string(i), queue);
  }
  for (int i = 0; i < 100; ++i) {
    clock_.Advance(absl::Milliseconds(100));
    Trial(worker, Measured(1e-3));
  }
  farm_.OpenQueue("bobs", {.user = "bob", .priority = -10});
  Add("bob", "bobs");
  // At most the leases that the worker already has, and one more.
  int waited = 0;
  while (Trial(worker, Measured(1e-3)) != "bob") {
    clock_.Advance(absl::Milliseconds(100));
    ASSERT_LE(++waited, 3);
  }
}

}  // namespace
}  // namespace tilefarm::farm
