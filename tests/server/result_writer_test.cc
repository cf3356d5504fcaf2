// Results are durable before they are acknowledged, whatever the store does.
#include "server/jobs/result_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/fake_worker.h"
#include "tests/support/until.h"

namespace tilefarm::jobs {
namespace {

using ::testing::ElementsAre;
using testing::FakeLink;
using ::testing::HasSubstr;
using testing::kFingerprint;
using testing::Measured;
using ::testing::Pair;
using ::testing::SizeIs;
using testing::TestHello;
using testing::TestTarget;

// A store that refuses to write for a while, or some records for ever, or
// takes its time.
class FlakyStore : public database::Store {
 public:
  explicit FlakyStore(std::unique_ptr<database::Store> store)
      : store_(std::move(store)) {}

  std::string uuid() const override { return store_->uuid(); }
  int schema_version() const override { return store_->schema_version(); }
  absl::StatusOr<std::vector<bool>> AddRecords(
      std::span<const database::Record> records) override {
    groups.push_back(records.size());
    ++writes;
    {
      MutexLock lock(mutex_);
      while (held_) released_.Wait(mutex_);
    }
    if (failures > 0) {
      --failures;
      return absl::UnavailableError("the disk is full");
    }
    for (const database::Record& record : records) {
      if (record.candidate_id == refused) {
        return absl::InvalidArgumentError("a record it will not have");
      }
    }
    return store_->AddRecords(records);
  }
  absl::Status AddMeasurement(int64_t id,
                              const database::Record& record) override {
    return store_->AddMeasurement(id, record);
  }
  absl::StatusOr<std::vector<database::Record>> FindMeasurements(
      int64_t id) const override {
    return store_->FindMeasurements(id);
  }
  absl::Status ForEachRecord(const std::function<bool(const database::Record&)>&
                                 visit) const override {
    return store_->ForEachRecord(visit);
  }
  absl::StatusOr<std::vector<database::Record>> FindRecords(
      const std::string& workload, const std::string& target) const override {
    return store_->FindRecords(workload, target);
  }
  absl::StatusOr<bool> HasCandidate(const std::string& id) const override {
    return store_->HasCandidate(id);
  }
  absl::StatusOr<int64_t> RecordOf(const std::string& id) const override {
    return store_->RecordOf(id);
  }
  absl::StatusOr<database::BestMatch> FindBest(
      const database::BestQuery& query) const override {
    return store_->FindBest(query);
  }
  absl::StatusOr<database::Stats> GetStats() const override {
    return store_->GetStats();
  }
  absl::Status AddToken(const database::TokenRow& token,
                        const std::string& actor) override {
    return store_->AddToken(token, actor);
  }
  absl::StatusOr<std::vector<database::TokenRow>> ListTokens() const override {
    return store_->ListTokens();
  }
  absl::StatusOr<int> RevokeName(const std::string& name, const std::string& at,
                                 const std::string& actor) override {
    return store_->RevokeName(name, at, actor);
  }
  absl::StatusOr<std::map<std::string, std::string>> ListRevokedNames()
      const override {
    return store_->ListRevokedNames();
  }
  absl::StatusOr<std::string> AddJob(const database::JobRow& job) override {
    return store_->AddJob(job);
  }
  absl::Status UpdateJob(const std::string& id, const std::string& state,
                         const std::string& error) override {
    return store_->UpdateJob(id, state, error);
  }
  absl::StatusOr<std::vector<database::JobRow>> ListJobs() const override {
    return store_->ListJobs();
  }
  absl::StatusOr<database::JobRow> GetJob(
      const std::string& id) const override {
    return store_->GetJob(id);
  }
  absl::Status AppendJobLog(const std::string& id,
                            std::span<const std::string> lines) override {
    return store_->AppendJobLog(id, lines);
  }
  absl::StatusOr<std::vector<std::string>> ReadJobLog(
      const std::string& id) const override {
    return store_->ReadJobLog(id);
  }
  absl::Status PutBlob(const std::string& key,
                       std::string_view bytes) override {
    return store_->PutBlob(key, bytes);
  }
  absl::StatusOr<std::string> GetBlob(const std::string& key) const override {
    return store_->GetBlob(key);
  }
  database::DeviceTables& device_tables() override {
    return store_->device_tables();
  }

  // From now on writes wait, until Release().
  void Hold() {
    MutexLock lock(mutex_);
    held_ = true;
  }
  void Release() {
    MutexLock lock(mutex_);
    held_ = false;
    released_.NotifyAll();
  }

  std::atomic<int> failures = 0;
  std::atomic<int> writes = 0;  // begun
  std::string refused;
  std::vector<size_t> groups;  // of the writer's thread

 private:
  const std::unique_ptr<database::Store> store_;
  Mutex mutex_;
  CondVar released_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
};

class NoListener : public RecordListener {
 public:
  void OnRecorded(const farm::WorkItem&, const database::Record&,
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
    farm_.OnResult(session_, {.lease_id = link_->leases().back().lease_id,
                              .candidate_id = candidate,
                              .measurement = Measured(1e-3)});
  }
  void WaitForAcks(size_t count) {
    Until([&] { return link_->acks().size() >= count; });
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
  store_.Hold();  // while the first is being written, the others pile up
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
