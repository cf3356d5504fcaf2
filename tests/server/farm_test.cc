#include "server/farm/farm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/farm/lease_id.h"
#include "tests/server/fake_worker.h"
#include "tests/support/fake_clock.h"

namespace tilefarm::farm {
namespace {

using ::testing::ElementsAre;
using testing::FakeLink;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kFingerprint;
using testing::Measured;
using ::testing::Pair;
using ::testing::SizeIs;
using testing::TestHello;
using testing::TestTarget;

constexpr char kLeaseKey[] = "key";

// Of a lease that a former process granted to the worker of this name.
std::string FormerLease(const std::string& name, const std::string& candidate) {
  const std::string device = DeviceId(name, TestHello(name).device);
  return MakeLeaseId(
      kLeaseKey,
      {.candidate_id = candidate, .attempt = 1, .device_id = device});
}

class FakeSink : public ResultSink {
 public:
  void OnResult(Completion completion) override {
    completions.push_back(std::move(completion));
  }
  std::vector<Completion> completions;
};

class FarmTest : public ::testing::Test {
 protected:
  FarmTest()
      : farm_({.clock = &clock_,
               .fingerprint = kFingerprint,
               .lease_key = kLeaseKey,
               .new_lease_id = [this] {
                 return "lease-" + std::to_string(++leases_made_);
               }}) {
    farm_.SetSink(&sink_);
  }

  struct Connected {
    std::shared_ptr<FakeLink> link = std::make_shared<FakeLink>();
    int64_t session = 0;
  };
  Connected Connect(const WorkerHello& hello, int slots = 1) {
    Connected worker;
    worker.session = *farm_.Connect(hello, worker.link);
    farm_.OnState(worker.session, {}, false, slots);
    return worker;
  }
  Connected Connect(const std::string& name, int slots = 1) {
    return Connect(TestHello(name), slots);
  }
  WorkItem Item(const std::string& id, const std::string& queue = "job") {
    WorkItem item;
    item.candidate_id = id;
    item.queue = queue;
    item.task_id = "task";
    item.target = TestTarget();
    return item;
  }
  void Add(const std::string& id, const std::string& queue = "job",
           Where where = Where::kBack) {
    ASSERT_TRUE(farm_.Add(Item(id, queue), where).ok());
  }
  void Report(const Connected& worker, const std::string& lease,
              const std::string& candidate) {
    uint32_t attempt = 1;
    for (const Lease& one : worker.link->leases()) {
      if (one.lease_id == lease) attempt = one.attempt;
    }
    farm_.OnResult(worker.session, {.lease_id = lease,
                                    .attempt = attempt,
                                    .candidate_id = candidate,
                                    .measurement = Measured(1e-3)});
  }
  void Hold(const Connected& worker, const std::string& lease, Phase phase,
            int slots = 1) {
    const HeldLease held[] = {{lease, 1, phase}};
    farm_.OnState(worker.session, held, false, slots);
  }
  void Pass(absl::Duration time) {
    clock_.Advance(time);
    farm_.Tick();
  }

  testing::FakeClock clock_;
  int leases_made_ = 0;
  FakeSink sink_;
  Farm farm_;
};

TEST_F(FarmTest, GrantsAsManyLeasesAsTheWorkerHasSlots) {
  Add("a");
  Add("b");
  Add("c");
  const Connected worker = Connect("w", 2);
  ASSERT_THAT(worker.link->leases(), SizeIs(2));
  EXPECT_EQ(worker.link->leases()[0].item.candidate_id, "a");
  EXPECT_EQ(worker.link->leases()[0].attempt, 1u);
  EXPECT_EQ(farm_.Counts("job").ready, 1);
  EXPECT_EQ(farm_.Counts("job").leased, 2);
  // A result frees a slot at once; the next State need not come first.
  Report(worker, "lease-1", "a");
  EXPECT_THAT(worker.link->leases(), SizeIs(3));
}

TEST_F(FarmTest, AcknowledgesAResultOnceItIsCommitted) {
  Add("a");
  const Connected worker = Connect("w");
  Report(worker, "lease-1", "a");
  ASSERT_THAT(sink_.completions, SizeIs(1));
  EXPECT_EQ(sink_.completions[0].item.candidate_id, "a");
  EXPECT_THAT(sink_.completions[0].device_id, HasSubstr("w@"));
  EXPECT_THAT(worker.link->acks(), IsEmpty());
  farm_.Committed("a", /*superseded=*/false);
  EXPECT_THAT(worker.link->acks(), ElementsAre(Pair("lease-1", false)));
  EXPECT_EQ(farm_.Counts("job").outstanding(), 0);
}

TEST_F(FarmTest, AcknowledgementsThatNothingGoesWithAreSentAtATick) {
  Add("a");
  const Connected worker = Connect("w");
  Report(worker, "lease-1", "a");
  farm_.Committed("a", /*superseded=*/false);
  ASSERT_THAT(worker.link->flushes(), IsEmpty());
  Pass(Timeouts().tick);
  EXPECT_THAT(worker.link->flushes(), ElementsAre(Timeouts().ack_delay));
}

TEST_F(FarmTest, AWorkerThatDrainsIsAcknowledgedAtOnce) {
  Add("a");
  Add("b");
  const Connected worker = Connect("w", 2);
  Report(worker, "lease-1", "a");
  farm_.Committed("a", /*superseded=*/false);
  ASSERT_THAT(worker.link->flushes(), IsEmpty());
  const HeldLease held[] = {{"lease-2", 1, Phase::kRunning}};
  farm_.OnState(worker.session, held, /*draining=*/true, 0);
  EXPECT_THAT(worker.link->flushes(), ElementsAre(absl::ZeroDuration()));
  Report(worker, "lease-2", "b");
  farm_.Committed("b", /*superseded=*/false);
  EXPECT_THAT(worker.link->flushes(), SizeIs(2));
}

TEST_F(FarmTest, HandsNothingOutWhileTooManyResultsWaitForTheDisk) {
  const int most = Timeouts().commit_backlog;
  const Connected worker = Connect("w");
  for (int i = 0; i < most + 2; ++i) {
    const std::string id = "c" + std::to_string(i);
    Add(id);
    if (i < most) Report(worker, "lease-" + std::to_string(i + 1), id);
  }
  EXPECT_EQ(farm_.Counts("job").committing, most);
  EXPECT_EQ(farm_.Counts("job").ready, 2);
  EXPECT_THAT(worker.link->leases(), SizeIs(most));
  farm_.Committed("c0", /*superseded=*/false);
  EXPECT_THAT(worker.link->leases(), SizeIs(most + 1));
}

TEST_F(FarmTest, RenewedLeaseOutlivesItsDuration) {
  Add("a");
  const Connected worker = Connect("w");
  for (int i = 0; i < 5; ++i) {
    Pass(absl::Seconds(20));
    Hold(worker, "lease-1", Phase::kGranted);
  }
  EXPECT_THAT(worker.link->leases(), SizeIs(1));
  EXPECT_EQ(farm_.Counts("job").leased, 1);
}

TEST_F(FarmTest, LeaseThatIsNotRenewedIsGrantedAgain) {
  Add("a");
  const Connected worker = Connect("w");
  Pass(absl::Seconds(29));
  EXPECT_EQ(farm_.Counts("job").leased, 1);
  EXPECT_THAT(worker.link->leases(), SizeIs(1));
  Pass(absl::Seconds(1));
  EXPECT_THAT(worker.link->cancelled(), ElementsAre("lease-1"));
  ASSERT_THAT(worker.link->leases(), SizeIs(2));
  EXPECT_EQ(worker.link->leases()[1].lease_id, "lease-2");
  EXPECT_EQ(worker.link->leases()[1].attempt, 2u);
}

TEST_F(FarmTest, PhaseBeyondTheCandidatesLimitsIsLostThoughRenewed) {
  Add("a");
  const Connected worker = Connect("w");
  const MeasureOptions limits;
  const absl::Duration limit = limits.run_timeout + Timeouts().phase_grace;
  Hold(worker, "lease-1", Phase::kRunning);
  for (absl::Duration t; t < limit; t += absl::Seconds(5)) {
    Pass(absl::Seconds(5));
    Hold(worker, "lease-1", Phase::kRunning);
  }
  EXPECT_THAT(worker.link->cancelled(), IsEmpty());
  Pass(absl::Seconds(5));
  EXPECT_THAT(worker.link->cancelled(), ElementsAre("lease-1"));
}

TEST_F(FarmTest, BuiltCandidateOutlastsItsBuildLimitBehindASlowOne) {
  for (const char* id : {"a", "b", "c"}) Add(id);
  const Connected worker = Connect("w", 3);
  const MeasureOptions limits;
  const absl::Duration run = limits.run_timeout + Timeouts().phase_grace;
  const auto hold = [&](Phase first, Phase second) {
    const HeldLease held[] = {
        {"lease-1", 1, first}, {"lease-2", 1, second}, {"lease-3", 1, second}};
    farm_.OnState(worker.session, held, /*draining=*/false, 3);
  };
  hold(Phase::kRunning, Phase::kBuilding);
  hold(Phase::kRunning, Phase::kBuilt);
  // Two kernels before the last, each as slow as it may be: longer than a
  // build may take.
  absl::Duration passed;
  for (; passed + absl::Seconds(5) < run; passed += absl::Seconds(5)) {
    Pass(absl::Seconds(5));
    hold(Phase::kRunning, Phase::kBuilt);
  }
  Report(worker, "lease-1", "a");
  for (absl::Duration t; t + absl::Seconds(5) < run; t += absl::Seconds(5)) {
    Pass(absl::Seconds(5));
    const HeldLease held[] = {{"lease-2", 1, Phase::kRunning},
                              {"lease-3", 1, Phase::kBuilt}};
    farm_.OnState(worker.session, held, /*draining=*/false, 3);
    passed += absl::Seconds(5);
  }
  ASSERT_GT(passed, limits.build_timeout + Timeouts().phase_grace);
  EXPECT_THAT(worker.link->cancelled(), IsEmpty());
  EXPECT_EQ(farm_.Figures().leases_built, 1);
}

TEST_F(FarmTest, NothingWaitsForEverInAWorker) {
  for (const Phase waiting : {Phase::kGranted, Phase::kBuilt}) {
    const std::string id = waiting == Phase::kBuilt ? "built" : "granted";
    Add(id);
    const Connected worker = Connect(id, 2);
    ASSERT_THAT(worker.link->leases(), SizeIs(1));
    const std::string lease = worker.link->leases()[0].lease_id;
    const MeasureOptions limits;
    const absl::Duration most = 2 * (limits.build_timeout + limits.run_timeout +
                                     2 * Timeouts().phase_grace);
    Hold(worker, lease, waiting, /*slots=*/2);
    absl::Duration t;
    for (; t + absl::Seconds(5) <= most; t += absl::Seconds(5)) {
      ASSERT_THAT(worker.link->cancelled(), IsEmpty()) << id << " " << t;
      Pass(absl::Seconds(5));
      Hold(worker, lease, waiting, /*slots=*/2);
    }
    Pass(absl::Seconds(5));
    EXPECT_THAT(worker.link->cancelled(), ElementsAre(lease));
    farm_.Disconnect(worker.session);
    farm_.RemoveQueue("job");
  }
}

TEST_F(FarmTest, ThirdLossWhileRunningRecordsDeviceLost) {
  Add("a");
  const Connected worker = Connect("w");
  for (int loss = 1; loss <= 3; ++loss) {
    EXPECT_THAT(sink_.completions, IsEmpty());
    ASSERT_THAT(worker.link->leases(), SizeIs(loss));
    Hold(worker, worker.link->leases().back().lease_id, Phase::kRunning);
    Pass(absl::Seconds(30));
  }
  ASSERT_THAT(sink_.completions, SizeIs(1));
  EXPECT_EQ(sink_.completions[0].measurement.status,
            database::Status::kDeviceLost);
  // The device's own result comes too late.
  Report(worker, "lease-3", "a");
  EXPECT_THAT(worker.link->acks(), ElementsAre(Pair("lease-3", true)));
  EXPECT_THAT(sink_.completions, SizeIs(1));
}

TEST_F(FarmTest, LossesWhileBuildingDoNotCount) {
  Add("a");
  const Connected worker = Connect("w");
  for (int loss = 1; loss <= 5; ++loss) {
    ASSERT_THAT(worker.link->leases(), SizeIs(loss));
    Hold(worker, worker.link->leases().back().lease_id, Phase::kBuilding);
    Pass(absl::Seconds(30));
  }
  EXPECT_THAT(sink_.completions, IsEmpty());
}

TEST_F(FarmTest, LossesInAnyPhaseHaveACap) {
  Add("a");
  const Connected worker = Connect("w");
  for (int loss = 1; loss <= Timeouts().max_losses; ++loss) {
    EXPECT_THAT(sink_.completions, IsEmpty());
    ASSERT_THAT(worker.link->leases(), SizeIs(loss));
    Pass(absl::Seconds(30));
  }
  ASSERT_THAT(sink_.completions, SizeIs(1));
  EXPECT_EQ(sink_.completions[0].measurement.status,
            database::Status::kDeviceLost);
  EXPECT_THAT(sink_.completions[0].measurement.error,
              HasSubstr("10 times while it held"));
}

TEST_F(FarmTest, ReconnectWithTheSameBootIdKeepsLeases) {
  Add("a");
  const Connected old = Connect("w");
  farm_.Disconnect(old.session);
  Pass(absl::Seconds(10));
  const Connected back = Connect("w");
  EXPECT_EQ(farm_.Counts("job").leased, 1);
  Report(back, "lease-1", "a");
  farm_.Committed("a", false);
  EXPECT_THAT(back.link->acks(), ElementsAre(Pair("lease-1", false)));
  EXPECT_THAT(old.link->acks(), IsEmpty());
}

TEST_F(FarmTest, WaitingResultsComeBeforeTheirCandidatesAreGrantedAgain) {
  Add("a");
  Add("b");
  const Connected old = Connect("w", 2);
  farm_.Disconnect(old.session);
  Pass(absl::Seconds(30));
  EXPECT_EQ(farm_.Counts("job").ready, 2);
  // Both were measured while it was away.
  Connected back;
  back.session = *farm_.Connect(TestHello("w"), back.link);
  Report(back, "lease-1", "a");
  Report(back, "lease-2", "b");
  EXPECT_THAT(sink_.completions, SizeIs(2));
  EXPECT_THAT(back.link->leases(), IsEmpty());
  EXPECT_THAT(back.link->acks(), IsEmpty());
}

TEST_F(FarmTest, RestartLosesLeasesAtOnce) {
  Add("a");
  const Connected old = Connect("w");
  const Connected back = Connect(TestHello("w", "boot-2"));
  ASSERT_THAT(back.link->leases(), SizeIs(1));
  EXPECT_EQ(back.link->leases()[0].item.candidate_id, "a");
  EXPECT_EQ(back.link->leases()[0].attempt, 2u);
}

TEST_F(FarmTest, HelloUnderAConnectedNameReplacesTheOldStream) {
  const Connected old = Connect("w");
  const Connected back = Connect("w");
  ASSERT_TRUE(old.link->closed().has_value());
  EXPECT_EQ(old.link->closed()->code(), absl::StatusCode::kAborted);
  EXPECT_FALSE(back.link->closed().has_value());
  // What the old stream still says changes nothing.
  farm_.Disconnect(old.session);
  EXPECT_EQ(farm_.Devices()[0].state, DeviceState::kIdle);
}

TEST_F(FarmTest, ResultOfAReplacedLeaseIsSuperseded) {
  Add("a");
  const Connected first = Connect("w1");
  farm_.Disconnect(first.session);
  Pass(absl::Seconds(30));
  const Connected second = Connect("w2");
  ASSERT_THAT(second.link->leases(), SizeIs(1));
  const Connected back = Connect("w1", 0);
  Report(back, "lease-1", "a");
  EXPECT_THAT(back.link->acks(), ElementsAre(Pair("lease-1", true)));
  EXPECT_THAT(sink_.completions, IsEmpty());
  Report(second, "lease-2", "a");
  EXPECT_THAT(sink_.completions, SizeIs(1));
}

TEST_F(FarmTest, ResultOfALostLeaseCountsUntilItIsReplaced) {
  Add("a");
  const Connected first = Connect("w1");
  farm_.Disconnect(first.session);
  Pass(absl::Seconds(30));
  EXPECT_EQ(farm_.Counts("job").ready, 1);
  const Connected back = Connect("w1", 0);
  Report(back, "lease-1", "a");
  ASSERT_THAT(sink_.completions, SizeIs(1));
  EXPECT_EQ(farm_.Counts("job").ready, 0);
}

TEST_F(FarmTest, RepeatedResultIsAcknowledgedOnTheNewStream) {
  Add("a");
  const Connected old = Connect("w");
  Report(old, "lease-1", "a");
  const Connected back = Connect("w");
  Report(back, "lease-1", "a");
  EXPECT_THAT(sink_.completions, SizeIs(1));
  farm_.Committed("a", false);
  EXPECT_THAT(back.link->acks(), ElementsAre(Pair("lease-1", false)));
  Report(back, "lease-1", "a");
  EXPECT_THAT(back.link->acks(),
              ElementsAre(Pair("lease-1", false), Pair("lease-1", true)));
}

TEST_F(FarmTest, UnknownCandidateIsSuperseded) {
  const Connected worker = Connect("w");
  Report(worker, "lease-of-old", "nobody-knows");
  EXPECT_THAT(worker.link->acks(), ElementsAre(Pair("lease-of-old", true)));
}

TEST_F(FarmTest, FormerProcessesResultIsAccepted) {
  Add("a", "job", Where::kHeldFromFormerProcess);
  const Connected worker = Connect("w");
  EXPECT_THAT(worker.link->leases(), IsEmpty());
  const std::string lease = FormerLease("w", "a");
  Report(worker, lease, "a");
  ASSERT_THAT(sink_.completions, SizeIs(1));
  farm_.Committed("a", false);
  EXPECT_THAT(worker.link->acks(), ElementsAre(Pair(lease, false)));
}

TEST_F(FarmTest, FormerProcessesCandidateIsGrantedAfterTheHold) {
  Add("a", "job", Where::kHeldFromFormerProcess);
  const Connected worker = Connect("w");
  Pass(Timeouts().former_hold - absl::Seconds(1));
  EXPECT_THAT(worker.link->leases(), IsEmpty());
  Pass(absl::Seconds(1));
  EXPECT_THAT(worker.link->leases(), SizeIs(1));
  // Its former holder reports after all, before the new one.
  const Connected former = Connect("former", 0);
  Report(former, FormerLease("former", "a"), "a");
  EXPECT_THAT(sink_.completions, SizeIs(1));
  EXPECT_THAT(worker.link->cancelled(), ElementsAre("lease-1"));
}

TEST_F(FarmTest, HoldLastsWhileAWorkerHasFormerLeases) {
  Add("a", "job", Where::kHeldFromFormerProcess);
  const Connected worker = Connect("w");
  Hold(worker, "former-lease", Phase::kRunning, 1);
  Pass(Timeouts().former_hold * 2);
  EXPECT_THAT(worker.link->leases(), IsEmpty());
  farm_.OnState(worker.session, {}, false, 1);
  Pass(absl::Seconds(1));
  EXPECT_THAT(worker.link->leases(), SizeIs(1));
}

TEST_F(FarmTest, HoldDoesNotLastForWhatWaitsForItsAcknowledgement) {
  Add("a", "job", Where::kHeldFromFormerProcess);
  const Connected worker = Connect("w");
  const HeldLease held[] = {
      {"former-lease", 1, Phase::kRunning, /*reported=*/true}};
  farm_.OnState(worker.session, held, false, 1);
  Pass(Timeouts().former_hold);
  EXPECT_THAT(worker.link->leases(), SizeIs(1));
}

TEST_F(FarmTest, AnotherCompilerGetsNoLeasesAndTheDeviceSaysWhy) {
  Add("a");
  WorkerHello hello = TestHello("w");
  hello.fingerprint = "llvm-18+tf1";
  const Connected worker = Connect(hello);
  EXPECT_THAT(worker.link->leases(), IsEmpty());
  const DeviceStatus status = farm_.Devices()[0];
  EXPECT_EQ(status.state, DeviceState::kIncompatible);
  EXPECT_THAT(status.reason, HasSubstr("llvm-18+tf1"));
  EXPECT_EQ(farm_.SlotsFor(TestTarget()), 0);
  EXPECT_THAT(farm_.WhyNoDevice(TestTarget()), HasSubstr("llvm-18+tf1"));
}

TEST_F(FarmTest, RefusesBadHellos) {
  WorkerHello hello = TestHello("w");
  hello.protocol_version = 99;
  EXPECT_EQ(farm_.Connect(hello, std::make_shared<FakeLink>()).status().code(),
            absl::StatusCode::kFailedPrecondition);
  hello = TestHello("");
  EXPECT_EQ(farm_.Connect(hello, std::make_shared<FakeLink>()).status().code(),
            absl::StatusCode::kInvalidArgument);
  hello = TestHello("w");
  hello.device.target = "toaster";
  EXPECT_EQ(farm_.Connect(hello, std::make_shared<FakeLink>()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(FarmTest, DeviceFitsByCpuFeaturesAndCores) {
  const auto parse = [](const char* text) { return *target::Parse(text); };
  const target::Target zen4 = parse("x86-64:znver4,cores=4");
  EXPECT_TRUE(DeviceFits(zen4, parse("x86-64:znver4,cores=1")));
  EXPECT_TRUE(DeviceFits(zen4, parse("x86-64:znver4,cores=4")));
  EXPECT_FALSE(DeviceFits(zen4, parse("x86-64:znver4,cores=8")));
  EXPECT_FALSE(DeviceFits(zen4, parse("x86-64:sapphirerapids,cores=1")));
  EXPECT_FALSE(DeviceFits(zen4, parse("aarch64:cortex-a72,cores=1")));
  EXPECT_TRUE(DeviceFits(zen4, parse("x86-64:x86-64-v3,cores=1")));
  // Times of another microarchitecture do not count, even if it could run.
  EXPECT_FALSE(DeviceFits(zen4, parse("x86-64:znver3,cores=1")));
}

TEST_F(FarmTest, ChangedHardwareIsANewDevice) {
  DeviceProperties properties = TestHello("w").device;
  const std::string id = DeviceId("w", properties);
  properties.l3_bytes *= 2;
  properties.memory_bytes += 1;
  EXPECT_NE(DeviceId("w", properties), id);
}

TEST_F(FarmTest, QueuesTakeTurnsAndUrgentOnesComeFirst) {
  for (const char* id : {"a1", "a2", "a3"}) Add(id, "job-a");
  for (const char* id : {"b1", "b2"}) Add(id, "job-b");
  farm_.SetUrgent("measure");
  Add("m", "measure");
  const Connected worker = Connect("w", 6);
  std::vector<std::string> order;
  for (const Lease& lease : worker.link->leases()) {
    order.push_back(lease.item.candidate_id);
  }
  EXPECT_THAT(order, ElementsAre("m", "a1", "b1", "a2", "b2", "a3"));
}

TEST_F(FarmTest, RemovedQueueCancelsItsLeases) {
  Add("a");
  Add("b");
  const Connected worker = Connect("w");
  farm_.RemoveQueue("job");
  EXPECT_THAT(worker.link->cancelled(), ElementsAre("lease-1"));
  EXPECT_EQ(farm_.Counts("job").outstanding(), 0);
  Report(worker, "lease-1", "a");
  EXPECT_THAT(worker.link->acks(), ElementsAre(Pair("lease-1", true)));
}

TEST_F(FarmTest, DrainingWorkerFinishesButTakesNothing) {
  Add("a");
  Add("b");
  const Connected worker = Connect("w", 2);
  Add("c");
  const HeldLease held[] = {{"lease-1", 1, Phase::kRunning}};
  farm_.OnState(worker.session, held, /*draining=*/true, 1);
  Report(worker, "lease-2", "b");
  EXPECT_THAT(worker.link->leases(), SizeIs(2));
  EXPECT_EQ(farm_.Devices()[0].state, DeviceState::kDraining);
}

TEST_F(FarmTest, WhatADrainingWorkerHasNotTakenIsGrantedAtOnce) {
  Add("a");
  Add("b");
  const Connected leaves = Connect("v", 2);
  ASSERT_THAT(leaves.link->leases(), SizeIs(2));
  const Connected stays = Connect("w", 1);
  const HeldLease held[] = {{"lease-1", 1, Phase::kBuilding}};
  farm_.OnState(leaves.session, held, /*draining=*/true, 0);
  ASSERT_THAT(stays.link->leases(), SizeIs(1));
  EXPECT_EQ(stays.link->leases()[0].item.candidate_id, "b");
  EXPECT_EQ(farm_.Counts("job").leased, 2);
}

TEST_F(FarmTest, SendsTheConfirmedBestTimeOfTheTask) {
  farm_.NoteTime("task", "v@1", 1e-3);
  farm_.NoteTime("task", "w@1", 2e-3);
  Add("a");
  const Connected worker = Connect("w");
  EXPECT_EQ(worker.link->leases()[0].best_seconds, 2e-3);
}

TEST_F(FarmTest, AResultUnderALeaseThatWasNeverGrantedChangesNothing) {
  Add("held", "job", Where::kHeldFromFormerProcess);
  const Connected liar = Connect("liar", 0);
  Report(liar, "00000000000000000000000000000000", "held");
  // A true lease, but of another device, candidate or attempt.
  Report(liar, FormerLease("honest", "held"), "held");
  Report(liar, FormerLease("liar", "other"), "held");
  farm_.OnResult(liar.session, {.lease_id = FormerLease("liar", "held"),
                                .attempt = 2,
                                .candidate_id = "held",
                                .measurement = Measured(1e-3)});
  EXPECT_THAT(sink_.completions, IsEmpty());
  EXPECT_EQ(farm_.Counts("job").held, 1);
  EXPECT_THAT(liar.link->acks(), SizeIs(4));
  Report(liar, FormerLease("liar", "held"), "held");
  EXPECT_THAT(sink_.completions, SizeIs(1));
}

TEST_F(FarmTest, OnlyTheDeviceThatHoldsALeaseReportsIt) {
  Add("a");
  const Connected holder = Connect("holder");
  ASSERT_THAT(holder.link->leases(), SizeIs(1));
  const Connected other = Connect("other", 0);
  Report(other, "lease-1", "a");
  EXPECT_THAT(sink_.completions, IsEmpty());
  EXPECT_EQ(farm_.Counts("job").leased, 1);
  // Neither does another device under its name.
  WorkerHello changed = TestHello("holder");
  changed.device.cores = 2;
  const Connected back = Connect(changed, 0);
  Report(back, "lease-1", "a");
  EXPECT_THAT(sink_.completions, IsEmpty());
  EXPECT_EQ(farm_.Counts("job").ready, 1);
}

TEST_F(FarmTest, PhasesThatGoBackAndForthDoNotProlongALease) {
  Add("a");
  const Connected worker = Connect("w");
  const MeasureOptions limits;
  const absl::Duration most =
      limits.build_timeout + limits.run_timeout + 2 * Timeouts().phase_grace;
  for (absl::Duration t; t <= most && worker.link->cancelled().empty();
       t += absl::Seconds(10)) {
    Hold(worker, "lease-1", Phase::kBuilding);
    Pass(absl::Seconds(5));
    Hold(worker, "lease-1", Phase::kRunning);
    Pass(absl::Seconds(5));
  }
  EXPECT_THAT(worker.link->cancelled(), ElementsAre("lease-1"));
}

TEST_F(FarmTest, ATimeThatNoSuchDeviceCanHaveIsNoSuccess) {
  WorkItem item = Item("a");
  item.least_seconds = 1e-6;
  ASSERT_TRUE(farm_.Add(item).ok());
  const Connected worker = Connect("w");
  farm_.OnResult(worker.session, {.lease_id = "lease-1",
                                  .candidate_id = "a",
                                  .measurement = Measured(1e-9)});
  ASSERT_THAT(sink_.completions, SizeIs(1));
  const Measurement& measured = sink_.completions[0].measurement;
  EXPECT_EQ(measured.status, database::Status::kRunError);
  EXPECT_FALSE(measured.verified);
  EXPECT_THAT(measured.error, HasSubstr("1e-09 s, where"));
}

TEST_F(FarmTest, ASuccessOfAnotherCompilersCodeIsNone) {
  Add("a");
  const Connected worker = Connect("w");
  Measurement measured = Measured(1e-3);
  measured.fingerprint = "another";
  farm_.OnResult(
      worker.session,
      {.lease_id = "lease-1", .candidate_id = "a", .measurement = measured});
  ASSERT_THAT(sink_.completions, SizeIs(1));
  EXPECT_EQ(sink_.completions[0].measurement.status,
            database::Status::kRunError);
}

TEST_F(FarmTest, AWorkerThatDoesNotReadGetsNothingMore) {
  for (const char* id : {"a", "b", "c"}) Add(id);
  const Connected worker = Connect("w", 1);
  ASSERT_THAT(worker.link->leases(), SizeIs(1));
  worker.link->SetClogged(true);
  farm_.OnState(worker.session, {}, false, 3);
  EXPECT_THAT(worker.link->leases(), SizeIs(2));  // then it was seen
  Pass(Timeouts().tick);
  EXPECT_THAT(worker.link->leases(), SizeIs(2));
  worker.link->SetClogged(false);
  Pass(Timeouts().tick);
  EXPECT_THAT(worker.link->leases(), SizeIs(3));
}

TEST(DeviceNamesTest, OfOneCredentialAndInAllAreBounded) {
  testing::FakeClock clock;
  Farm farm({.clock = &clock,
             .fingerprint = kFingerprint,
             .most_devices_of_owner = 2,
             .most_devices = 4});
  const auto connect = [&](const std::string& name, const std::string& owner) {
    WorkerHello hello = TestHello(name);
    hello.owner = owner;
    return farm.Connect(hello, std::make_shared<FakeLink>()).status().code();
  };
  EXPECT_EQ(connect("rack", "rack"), absl::StatusCode::kOk);
  EXPECT_EQ(connect("rack.1", "rack"), absl::StatusCode::kOk);
  EXPECT_EQ(connect("rack.2", "rack"), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(connect("rack.1", "rack"), absl::StatusCode::kOk);  // known
  EXPECT_EQ(connect("racket", "racket"), absl::StatusCode::kOk);
  EXPECT_EQ(connect("desk", ""), absl::StatusCode::kOk);
  EXPECT_EQ(connect("sofa", ""), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(farm.Devices().size() == 4);
}

TEST(ConfirmedBestTest, OneTimeAloneIsHeldAgainstNobody) {
  ConfirmedBest best;
  EXPECT_EQ(best.For("v"), 0);
  best.Note("v", 1e-9);
  EXPECT_EQ(best.For("v"), 0);
  EXPECT_EQ(best.For("w"), 0);
}

TEST(ConfirmedBestTest, ASecondCandidateConfirmsADevicesOwnTime) {
  ConfirmedBest best;
  best.Note("v", 1e-3);
  best.Note("v", 3e-3);
  EXPECT_EQ(best.For("v"), 3e-3);
  best.Note("v", 2e-3);
  EXPECT_EQ(best.For("v"), 2e-3);
  EXPECT_EQ(best.For("w"), 0);
}

TEST(ConfirmedBestTest, ALiarIsHeldAgainstItselfAlone) {
  ConfirmedBest best;
  for (int i = 0; i < 10; ++i) best.Note("liar", 1e-9);
  best.Note("a", 2e-3);
  EXPECT_EQ(best.For("a"), 2e-3);
  best.Note("b", 1e-3);
  EXPECT_EQ(best.For("a"), 1e-3);
  EXPECT_EQ(best.For("new"), 1e-3);
  EXPECT_EQ(best.For("liar"), 1e-9);
  best.Note("liar", 1e-10);
  EXPECT_EQ(best.For("b"), 1e-3);
}

TEST(LeaseIdTest, ProvesItsTermsAndNoOthers) {
  const LeaseTerms terms{.candidate_id = "c", .attempt = 2, .device_id = "d@1"};
  const std::string id = MakeLeaseId("key", terms);
  EXPECT_THAT(id, SizeIs(32));
  EXPECT_NE(id, MakeLeaseId("key", terms));
  EXPECT_TRUE(ProvesLease("key", id, terms));
  EXPECT_FALSE(ProvesLease("other", id, terms));
  EXPECT_FALSE(ProvesLease("", MakeLeaseId("", terms), terms));
  EXPECT_FALSE(ProvesLease("key", id.substr(1), terms));
  EXPECT_FALSE(ProvesLease("key", "", terms));
  EXPECT_FALSE(ProvesLease(
      "key", id, {.candidate_id = "e", .attempt = 2, .device_id = "d@1"}));
  EXPECT_FALSE(ProvesLease(
      "key", id, {.candidate_id = "c", .attempt = 1, .device_id = "d@1"}));
  EXPECT_FALSE(ProvesLease(
      "key", id, {.candidate_id = "c", .attempt = 2, .device_id = "d@2"}));
}

TEST_F(FarmTest, LeaseIdsAre128RandomBits) {
  Farm farm({.clock = &clock_, .fingerprint = kFingerprint});
  auto link = std::make_shared<FakeLink>();
  const int64_t session = *farm.Connect(TestHello("w"), link);
  farm.OnState(session, {}, false, 2);
  ASSERT_TRUE(farm.Add(Item("a")).ok());
  ASSERT_TRUE(farm.Add(Item("b")).ok());
  EXPECT_EQ(farm.Add(Item("a")).code(), absl::StatusCode::kAlreadyExists);
  ASSERT_THAT(link->leases(), SizeIs(2));
  EXPECT_THAT(link->leases()[0].lease_id, SizeIs(32));
  EXPECT_NE(link->leases()[0].lease_id, link->leases()[1].lease_id);
}

TEST_F(FarmTest, CallsOfLibrariesGoToDevicesThatHaveThem) {
  WorkItem item = Item("a");
  item.trace = "sch.call_library(b0, kernel=\"openblas.sgemm\")\n";
  WorkerHello with = TestHello("with");
  with.device.libraries["openblas"] = "0.3.21";
  // Present, but with no slot free.
  const Connected has = Connect(with, 0);
  const Connected has_not = Connect("without");
  ASSERT_TRUE(farm_.Add(item).ok());
  EXPECT_THAT(has_not.link->leases(), IsEmpty());
  farm_.OnState(has.session, {}, false, 1);
  EXPECT_THAT(has.link->leases(), SizeIs(1));
  EXPECT_THAT(*farm_.LibrariesFor(TestTarget()), ElementsAre("openblas"));
}

TEST_F(FarmTest, WhereNobodyHasTheLibraryTheCandidateMayFail) {
  WorkItem item = Item("a");
  item.trace = "sch.call_library(b0, kernel=\"openblas.sgemm\")\n";
  ASSERT_TRUE(farm_.Add(item).ok());
  EXPECT_FALSE(farm_.LibrariesFor(TestTarget()).has_value());
  const Connected worker = Connect("w");
  EXPECT_THAT(worker.link->leases(), SizeIs(1));
  EXPECT_THAT(*farm_.LibrariesFor(TestTarget()), IsEmpty());
}

}  // namespace
}  // namespace tilefarm::farm
