// A store with faults, for tests.
#ifndef TILEFARM_TESTS_SERVER_FLAKY_STORE_H_
#define TILEFARM_TESTS_SERVER_FLAKY_STORE_H_

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "database/store.h"

namespace tilefarm::testing {

// A store that can refuse to write or to read logs for a while, refuse some
// records permanently, or be slow.
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
      // A test that fails while it holds the store must still end.
      const absl::Duration end = Clock::Real().Monotonic() + absl::Seconds(60);
      while (held_ && Clock::Real().Monotonic() < end) {
        released_.WaitFor(mutex_, absl::Seconds(1));
      }
      EXPECT_FALSE(held_) << "the store was not released";
    }
    if (failures > 0) {
      --failures;
      return absl::UnavailableError("the disk is full");
    }
    for (const database::Record& record : records) {
      if (record.candidate_id == refused) return refusal;
    }
    return store_->AddRecords(records);
  }
  absl::Status AddMeasurement(int64_t id,
                              const database::Record& record) override {
    return store_->AddMeasurement(id, record);
  }
  absl::StatusOr<std::vector<database::Record>> NextRecords(
      const std::string& workload, int64_t after) const override {
    return store_->NextRecords(workload, after);
  }
  absl::StatusOr<std::vector<database::Task>> ListTasks() const override {
    return store_->ListTasks();
  }
  absl::Status ForEachWorkload(
      const std::string& target,
      const std::function<bool(const std::string&, const std::string&)>& visit)
      const override {
    return store_->ForEachWorkload(target, visit);
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
    ++searches;
    return store_->FindRecords(workload, target);
  }
  absl::StatusOr<std::vector<database::OutcomeRow>> ListOutcomes(
      const database::OutcomeFilter& filter) const override {
    return store_->ListOutcomes(filter);
  }
  absl::StatusOr<std::vector<database::TaskFigures>> ListTaskFigures()
      const override {
    return store_->ListTaskFigures();
  }
  absl::StatusOr<std::string> GetSketch(int64_t id) const override {
    return store_->GetSketch(id);
  }
  absl::StatusOr<database::Record> GetRecord(int64_t id) const override {
    return store_->GetRecord(id);
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
  absl::StatusOr<database::Explanation> ExplainBest(
      const database::BestQuery& query) const override {
    return store_->ExplainBest(query);
  }
  absl::StatusOr<int64_t> BytesOfUser(const std::string& user) const override {
    return store_->BytesOfUser(user);
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
  absl::StatusOr<std::map<std::string, JobTimes>> ListJobTimes()
      const override {
    return store_->ListJobTimes();
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
    if (log_failures > 0) {
      --log_failures;
      return absl::UnavailableError("the file is busy");
    }
    return store_->ReadJobLog(id);
  }
  database::RegressionTables& regression_tables() override {
    return store_->regression_tables();
  }
  absl::Status PutBlob(const std::string& key,
                       std::string_view bytes) override {
    if (failures > 0) return absl::UnavailableError("the disk is full");
    return store_->PutBlob(key, bytes);
  }
  absl::StatusOr<std::string> GetBlob(const std::string& key) const override {
    return store_->GetBlob(key);
  }
  database::DeviceTables& device_tables() override {
    return store_->device_tables();
  }

  // From now on, writes block until Release().
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
  mutable std::atomic<int> log_failures = 0;
  std::atomic<int> writes = 0;            // started
  mutable std::atomic<int> searches = 0;  // for records of a task
  std::string refused;
  absl::Status refusal = absl::InvalidArgumentError("it will not have it");
  std::vector<size_t> groups;  // of the writer's thread

 private:
  const std::unique_ptr<database::Store> store_;
  Mutex mutex_;
  CondVar released_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_SERVER_FLAKY_STORE_H_
