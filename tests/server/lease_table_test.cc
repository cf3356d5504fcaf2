// The lease table by itself, under a fake clock: devices are names.
#include "server/farm/lease_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "server/farm/lease_id.h"
#include "tests/server/fake_worker.h"
#include "tests/support/fake_clock.h"

namespace tilefarm::farm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Measured;
using ::testing::UnorderedElementsAre;
using State = LeaseTable::State;
using Verdict = LeaseTable::Verdict;

constexpr char kLeaseKey[] = "key";

class LeaseTableTest : public ::testing::Test {
 protected:
  LeaseTableTest()
      : table_({.lease_key = kLeaseKey,
                .new_lease_id =
                    [this] { return "lease-" + std::to_string(++made_); },
                .clock = &clock_}) {}

  static LeaseTable::Holder Device(const std::string& name, int capacity = 1) {
    return {.name = name, .device_id = name + "@1", .capacity = capacity};
  }
  void Add(const std::string& id, State state = State::kReady) {
    WorkItem work;
    work.candidate_id = id;
    work.queue = "job";
    table_.Add(std::move(work), state);
  }
  // Returns the lease id.
  std::string Grant(const std::string& id, const std::string& device = "w",
                    int capacity = 1) {
    return table_
        .Grant(id, Device(device, capacity), /*charged=*/absl::Seconds(1))
        .lease_id;
  }
  bool Renew(const std::string& lease, Phase phase,
             const std::string& device = "w", int capacity = 1) {
    return table_.Renew({.lease_id = lease, .attempt = 1, .phase = phase},
                        Device(device, capacity));
  }
  static WorkerResult Result(const std::string& id, const std::string& lease,
                             uint32_t attempt = 1) {
    return {.lease_id = lease,
            .attempt = attempt,
            .candidate_id = id,
            .measurement = Measured(1e-3)};
  }
  Verdict Judge(const std::string& id, const std::string& lease,
                const std::string& device = "w", uint32_t attempt = 1) {
    return table_.Judge(Result(id, lease, attempt), Device(device));
  }
  State StateOf(const std::string& id) { return table_.Find(id)->state; }

  const Timeouts timeouts_;
  const MeasureOptions limits_;
  testing::FakeClock clock_;
  int made_ = 0;
  LeaseTable table_;
};

// --- Grants ------------------------------------------------------------------

TEST_F(LeaseTableTest, AGrantMakesALeaseOfTheDevice) {
  Add("a");
  Add("b");
  EXPECT_EQ(table_.Counts("job").ready, 2);
  const Lease lease =
      table_.Grant("a", Device("w"), /*charged=*/absl::Seconds(2));
  EXPECT_EQ(lease.lease_id, "lease-1");
  EXPECT_EQ(lease.attempt, 1u);
  EXPECT_EQ(lease.item.candidate_id, "a");
  EXPECT_EQ(StateOf("a"), State::kLeased);
  EXPECT_EQ(table_.CountOf("w"), 1);
  EXPECT_THAT(table_.LeasesOf("w"), ElementsAre("lease-1"));
  EXPECT_EQ(table_.Counts("job").ready, 1);
  EXPECT_EQ(table_.Counts("job").leased, 1);
  const LeaseTable::ActiveLease& active = *table_.FindLease("lease-1");
  EXPECT_EQ(active.device, "w");
  EXPECT_EQ(active.granted_at, clock_.Monotonic());
  EXPECT_EQ(active.charged, absl::Seconds(2));
}

TEST_F(LeaseTableTest, LeaseIdsProveWhatWasGranted) {
  LeaseTable table({.lease_key = kLeaseKey, .clock = &clock_});
  WorkItem work;
  work.candidate_id = "a";
  table.Add(work, State::kReady);
  const Lease lease = table.Grant("a", Device("w"), absl::ZeroDuration());
  EXPECT_TRUE(
      ProvesLease(kLeaseKey, lease.lease_id,
                  {.candidate_id = "a", .attempt = 1, .device_id = "w@1"}));
}

TEST_F(LeaseTableTest, ErasingACandidateEndsItsLease) {
  Add("a");
  Add("b");
  Grant("a");
  EXPECT_THAT(table_.CandidatesOf("job"), UnorderedElementsAre("a", "b"));
  table_.Erase("a");
  table_.Erase("b");
  EXPECT_EQ(table_.FindLease("lease-1"), nullptr);
  EXPECT_EQ(table_.CountOf("w"), 0);
  EXPECT_FALSE(table_.Contains("a"));
  EXPECT_EQ(table_.Counts("job").outstanding(), 0);
}

// --- Deadlines ---------------------------------------------------------------

TEST_F(LeaseTableTest, ALeaseExpiresUnlessItsHolderRenewsIt) {
  Add("a");
  Grant("a");
  clock_.Advance(timeouts_.lease_duration - absl::Seconds(1));
  EXPECT_TRUE(Renew("lease-1", Phase::kGranted));
  clock_.Advance(timeouts_.lease_duration - absl::Seconds(1));
  EXPECT_THAT(table_.Expired(), IsEmpty());
  // Another device cannot renew it.
  EXPECT_TRUE(Renew("lease-1", Phase::kRunning, "v"));
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(table_.Expired(), ElementsAre("lease-1"));
  EXPECT_FALSE(Renew("lease-2", Phase::kGranted));
}

TEST_F(LeaseTableTest, APhaseHasALimitThatRenewalDoesNotMove) {
  Add("a");
  Grant("a");
  const absl::Duration limit = limits_.build_timeout + timeouts_.phase_grace;
  for (absl::Duration t; t < limit; t += absl::Seconds(10)) {
    EXPECT_THAT(table_.Expired(), IsEmpty()) << t;
    Renew("lease-1", Phase::kBuilding);
    clock_.Advance(absl::Seconds(10));
  }
  Renew("lease-1", Phase::kBuilding);
  EXPECT_THAT(table_.Expired(), IsEmpty());
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(table_.Expired(), ElementsAre("lease-1"));
}

TEST_F(LeaseTableTest, PhasesOnlyGoForward) {
  Add("a");
  Grant("a");
  Renew("lease-1", Phase::kRunning);
  const absl::Duration ends = table_.FindLease("lease-1")->phase_ends;
  clock_.Advance(absl::Seconds(10));
  Renew("lease-1", Phase::kBuilding);
  Renew("lease-1", Phase::kRunning);
  EXPECT_EQ(table_.FindLease("lease-1")->phase, Phase::kRunning);
  EXPECT_EQ(table_.FindLease("lease-1")->phase_ends, ends);
}

TEST_F(LeaseTableTest, AWaitingPhaseLastsAsLongAsAllPlacesOfTheWorkerMayTake) {
  Add("a");
  Grant("a", "w", /*capacity=*/3);
  const absl::Duration each =
      limits_.build_timeout + limits_.run_timeout + 2 * timeouts_.phase_grace;
  EXPECT_EQ(table_.FindLease("lease-1")->phase_ends,
            clock_.Monotonic() + 3 * each);
  Renew("lease-1", Phase::kBuilt, "w", /*capacity=*/2);
  EXPECT_EQ(table_.FindLease("lease-1")->phase_ends,
            clock_.Monotonic() + 2 * each);
}

// --- Losses ------------------------------------------------------------------

TEST_F(LeaseTableTest, ALostLeaseMakesItsCandidateReady) {
  Add("a");
  Grant("a");
  const LeaseTable::Loss loss = table_.Lose("lease-1", /*counts=*/true);
  EXPECT_EQ(loss.lease.candidate_id, "a");
  EXPECT_EQ(loss.lease.device, "w");
  EXPECT_FALSE(loss.given_up);
  EXPECT_EQ(StateOf("a"), State::kReady);
  EXPECT_EQ(table_.CountOf("w"), 0);
  EXPECT_EQ(table_.Grant("a", Device("v"), {}).attempt, 2u);
}

TEST_F(LeaseTableTest, TooManyLossesWhileRunningGiveACandidateUp) {
  Add("a");
  for (int loss = 1; loss <= timeouts_.max_running_losses; ++loss) {
    const std::string lease = Grant("a");
    Renew(lease, Phase::kRunning);
    const LeaseTable::Loss lost = table_.Lose(lease, /*counts=*/true);
    EXPECT_EQ(lost.given_up, loss == timeouts_.max_running_losses);
    if (lost.given_up) {
      EXPECT_EQ(lost.error,
                "the device was lost 3 times while it ran the candidate, "
                "last w");
    }
  }
  EXPECT_EQ(StateOf("a"), State::kCommitting);
  EXPECT_EQ(table_.committing(), 1);
}

TEST_F(LeaseTableTest, LossesThatAreNobodysFaultDoNotCount) {
  Add("a");
  for (int i = 0; i < 2 * timeouts_.max_losses; ++i) {
    EXPECT_FALSE(table_.Lose(Grant("a"), /*counts=*/false).given_up);
  }
  for (int i = 1; i < timeouts_.max_losses; ++i) {
    EXPECT_FALSE(table_.Lose(Grant("a"), /*counts=*/true).given_up);
  }
  EXPECT_TRUE(table_.Lose(Grant("a"), /*counts=*/true).given_up);
}

// --- Results -----------------------------------------------------------------

TEST_F(LeaseTableTest, TheHoldersResultIsAcceptedOnce) {
  Add("a");
  Grant("a");
  EXPECT_EQ(Judge("a", "lease-1"), Verdict::kAccepted);
  const auto ended = table_.Accept(Result("a", "lease-1"), Device("w"));
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->lease_id, "lease-1");
  EXPECT_EQ(StateOf("a"), State::kCommitting);
  EXPECT_EQ(table_.Find("a")->reported_by, "w");
  EXPECT_EQ(table_.CountOf("w"), 0);
  EXPECT_EQ(Judge("a", "lease-1"), Verdict::kRepeated);
  table_.Erase("a");
  EXPECT_EQ(Judge("a", "lease-1"), Verdict::kSuperseded);
  EXPECT_EQ(table_.committing(), 0);
}

TEST_F(LeaseTableTest, OnlyTheHolderMayReportAndOnlyItsAttempt) {
  Add("a");
  Add("b");
  Grant("a");
  EXPECT_EQ(Judge("a", "lease-1", "v"), Verdict::kNotGranted);
  EXPECT_EQ(Judge("a", "lease-1", "w", /*attempt=*/2), Verdict::kNotGranted);
  EXPECT_EQ(Judge("b", "lease-1"), Verdict::kNotGranted);
  EXPECT_EQ(Judge("a", "made-up"), Verdict::kNotGranted);
  EXPECT_EQ(Judge("a", ""), Verdict::kNotGranted);
  // A result without its attempt.
  EXPECT_EQ(Judge("a", "lease-1", "w", /*attempt=*/0), Verdict::kAccepted);
}

TEST_F(LeaseTableTest, ALostLeaseMayReportUntilItIsReplaced) {
  Add("a");
  table_.Lose(Grant("a"), /*counts=*/true);
  EXPECT_EQ(Judge("a", "lease-1"), Verdict::kAccepted);
  EXPECT_EQ(Judge("a", "lease-1", "v"), Verdict::kNotGranted);
  Grant("a", "v");
  EXPECT_EQ(Judge("a", "lease-1"), Verdict::kSuperseded);
  table_.Lose("lease-2", /*counts=*/true);
  EXPECT_EQ(Judge("a", "lease-1"), Verdict::kSuperseded);
  EXPECT_EQ(Judge("a", "lease-2", "v", /*attempt=*/2), Verdict::kAccepted);
}

TEST_F(LeaseTableTest, ALeaseOfAFormerProcessIsAcceptedByItsProof) {
  Add("a", State::kHeld);
  const std::string former = MakeLeaseId(
      kLeaseKey, {.candidate_id = "a", .attempt = 1, .device_id = "w@1"});
  EXPECT_EQ(Judge("a", former), Verdict::kAccepted);
  EXPECT_EQ(Judge("a", former, "v"), Verdict::kNotGranted);
  EXPECT_EQ(Judge("a", former, "w", /*attempt=*/2), Verdict::kNotGranted);
  // It also ends a lease that this process granted meanwhile.
  table_.Release("a");
  Grant("a", "v");
  EXPECT_EQ(Judge("a", former), Verdict::kAccepted);
  const auto ended = table_.Accept(Result("a", former), Device("w"));
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->device, "v");
  EXPECT_EQ(ended->lease_id, "lease-1");
  EXPECT_EQ(table_.Find("a")->lease_id, former);
}

TEST_F(LeaseTableTest, HeldCandidatesAreListedOnceTheyHaveWaited) {
  Add("a", State::kHeld);
  clock_.Advance(absl::Seconds(1));
  Add("b", State::kHeld);
  EXPECT_EQ(table_.Counts("job").held, 2);
  clock_.Advance(absl::Seconds(9));
  EXPECT_THAT(table_.HeldFor(absl::Seconds(10)), ElementsAre("a"));
  table_.Release("a");
  EXPECT_EQ(StateOf("a"), State::kReady);
  EXPECT_THAT(table_.HeldFor(absl::ZeroDuration()), ElementsAre("b"));
}

// --- Doubts ------------------------------------------------------------------

class DoubtTest : public LeaseTableTest {
 protected:
  DoubtTest() {
    Add("a");
    Grant("a");
    table_.Accept(Result("a", "lease-1"), Device("w"));
    table_.Doubt("a", Measured(2e-3));
  }
};

TEST_F(DoubtTest, ADoubtedResultWaitsForItsDevice) {
  EXPECT_EQ(StateOf("a"), State::kDoubted);
  EXPECT_THAT(table_.DoubtedOf("w"), ElementsAre("a"));
  EXPECT_EQ(table_.Counts("job").committing, 1);
  EXPECT_EQ(table_.committing(), 0);
  EXPECT_EQ(Judge("a", "lease-1"), Verdict::kRepeated);
  table_.Erase("a");
  EXPECT_THAT(table_.DoubtedOf("w"), IsEmpty());
}

TEST_F(DoubtTest, AConfirmedResultCommits) {
  EXPECT_EQ(table_.Confirm("a").median_seconds, 2e-3);
  EXPECT_EQ(StateOf("a"), State::kCommitting);
  EXPECT_THAT(table_.DoubtedOf("w"), IsEmpty());
  EXPECT_EQ(table_.committing(), 1);
}

TEST_F(DoubtTest, ARetractedResultMakesItsCandidateReady) {
  table_.Retract("a", /*counts=*/true);
  EXPECT_EQ(StateOf("a"), State::kReady);
  EXPECT_EQ(table_.Find("a")->doubts, 1);
  EXPECT_EQ(table_.Find("a")->losses, 0);
  EXPECT_THAT(table_.DoubtedOf("w"), IsEmpty());
  // The same device may report it once more.
  EXPECT_EQ(Judge("a", "lease-1"), Verdict::kAccepted);
  EXPECT_EQ(Judge("a", "lease-1", "v"), Verdict::kNotGranted);
}

TEST_F(LeaseTableTest, FiguresCountLeasesByPhaseAndCandidatesByState) {
  for (const char* id : {"a", "b", "c", "d", "e"}) Add(id);
  Add("f", State::kHeld);
  Grant("a");
  Renew(Grant("b"), Phase::kBuilding);
  Renew(Grant("c"), Phase::kBuilt);
  Renew(Grant("d"), Phase::kRunning);
  const LeaseFigures figures = table_.Figures();
  EXPECT_EQ(figures.leases_granted, 1);
  EXPECT_EQ(figures.leases_building, 1);
  EXPECT_EQ(figures.leases_built, 1);
  EXPECT_EQ(figures.leases_running, 1);
  EXPECT_EQ(figures.candidates_leased, 4);
  EXPECT_EQ(figures.candidates_ready, 1);
  EXPECT_EQ(figures.candidates_held, 1);
  EXPECT_EQ(figures.candidates_doubted, 0);
  EXPECT_EQ(figures.candidates_committing, 0);
}

}  // namespace
}  // namespace tilefarm::farm
