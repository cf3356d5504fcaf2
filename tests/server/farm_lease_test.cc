// Leases in the farm: renewed, lost, replaced, and granted by a former process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/farm/lease_id.h"
#include "tests/server/farm_fixture.h"

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

using FarmLeaseTest = FarmTest;

// The id of a lease for the candidate that a former process granted to the
// worker of this name.
std::string FormerLease(const std::string& name, const std::string& candidate) {
  const std::string device = DeviceId(name, TestHello(name).device);
  return MakeLeaseId(
      kLeaseKey,
      {.candidate_id = candidate, .attempt = 1, .device_id = device});
}

TEST_F(FarmLeaseTest, RenewedLeaseOutlivesItsDuration) {
  Add("a");
  const Connected worker = Connect("w");
  for (int i = 0; i < 5; ++i) {
    Pass(absl::Seconds(20));
    Hold(worker, "lease-1", Phase::kGranted);
  }
  EXPECT_THAT(worker.link->leases(), SizeIs(1));
  EXPECT_EQ(farm_.Counts("job").leased, 1);
}

TEST_F(FarmLeaseTest, LeaseThatIsNotRenewedIsGrantedAgain) {
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

TEST_F(FarmLeaseTest, PhaseBeyondTheCandidatesLimitsIsLostThoughRenewed) {
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

TEST_F(FarmLeaseTest, BuiltCandidateOutlastsItsBuildLimitBehindASlowOne) {
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
  // Two kernels before the last one, each with the maximum run time: longer
  // than a build may take.
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

TEST_F(FarmLeaseTest, NothingWaitsForEverInAWorker) {
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

TEST_F(FarmLeaseTest, ThirdLossWhileRunningRecordsDeviceLost) {
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

TEST_F(FarmLeaseTest, LossesWhileBuildingDoNotCount) {
  Add("a");
  const Connected worker = Connect("w");
  for (int loss = 1; loss <= 5; ++loss) {
    ASSERT_THAT(worker.link->leases(), SizeIs(loss));
    Hold(worker, worker.link->leases().back().lease_id, Phase::kBuilding);
    Pass(absl::Seconds(30));
  }
  EXPECT_THAT(sink_.completions, IsEmpty());
}

TEST_F(FarmLeaseTest, LossesInAnyPhaseHaveACap) {
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

TEST_F(FarmLeaseTest, ReconnectWithTheSameBootIdKeepsLeases) {
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

TEST_F(FarmLeaseTest, WaitingResultsComeBeforeTheirCandidatesAreGrantedAgain) {
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

TEST_F(FarmLeaseTest, RestartLosesLeasesAtOnce) {
  Add("a");
  const Connected old = Connect("w");
  const Connected back = Connect(TestHello("w", "boot-2"));
  ASSERT_THAT(back.link->leases(), SizeIs(1));
  EXPECT_EQ(back.link->leases()[0].item.candidate_id, "a");
  EXPECT_EQ(back.link->leases()[0].attempt, 2u);
}

TEST_F(FarmLeaseTest, ResultOfAReplacedLeaseIsSuperseded) {
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

TEST_F(FarmLeaseTest, ResultOfALostLeaseCountsUntilItIsReplaced) {
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

TEST_F(FarmLeaseTest, RepeatedResultIsAcknowledgedOnTheNewStream) {
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

TEST_F(FarmLeaseTest, UnknownCandidateIsSuperseded) {
  const Connected worker = Connect("w");
  Report(worker, "lease-of-old", "nobody-knows");
  EXPECT_THAT(worker.link->acks(), ElementsAre(Pair("lease-of-old", true)));
}

TEST_F(FarmLeaseTest, FormerProcessesResultIsAccepted) {
  Add("a", "job", Where::kHeldFromFormerProcess);
  const Connected worker = Connect("w");
  EXPECT_THAT(worker.link->leases(), IsEmpty());
  const std::string lease = FormerLease("w", "a");
  Report(worker, lease, "a");
  ASSERT_THAT(sink_.completions, SizeIs(1));
  farm_.Committed("a", false);
  EXPECT_THAT(worker.link->acks(), ElementsAre(Pair(lease, false)));
}

TEST_F(FarmLeaseTest, FormerProcessesCandidateIsGrantedAfterTheHold) {
  Add("a", "job", Where::kHeldFromFormerProcess);
  const Connected worker = Connect("w");
  Pass(Timeouts().former_hold - absl::Seconds(1));
  EXPECT_THAT(worker.link->leases(), IsEmpty());
  Pass(absl::Seconds(1));
  EXPECT_THAT(worker.link->leases(), SizeIs(1));
  // The former holder reports after all, before the new one does.
  const Connected former = Connect("former", 0);
  Report(former, FormerLease("former", "a"), "a");
  EXPECT_THAT(sink_.completions, SizeIs(1));
  EXPECT_THAT(worker.link->cancelled(), ElementsAre("lease-1"));
}

TEST_F(FarmLeaseTest, HoldLastsWhileAWorkerHasFormerLeases) {
  Add("a", "job", Where::kHeldFromFormerProcess);
  const Connected worker = Connect("w");
  Hold(worker, "former-lease", Phase::kRunning, 1);
  Pass(Timeouts().former_hold * 2);
  EXPECT_THAT(worker.link->leases(), IsEmpty());
  farm_.OnState(worker.session, {}, false, 1);
  Pass(absl::Seconds(1));
  EXPECT_THAT(worker.link->leases(), SizeIs(1));
}

TEST_F(FarmLeaseTest, HoldDoesNotLastForWhatWaitsForItsAcknowledgement) {
  Add("a", "job", Where::kHeldFromFormerProcess);
  const Connected worker = Connect("w");
  const HeldLease held[] = {
      {"former-lease", 1, Phase::kRunning, /*reported=*/true}};
  farm_.OnState(worker.session, held, false, 1);
  Pass(Timeouts().former_hold);
  EXPECT_THAT(worker.link->leases(), SizeIs(1));
}

TEST_F(FarmLeaseTest, AResultUnderALeaseThatWasNeverGrantedChangesNothing) {
  Add("held", "job", Where::kHeldFromFormerProcess);
  const Connected liar = Connect("liar", 0);
  Report(liar, "00000000000000000000000000000000", "held");
  // A valid lease, but of another device, candidate or attempt.
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

TEST_F(FarmLeaseTest, OnlyTheDeviceThatHoldsALeaseReportsIt) {
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

TEST_F(FarmLeaseTest, PhasesThatGoBackAndForthDoNotProlongALease) {
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

TEST_F(FarmLeaseTest, LeaseIdsAre128RandomBits) {
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

}  // namespace
}  // namespace tilefarm::farm
