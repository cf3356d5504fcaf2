// Results are durable before they are acknowledged, whatever the store does.
#include "server/jobs/result_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/fake_worker.h"
#include "tests/server/flaky_store.h"
#include "tests/support/until.h"

namespace tilefarm::jobs {
namespace {

using ::testing::ElementsAre;
using testing::FakeLink;
using testing::FlakyStore;
using ::testing::HasSubstr;
using testing::kFingerprint;
using testing::Measured;
using ::testing::Pair;
using ::testing::SizeIs;
using testing::TestHello;
using testing::TestTarget;

class NoListener : public RecordListener {
 public:
  void OnRecorded(const farm::Completion&, const database::Record&,
                  bool) override {}
};

class ResultWriterTest : public ::testing::Test {
 protected:
  ResultWriterTest()
      : store_(*database::Store::Open(":memory:",
                                      database::Store::Mode::kReadWrite)),
        farm_({.fingerprint = kFingerprint}),
        link_(std::make_shared<FakeLink>()) {
    timeouts_.commit_retry = absl::Milliseconds(20);
    writer_ = std::make_unique<ResultWriter>(store_, farm_, listener_,
                                             timeouts_, Clock::Real());
    farm_.SetSink(writer_.get());
    session_ = *farm_.Connect(TestHello("w"), link_);
    farm_.OnState(session_, {}, false, 100);
  }
  void Measure(const std::string& candidate) {
    farm::WorkItem item;
    item.candidate_id = candidate;
    item.queue = item.job = "job";
    item.workload_hash = std::string(64, 'a');
    item.program = "program";
    item.target = TestTarget();
    ASSERT_TRUE(farm_.Add(item).ok());
    const farm::Lease lease = link_->leases().back();
    farm_.OnResult(session_, {.lease_id = lease.lease_id,
                              .attempt = lease.attempt,
                              .candidate_id = candidate,
                              .measurement = Measured(1e-3)});
  }
  void WaitForAcks(size_t count) {
    ASSERT_TRUE(Until([&] { return link_->acks().size() >= count; }));
    ASSERT_THAT(link_->acks(), SizeIs(count));
  }

  farm::Timeouts timeouts_;
  FlakyStore store_;
  farm::Farm farm_;
  NoListener listener_;
  std::shared_ptr<FakeLink> link_;
  int64_t session_ = 0;
  std::unique_ptr<ResultWriter> writer_;
};

TEST_F(ResultWriterTest, AcknowledgesOnlyWhatIsStored) {
  store_.failures = 3;
  Measure("a");
  ASSERT_TRUE(Until([&] { return store_.writes >= 2; }));
  EXPECT_THAT(link_->acks(), SizeIs(0));
  WaitForAcks(1);
  EXPECT_EQ(store_.writes, 4);
  EXPECT_TRUE(*store_.HasCandidate("a"));
}

TEST_F(ResultWriterTest, SaysWhyNothingIsStored) {
  EXPECT_EQ(writer_->problem(), "");
  store_.failures = 1'000'000;
  Measure("a");
  ASSERT_TRUE(Until([&] { return !writer_->problem().empty(); }));
  EXPECT_THAT(writer_->problem(), HasSubstr("results cannot be stored"));
  EXPECT_THAT(link_->acks(), SizeIs(0));
  store_.failures = 0;
  WaitForAcks(1);
  EXPECT_EQ(writer_->problem(), "");
}

TEST_F(ResultWriterTest, OneRefusedRecordDoesNotHoldUpTheOthers) {
  store_.refused = "bad";
  for (const char* id : {"a", "bad", "b"}) Measure(id);
  WaitForAcks(3);
  EXPECT_TRUE(*store_.HasCandidate("a"));
  EXPECT_TRUE(*store_.HasCandidate("b"));
  EXPECT_FALSE(*store_.HasCandidate("bad"));
}

// Whatever error the store returns.
TEST_F(ResultWriterTest, ARecordThatIsNeverStoredDoesNotHoldUpTheOthers) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kInternal, absl::StatusCode::kUnavailable,
        absl::StatusCode::kResourceExhausted}) {
    const std::string name = absl::StatusCodeToString(code);
    store_.refused = name + "-bad";
    store_.refusal = absl::Status(code, "it will not have it");
    const size_t acknowledged = link_->acks().size();
    store_.Hold();
    const int begun = store_.writes;
    for (const char* id : {"-a", "-bad", "-b"}) Measure(name + id);
    EXPECT_TRUE(Until([&] { return store_.writes > begun; }));
    store_.Release();
    // The others are stored while this one is retried.
    EXPECT_TRUE(Until([&] { return *store_.HasCandidate(name + "-b"); }));
    Measure(name + "-c");
    WaitForAcks(acknowledged + 4);
    for (const char* id : {"-a", "-b", "-c"}) {
      EXPECT_TRUE(*store_.HasCandidate(name + id)) << name << id;
    }
    EXPECT_FALSE(*store_.HasCandidate(store_.refused));
  }
}

TEST_F(ResultWriterTest, SecondRecordOfACandidateIsSuperseded) {
  Measure("a");
  WaitForAcks(1);
  Measure("a");
  WaitForAcks(2);
  EXPECT_THAT(link_->acks(),
              ElementsAre(Pair(::testing::_, false), Pair(::testing::_, true)));
  EXPECT_EQ(store_.GetStats()->records, 1);
}

TEST_F(ResultWriterTest, CommitsInGroupsOfAtMost256) {
  store_.Hold();  // the others queue up while the first is being written
  Measure("first");
  ASSERT_TRUE(Until([&] { return store_.writes == 1; }));
  for (int i = 0; i < 600; ++i) Measure(std::to_string(i));
  store_.Release();
  WaitForAcks(601);
  EXPECT_THAT(store_.groups, ElementsAre(1, 256, 256, 88));
}

TEST_F(ResultWriterTest, WhatHasArrivedIsStoredBeforeTheEnd) {
  for (const char* id : {"a", "b", "c"}) Measure(id);
  farm_.SetSink(nullptr);
  writer_.reset();
  EXPECT_EQ(store_.GetStats()->records, 3);
}

}  // namespace
}  // namespace tilefarm::jobs
