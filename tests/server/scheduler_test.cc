// The scheduler by itself: devices are names with an availability, and a grant
// fills one slot.
#include "server/farm/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/server/fake_worker.h"
#include "tests/support/fake_clock.h"

namespace tilefarm::farm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TestHello;
using testing::TestTarget;

class SchedulerTest : public ::testing::Test {
 protected:
  SchedulerTest() : scheduler_(/*priority_aging=*/absl::Seconds(10), clock_) {}

  void Connect(const std::string& name, int slots,
               const std::string& reserved_for = "") {
    DeviceProperties properties = TestHello(name).device;
    scheduler_.SetDevice(name, {.target = TestTarget(),
                                .properties = properties,
                                .reserved_for = reserved_for});
    slots_[name] = slots;
    Tell(name);
  }
  void Tell(const std::string& name) {
    const int slots = slots_[name];
    scheduler_.SetAvailability(
        name, {.works = true, .free = slots > 0, .slots = slots});
  }
  WorkItem Work(const std::string& id, const std::string& queue = "job") {
    WorkItem work;
    work.candidate_id = id;
    work.queue = queue;
    work.target = TestTarget();
    return work;
  }
  void Push(const std::string& id, const std::string& queue = "job") {
    scheduler_.Push(Work(id, queue), /*front=*/false);
  }
  // The grants now, as "device:candidate".
  std::vector<std::string> GrantAll() {
    std::vector<std::string> grants;
    Scheduler::Rounds rounds;
    while (const auto grant = scheduler_.Next(rounds)) {
      grants.push_back(grant->device + ":" + grant->candidate_id);
      charged_ = grant->charged;
      --slots_[grant->device];
      Tell(grant->device);
    }
    return grants;
  }

  testing::FakeClock clock_;
  std::map<std::string, int> slots_;
  absl::Duration charged_;  // for the last grant
  Scheduler scheduler_;
};

TEST_F(SchedulerTest, GrantsNothingWithoutCandidatesOrFreeDevices) {
  EXPECT_THAT(GrantAll(), IsEmpty());
  Push("a");
  EXPECT_THAT(GrantAll(), IsEmpty());
  Connect("w", 0);
  EXPECT_THAT(GrantAll(), IsEmpty());
  slots_["w"] = 1;
  Tell("w");
  EXPECT_THAT(GrantAll(), ElementsAre("w:a"));
  EXPECT_THAT(GrantAll(), IsEmpty());
}

TEST_F(SchedulerTest, FreeDevicesShareCandidatesInRounds) {
  for (const char* id : {"a", "b", "c", "d"}) Push(id);
  Connect("v", 3);
  Connect("w", 1);
  EXPECT_THAT(GrantAll(), ElementsAre("v:a", "w:b", "v:c", "v:d"));
}

TEST_F(SchedulerTest, CandidatesPushedToTheFrontComeFirst) {
  Push("a");
  Push("b");
  scheduler_.Push(Work("c"), /*front=*/true);
  Connect("w", 3);
  EXPECT_THAT(GrantAll(), ElementsAre("w:c", "w:a", "w:b"));
}

TEST_F(SchedulerTest, AGrantedCandidateComesBackByPushAlone) {
  Push("a");
  Connect("w", 1);
  EXPECT_THAT(GrantAll(), ElementsAre("w:a"));
  slots_["w"] = 2;
  Tell("w");
  EXPECT_THAT(GrantAll(), IsEmpty());
  scheduler_.Push(Work("a"), /*front=*/true);
  EXPECT_THAT(GrantAll(), ElementsAre("w:a"));
}

TEST_F(SchedulerTest, RemovedCandidatesAndQueuesAreNotGranted) {
  Push("a");
  Push("b");
  Push("c", "other");
  scheduler_.Remove(Work("a"));
  scheduler_.Remove(Work("a"));  // no longer waits
  scheduler_.Remove(Work("x", "unknown"));
  scheduler_.RemoveQueue("other");
  scheduler_.Remove(Work("c", "other"));
  Connect("w", 3);
  EXPECT_THAT(GrantAll(), ElementsAre("w:b"));
}

TEST_F(SchedulerTest, AForgottenDeviceGetsNothing) {
  Push("a");
  Connect("w", 1);
  scheduler_.ForgetDevice("w");
  EXPECT_THAT(GrantAll(), IsEmpty());
  EXPECT_EQ(scheduler_.SlotsFor(TestTarget(), {}), 0);
}

TEST_F(SchedulerTest, UsersTakeTurnsWhateverTheyHaveQueued) {
  scheduler_.OpenQueue("ann", {.user = "ann", .priority = 10});
  scheduler_.OpenQueue("bob", {.user = "bob", .priority = -10});
  for (const char* id : {"a1", "a2", "a3"}) Push(id, "ann");
  for (const char* id : {"b1", "b2"}) Push(id, "bob");
  Connect("w", 5);
  EXPECT_THAT(GrantAll(), ElementsAre("w:a1", "w:b1", "w:a2", "w:b2", "w:a3"));
}

TEST_F(SchedulerTest, AUserPaysForTheDeviceTimeThatALeaseTook) {
  scheduler_.OpenQueue("ann", {.user = "ann"});
  scheduler_.OpenQueue("bob", {.user = "bob"});
  for (const char* id : {"a1", "a2"}) Push(id, "ann");
  for (const char* id : {"b1", "b2", "b3"}) Push(id, "bob");
  Connect("w", 1);
  EXPECT_THAT(GrantAll(), ElementsAre("w:a1"));
  // Much longer than the time that ann was charged in advance.
  scheduler_.Settle("ann", charged_, charged_ + absl::Seconds(10));
  scheduler_.Settle("unknown", charged_, absl::Hours(1));
  slots_["w"] = 3;
  Tell("w");
  EXPECT_THAT(GrantAll(), ElementsAre("w:b1", "w:b2", "w:b3"));
}

TEST_F(SchedulerTest, PrioritiesOrderTheQueuesOfOneUserAndAgeWhileTheyWait) {
  scheduler_.OpenQueue("low", {.user = "ann", .priority = 0});
  scheduler_.OpenQueue("high", {.user = "ann", .priority = 2});
  for (const char* id : {"l1", "l2"}) Push(id, "low");
  for (const char* id : {"h1", "h2", "h3"}) Push(id, "high");
  Connect("w", 1);
  EXPECT_THAT(GrantAll(), ElementsAre("w:h1"));
  clock_.Advance(absl::Seconds(30));
  slots_["w"] = 1;
  Tell("w");
  // Both have aged equally, so they take turns.
  EXPECT_THAT(GrantAll(), ElementsAre("w:h2"));
  slots_["w"] = 1;
  Tell("w");
  EXPECT_THAT(GrantAll(), ElementsAre("w:l1"));
}

TEST_F(SchedulerTest, AnUrgentQueueIsServedBeforeTheOthersOfItsUser) {
  Push("a", "job");
  Push("b", "job");
  scheduler_.SetUrgent("measure");
  Push("m", "measure");
  Connect("w", 3);
  EXPECT_THAT(GrantAll(), ElementsAre("w:m", "w:a", "w:b"));
}

TEST_F(SchedulerTest, AReservedDeviceServesItsUserAlone) {
  scheduler_.OpenQueue("ann", {.user = "ann"});
  scheduler_.OpenQueue("bob", {.user = "bob"});
  Push("a", "ann");
  Push("b", "bob");
  Connect("w", 2, /*reserved_for=*/"bob");
  EXPECT_THAT(GrantAll(), ElementsAre("w:b"));
  EXPECT_EQ(scheduler_.SlotsFor(TestTarget(), {.user = "ann"}), 0);
  EXPECT_EQ(scheduler_.SlotsFor(TestTarget(), {.user = "bob"}), 1);
}

TEST_F(SchedulerTest, RequirementsTargetsAndNamesDecideWhatFits) {
  const std::string demands[] = {"device=w"};
  scheduler_.OpenQueue(
      "only-w", {.requirements = *ParseRequirements(demands, TestTarget())});
  Push("a", "only-w");
  WorkItem elsewhere = Work("b");
  elsewhere.target = *target::Parse("aarch64:cortex-a72,cores=4");
  scheduler_.Push(elsewhere, /*front=*/false);
  WorkItem for_v = Work("c");
  for_v.device = "v";
  scheduler_.Push(for_v, /*front=*/false);
  Connect("u", 1);
  Connect("v", 2);
  Connect("w", 2);
  EXPECT_THAT(GrantAll(), ElementsAre("v:c", "w:a"));
  EXPECT_TRUE(scheduler_.Fits("u", TestTarget(), TestTarget().Key()));
  EXPECT_FALSE(scheduler_.Fits("u", elsewhere.target, elsewhere.target.Key()));
}

}  // namespace
}  // namespace tilefarm::farm
