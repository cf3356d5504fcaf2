#include "database/store.h"

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/database/test_records.h"

namespace tilefarm::database {
namespace {

using ::testing::ElementsAre;

class FakeClock : public Clock {
 public:
  absl::Time Now() override { return absl::FromUnixSeconds(86400); }
  absl::Duration Monotonic() override { return absl::ZeroDuration(); }
};

// Every case in memory and in a file, which reads on another connection.
class StoreTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const std::string path = GetParam() ? folder_.File("tune.db") : ":memory:";
    auto store = Store::Open(path, Store::Mode::kReadWrite, clock_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  void Add(const std::vector<Record>& records) {
    const auto added = store_->AddRecords(records);
    ASSERT_TRUE(added.ok()) << added.status();
  }
  std::vector<Record> All() {
    std::vector<Record> all;
    const absl::Status status = store_->ForEachRecord([&](const Record& r) {
      all.push_back(r);
      return true;
    });
    EXPECT_TRUE(status.ok()) << status;
    return all;
  }

  FakeClock clock_;
  TempFolder folder_;
  std::unique_ptr<Store> store_;
};

INSTANTIATE_TEST_SUITE_P(Places, StoreTest, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "File" : "Memory";
                         });

TEST_P(StoreTest, ReturnsARecordAsItWasGiven) {
  Record r = MakeRecord("c1");
  r.protocol = {true, 4, "packed"};
  r.stopped_early = true;
  r.error = std::string("a\0b", 3);
  Add({r});
  const std::vector<Record> all = All();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_GT(all[0].id, 0);
  EXPECT_EQ(RecordToJson(all[0]), RecordToJson(r));
  EXPECT_EQ(all[0].trace, kTrace);
  EXPECT_EQ(all[0].error, r.error);
}

TEST_P(StoreTest, KeepsOneRecordACandidate) {
  Record again = MakeRecord("c1", 9.0);
  const auto first = store_->AddRecords(std::vector{MakeRecord("c1")});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT(*first, ElementsAre(true));
  const auto second = store_->AddRecords(
      std::vector{again, MakeRecord("c2"), MakeRecord("c2")});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_THAT(*second, ElementsAre(false, true, false));
  const std::vector<Record> all = All();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].median_seconds, 1e-3);
  EXPECT_EQ(store_->HasCandidate("c1").value(), true);
  EXPECT_EQ(store_->HasCandidate("c3").value(), false);
  EXPECT_EQ(store_->RecordOf("c1").value(), All()[0].id);
  EXPECT_EQ(store_->RecordOf("c3").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_P(StoreTest, AddsAllOrNothing) {
  Record nameless = MakeRecord("");
  EXPECT_EQ(store_->AddRecords(std::vector{MakeRecord("c1"), nameless})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(All().empty());
}

TEST_P(StoreTest, DatesWhatHasNoDate) {
  Record r = MakeRecord("c1");
  r.recorded_at.clear();
  Add({r});
  EXPECT_EQ(All()[0].recorded_at, "1970-01-02T00:00:00Z");
}

TEST_P(StoreTest, FindsRecordsOfAWorkloadAndTarget) {
  Record other_target = MakeRecord("c2");
  other_target.target = "x86-64:znver4,cores=8";
  Record other_workload = MakeRecord("c3");
  other_workload.workload_hash = std::string(64, 'b');
  Add({MakeRecord("c1"), other_target, other_workload, MakeRecord("c4")});
  const auto found =
      store_->FindRecords(std::string(64, 'a'), "x86-64:znver4,cores=1");
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].candidate_id, "c1");
  EXPECT_EQ((*found)[1].candidate_id, "c4");
}

TEST_P(StoreTest, CountsByStatus) {
  Record bad = MakeRecord("c2");
  bad.status = Status::kWrongResult;
  Record other = MakeRecord("c3");
  other.workload_hash = std::string(64, 'b');
  Add({MakeRecord("c1"), bad, other});
  const auto stats = store_->GetStats();
  ASSERT_TRUE(stats.ok()) << stats.status();
  EXPECT_EQ(stats->records, 3);
  EXPECT_EQ(stats->workloads, 2);
  EXPECT_EQ(stats->by_status.at("ok"), 2);
  EXPECT_EQ(stats->by_status.at("wrong_result"), 1);
}

TEST_P(StoreTest, VisitsManyRecordsInOrderAndStops) {
  std::vector<Record> many;
  for (int i = 0; i < 700; ++i) {
    many.push_back(MakeRecord("c" + std::to_string(i)));
  }
  Add(many);
  const std::vector<Record> all = All();
  ASSERT_EQ(all.size(), 700u);
  for (int i = 0; i < 700; ++i) {
    EXPECT_EQ(all[i].candidate_id, "c" + std::to_string(i));
  }
  int seen = 0;
  EXPECT_TRUE(store_
                  ->ForEachRecord([&](const Record& r) {
                    // The callback may call the store.
                    EXPECT_TRUE(store_->HasCandidate(r.candidate_id).value());
                    return ++seen < 3;
                  })
                  .ok());
  EXPECT_EQ(seen, 3);
}

TEST_P(StoreTest, ReMeasuringAddsNoRecord) {
  Add({MakeRecord("c1")});
  EXPECT_TRUE(store_->AddMeasurement(All()[0].id, MakeRecord("x", 2.0)).ok());
  EXPECT_EQ(All().size(), 1u);
  EXPECT_EQ(store_->GetStats()->records, 1);
  EXPECT_EQ(store_->AddMeasurement(99, MakeRecord("x")).code(),
            absl::StatusCode::kNotFound);
}

TEST_P(StoreTest, ReturnsMeasurementsOldestFirst) {
  Add({MakeRecord("c1"), MakeRecord("c2")});
  const int64_t id = All()[0].id;
  Record first = MakeRecord("c1", 2.0);
  first.protocol = {true, 3, "packed"};
  ASSERT_TRUE(store_->AddMeasurement(id, first).ok());
  Record second = MakeRecord("c1", 0);
  second.status = Status::kRunTimeout;
  second.error = "too slow";
  ASSERT_TRUE(store_->AddMeasurement(id, second).ok());
  const auto found = store_->FindMeasurements(id);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].seconds, first.seconds);
  EXPECT_EQ((*found)[0].protocol, first.protocol);
  EXPECT_EQ((*found)[0].fingerprint, first.fingerprint);
  EXPECT_EQ((*found)[0].recorded_at, first.recorded_at);
  EXPECT_EQ((*found)[1].status, Status::kRunTimeout);
  EXPECT_EQ((*found)[1].error, "too slow");
  EXPECT_TRUE(store_->FindMeasurements(All()[1].id)->empty());
}

TEST_P(StoreTest, LinesCarryEverythingToAnotherDatabase) {
  Record failed = MakeRecord("c2", 0);
  failed.status = Status::kCompileError;
  failed.seconds.clear();
  failed.trace = "# what? decision=3\n";
  Add({MakeRecord("c1"), failed, MakeRecord("c3")});
  ASSERT_TRUE(store_->AddMeasurement(All()[0].id, MakeRecord("c1", 2.0)).ok());
  const auto lines_of = [](const Store& store) {
    std::vector<std::string> lines;
    EXPECT_TRUE(store
                    .ForEachRecord([&](const Record& r) {
                      lines.push_back(RecordToJson(r));
                      return true;
                    })
                    .ok());
    return lines;
  };
  const std::vector<std::string> lines = lines_of(*store_);
  auto other = Store::Open(":memory:", Store::Mode::kReadWrite, clock_);
  ASSERT_TRUE(other.ok()) << other.status();
  for (const std::string& line : lines) {
    const auto record = RecordFromJson(line);
    ASSERT_TRUE(record.ok()) << record.status();
    ASSERT_TRUE((*other)->AddRecords(std::vector{*record}).ok());
  }
  EXPECT_EQ(lines_of(**other), lines);

  // A second import of a record adds only new data.
  ASSERT_TRUE(store_->AddMeasurement(All()[0].id, MakeRecord("c1", 3.0)).ok());
  const std::vector<std::string> later = lines_of(*store_);
  for (const std::string& line : later) {
    const auto added = (*other)->AddRecords(std::vector{*RecordFromJson(line)});
    ASSERT_TRUE(added.ok()) << added.status();
    EXPECT_FALSE(added->front());
  }
  EXPECT_EQ(lines_of(**other), later);
}

TEST_P(StoreTest, KeepsAProgramThatDoesNotParse) {
  Record r = MakeRecord("c1");
  r.program = "this is no program";
  Add({r});
  EXPECT_EQ(All()[0].program, r.program);
}

JobRow MakeJob(const std::string& id, const std::string& request_id) {
  JobRow job;
  job.id = id;
  job.request_id = request_id;
  job.state = "queued";
  job.user = "ann";
  job.program = kProgram;
  job.target = "x86-64:znver4,cores=1";
  job.trials = 200;
  job.spec_json = R"({"seed": 1})";
  return job;
}

TEST_P(StoreTest, KeepsJobs) {
  EXPECT_EQ(store_->AddJob(MakeJob("j1", "r1")).value(), "j1");
  EXPECT_EQ(store_->AddJob(MakeJob("j2", "")).value(), "j2");
  EXPECT_EQ(store_->AddJob(MakeJob("j3", "")).value(), "j3");
  const auto jobs = store_->ListJobs();
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 3u);
  EXPECT_EQ((*jobs)[0].id, "j1");
  EXPECT_EQ((*jobs)[2].id, "j3");
  const auto job = store_->GetJob("j1");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->request_id, "r1");
  EXPECT_EQ(job->user, "ann");
  EXPECT_EQ(job->trials, 200);
  EXPECT_EQ(job->program, kProgram);
  EXPECT_EQ(job->spec_json, R"({"seed": 1})");
  EXPECT_EQ(job->created_at, "1970-01-02T00:00:00Z");
  EXPECT_EQ(job->ended_at, "");
  ASSERT_TRUE(store_->UpdateJob("j3", "done", "").ok());
  const auto times = store_->ListJobTimes();
  ASSERT_TRUE(times.ok()) << times.status();
  ASSERT_EQ(times->size(), 3u);
  EXPECT_EQ(times->at("j1").created_at, "1970-01-02T00:00:00Z");
  EXPECT_EQ(times->at("j1").ended_at, "");
  EXPECT_EQ(times->at("j3").ended_at, "1970-01-02T00:00:00Z");
  EXPECT_EQ(store_->GetJob("j9").status().code(), absl::StatusCode::kNotFound);
}

TEST_P(StoreTest, ARetriedRequestIsTheSameJob) {
  ASSERT_TRUE(store_->AddJob(MakeJob("j1", "r1")).ok());
  EXPECT_EQ(store_->AddJob(MakeJob("j2", "r1")).value(), "j1");
  EXPECT_EQ(store_->ListJobs()->size(), 1u);
  EXPECT_EQ(store_->AddJob(MakeJob("j1", "r2")).status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(store_->AddJob(MakeJob("", "r3")).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_P(StoreTest, AJobEndsOnce) {
  ASSERT_TRUE(store_->AddJob(MakeJob("j1", "r1")).ok());
  ASSERT_TRUE(store_->UpdateJob("j1", "running", "").ok());
  EXPECT_EQ(store_->GetJob("j1")->ended_at, "");
  ASSERT_TRUE(store_->UpdateJob("j1", "failed", "nothing verified").ok());
  EXPECT_EQ(store_->GetJob("j1")->state, "failed");
  EXPECT_EQ(store_->GetJob("j1")->error, "nothing verified");
  EXPECT_EQ(store_->GetJob("j1")->ended_at, "1970-01-02T00:00:00Z");
  EXPECT_EQ(store_->UpdateJob("j9", "done", "").code(),
            absl::StatusCode::kNotFound);
}

TEST_P(StoreTest, TheJobLogKeepsItsOrder) {
  ASSERT_TRUE(store_->AddJob(MakeJob("j1", "r1")).ok());
  ASSERT_TRUE(store_->AddJob(MakeJob("j2", "r2")).ok());
  ASSERT_TRUE(
      store_->AppendJobLog("j1", std::vector<std::string>{"a", "b"}).ok());
  ASSERT_TRUE(store_->AppendJobLog("j2", std::vector<std::string>{"x"}).ok());
  ASSERT_TRUE(store_->AppendJobLog("j1", std::vector<std::string>{"a"}).ok());
  EXPECT_THAT(store_->ReadJobLog("j1").value(), ElementsAre("a", "b", "a"));
  EXPECT_THAT(store_->ReadJobLog("j2").value(), ElementsAre("x"));
  EXPECT_EQ(store_->AppendJobLog("j9", std::vector<std::string>{"a"}).code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->ReadJobLog("j9").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_P(StoreTest, BlobsAreReplaced) {
  EXPECT_EQ(store_->GetBlob("model").status().code(),
            absl::StatusCode::kNotFound);
  const std::string bytes("\0\xff binary", 9);
  ASSERT_TRUE(store_->PutBlob("model", bytes).ok());
  EXPECT_EQ(store_->GetBlob("model").value(), bytes);
  ASSERT_TRUE(store_->PutBlob("model", "").ok());
  EXPECT_EQ(store_->GetBlob("model").value(), "");
}

TEST_P(StoreTest, ThreadsWriteAndReadTogether) {
  ASSERT_TRUE(store_->AddJob(MakeJob("j1", "r1")).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const std::string id = std::to_string(t) + "-" + std::to_string(i);
        EXPECT_TRUE(store_->AddRecords(std::vector{MakeRecord(id)}).ok());
        EXPECT_TRUE(store_->HasCandidate(id).value());
        EXPECT_TRUE(
            store_->AppendJobLog("j1", std::vector<std::string>{id}).ok());
        EXPECT_TRUE(store_->GetStats().ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store_->GetStats()->records, 80);
  EXPECT_EQ(store_->ReadJobLog("j1")->size(), 80u);
}

}  // namespace
}  // namespace tilefarm::database
