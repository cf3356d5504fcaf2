#include "server/farm/farm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
using testing::TestTarget;

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
  // A result frees a slot at once; no State has to come first.
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

TEST_F(FarmTest, HelloUnderAConnectedNameReplacesTheOldStream) {
  const Connected old = Connect("w");
  const Connected back = Connect("w");
  ASSERT_TRUE(old.link->closed().has_value());
  EXPECT_EQ(old.link->closed()->code(), absl::StatusCode::kAborted);
  EXPECT_FALSE(back.link->closed().has_value());
  // Later messages of the old stream have no effect.
  farm_.Disconnect(old.session);
  EXPECT_EQ(farm_.Devices()[0].state, DeviceState::kIdle);
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

TEST_F(FarmTest, SendsTheConfirmedBestTimeOfTheRace) {
  farm_.NoteTime("race", "v@1", 1e-3);
  farm_.NoteTime("race", "w@1", 2e-3);
  // Of candidates that the job may not use.
  farm_.NoteTime("another race", "v@1", 1e-6);
  farm_.NoteTime("another race", "w@1", 1e-6);
  Add("a");
  const Connected worker = Connect("w");
  EXPECT_EQ(worker.link->leases()[0].best_seconds, 2e-3);
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
