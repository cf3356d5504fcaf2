// Jobs that tune for several targets at once.
#include <gmock/gmock.h>

#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/server/jobs_fixture.h"
#include "tests/support/until.h"

namespace tilefarm::jobs {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::FakeSearchFactory;
using testing::FakeWorker;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using testing::TestTarget;

constexpr char kBoard[] = "aarch64:cortex-a72,cores=1";

farm::WorkerHello BoardHello(const std::string& name = "board") {
  farm::WorkerHello hello = testing::TestHello(name);
  hello.device.target = kBoard;
  hello.device.cpu = "cortex-a72";
  hello.device.cores = 1;
  hello.device.l2_bytes = 1 << 20;
  return hello;
}

// Ten times the time of Quick.
std::optional<farm::Measurement> Slow(const farm::Lease& lease) {
  return testing::Measured(1e-2 +
                           1e-5 * static_cast<double>(lease.item.sequence));
}

class JobTargetsTest : public JobsTest {
 protected:
  JobSpec BothSpec(int64_t trials) {
    JobSpec spec = Spec(trials);
    spec.targets.push_back({kBoard, std::nullopt});
    return spec;
  }
  // The number of one job's trials per target.
  std::map<std::string, int> TrialsOf(const std::string& id) {
    std::map<std::string, int> trials;
    std::set<std::string> candidates;
    for (const database::Record& record : Records()) {
      EXPECT_TRUE(candidates.insert(record.candidate_id).second);
      if (record.job_id == id) ++trials[record.target];
    }
    return trials;
  }
};

TEST_F(JobTargetsTest, EachHasAnEvenShareAndItsOwnBest) {
  const std::string id = *jobs_->Submit(BothSpec(41));
  JobSnapshot end;
  {
    FakeWorker host(*farm_, "host", Quick), board(*farm_, BoardHello(), Slow);
    end = WaitForEnd(id);
  }
  EXPECT_EQ(end.state, JobState::kDone);
  EXPECT_EQ(end.trials_done, 41);
  EXPECT_THAT(end.targets, ElementsAre(TestTarget().Key(), kBoard));
  ASSERT_THAT(end.tasks, SizeIs(2));
  EXPECT_EQ(end.tasks[0].target, TestTarget().Key());
  EXPECT_EQ(end.tasks[0].trials_done, 21);
  EXPECT_DOUBLE_EQ(end.tasks[0].best_seconds, 1.001e-3);
  EXPECT_EQ(end.tasks[1].target, kBoard);
  EXPECT_EQ(end.tasks[1].trials_done, 20);
  EXPECT_DOUBLE_EQ(end.tasks[1].best_seconds, 1.001e-2);
  EXPECT_DOUBLE_EQ(end.best_seconds(), 1.1011e-2);
  for (const database::Record& record : Records()) {
    EXPECT_EQ(record.job_id, id);
    EXPECT_THAT(record.device,
                StartsWith(record.target == kBoard ? "board@" : "host@"));
  }
  // Each has a model of its own.
  EXPECT_TRUE(store_->GetBlob("model/" + TestTarget().Key()).ok());
  EXPECT_TRUE(store_->GetBlob(std::string("model/") + kBoard).ok());
  // The caches of each device are kept apart.
  EXPECT_EQ(*Opened(id).caches, testing::TestHello("host").device.caches());
  EXPECT_EQ(*ReadLog(*store_->ReadJobLog(id))->Opened(kBoard, false).caches,
            BoardHello().device.caches());
  // After a restart, the state of an ended job comes from the database.
  Restart(FakeSearchFactory());
  const JobSnapshot stored = *jobs_->Get(id);
  EXPECT_EQ(stored.targets, end.targets);
  ASSERT_THAT(stored.tasks, SizeIs(2));
  EXPECT_EQ(stored.tasks[1].target, kBoard);
  EXPECT_EQ(stored.tasks[1].trials_done, 20);
  EXPECT_DOUBLE_EQ(stored.tasks[1].best_seconds, 1.001e-2);
}

TEST_F(JobTargetsTest, OneWithoutADeviceWaitsAlone) {
  FakeWorker host(*farm_, "host", Quick);
  const std::string id = *jobs_->Submit(BothSpec(40));
  const JobSnapshot waiting =
      WaitFor(id, [](const JobSnapshot& s) { return s.trials_done == 20; });
  EXPECT_EQ(waiting.state, JobState::kRunning);
  EXPECT_THAT(waiting.message,
              AllOf(StartsWith("waits for a device"), HasSubstr(kBoard)));
  EXPECT_EQ(waiting.tasks[0].trials_done, 20);
  EXPECT_EQ(waiting.tasks[1].trials_done, 0);
  // The finished target is free for other jobs, the waiting one is not.
  EXPECT_EQ(WaitForEnd(*jobs_->Submit(Spec(5))).state, JobState::kDone);
  JobSpec spec = Spec(5);
  spec.targets = {{kBoard, std::nullopt}};
  const std::string behind = *jobs_->Submit(spec);
  EXPECT_THAT(
      WaitFor(behind, [](const JobSnapshot& s) { return !s.message.empty(); })
          .message,
      HasSubstr("waits for job " + id));
  EXPECT_EQ(jobs_->Get(id)->state, JobState::kRunning);

  FakeWorker board(*farm_, BoardHello(), Slow);
  const JobSnapshot end = WaitForEnd(id);
  EXPECT_EQ(end.state, JobState::kDone);
  EXPECT_EQ(end.trials_done, 40);
  EXPECT_EQ(end.tasks[1].trials_done, 20);
  EXPECT_THAT(end.message, Not(HasSubstr("waits")));
  EXPECT_EQ(WaitForEnd(behind).trials_done, 5);
}

TEST_F(JobTargetsTest, AJobOfWhichOneTargetWaitsIsCancelledOrRunsOutOfTime) {
  FakeWorker host(*farm_, "host", Quick);
  const std::string cancelled = *jobs_->Submit(BothSpec(10));
  WaitFor(cancelled, [](const JobSnapshot& s) { return s.trials_done == 5; });
  EXPECT_EQ(*jobs_->Cancel(cancelled), JobState::kCancelled);
  EXPECT_EQ(WaitForEnd(cancelled).state, JobState::kCancelled);
  JobSpec spec = BothSpec(10);
  spec.seconds = 1;
  const JobSnapshot late = WaitForEnd(*jobs_->Submit(spec));
  EXPECT_EQ(late.state, JobState::kFailed);
  EXPECT_EQ(late.error, std::string("matmul for ") + kBoard +
                            ": no candidate was measured and verified");
}

TEST_F(JobTargetsTest, CancelTakesTheWorkOfEveryTargetBack) {
  // A worker that sends no results.
  const auto mute = [](const farm::Lease& lease) {
    return lease.item.purpose == farm::Purpose::kBaseline ? Quick(lease)
                                                          : std::nullopt;
  };
  FakeWorker host(*farm_, "host", mute), board(*farm_, BoardHello(), mute);
  const std::string id = *jobs_->Submit(BothSpec(1'000));
  const auto leased = [&](const std::string& queue) {
    return farm_->Counts(queue).leased;
  };
  const std::string second = id + "/" + kBoard;
  ASSERT_TRUE(Until([&] { return leased(id) == 2 && leased(second) == 2; }));
  ASSERT_TRUE(jobs_->Cancel(id).ok());
  EXPECT_EQ(WaitForEnd(id).state, JobState::kCancelled);
  EXPECT_THAT(host.link().cancelled(), SizeIs(2));
  EXPECT_THAT(board.link().cancelled(), SizeIs(2));
  EXPECT_EQ(farm_->Counts(id).outstanding(), 0);
  EXPECT_EQ(farm_->Counts(second).outstanding(), 0);
}

TEST_F(JobTargetsTest, ResumesAfterARestartWithoutMeasuringAgain) {
  const std::string id = *jobs_->Submit(BothSpec(60));
  {
    // Each returns some results and withholds the others.
    std::atomic<int> of_host = 0, of_board = 0;
    FakeWorker host(*farm_, "host", [&](const farm::Lease& lease) {
      return ++of_host > 12 ? std::nullopt : Quick(lease);
    });
    FakeWorker board(*farm_, BoardHello(), [&](const farm::Lease& lease) {
      return ++of_board > 6 ? std::nullopt : Slow(lease);
    });
    WaitFor(id, [](const JobSnapshot& s) {
      return s.tasks[0].trials_done == 11 && s.tasks[1].trials_done == 5;
    });
  }
  Restart(FakeSearchFactory());
  const JobSnapshot resumed = *jobs_->Get(id);
  EXPECT_EQ(resumed.state, JobState::kRunning);
  EXPECT_EQ(resumed.tasks[0].trials_done, 11);
  EXPECT_EQ(resumed.tasks[1].trials_done, 5);
  {
    // One target's trials are done while the other's device is away.
    FakeWorker host(*farm_, "host", Quick);
    const JobSnapshot half = WaitFor(
        id, [](const JobSnapshot& s) { return s.tasks[0].trials_done == 30; });
    EXPECT_THAT(half.message, HasSubstr(kBoard));
  }
  Restart(FakeSearchFactory());
  FakeWorker host(*farm_, "host", Quick);
  FakeWorker board(*farm_, BoardHello(), Slow);
  EXPECT_EQ(WaitForEnd(id).state, JobState::kDone);
  EXPECT_THAT(TrialsOf(id),
              ElementsAre(::testing::Pair(kBoard, 30),
                          ::testing::Pair(TestTarget().Key(), 30)));
}

TEST_F(JobTargetsTest, WhatAnExhaustedSpaceLeavesGoesToTheOthers) {
  SearchFactory factory = FakeSearchFactory();
  factory.make_search = [](const SearchRequest& request) {
    const int size = request.target.kind == "aarch64" ? 7 : 1'000'000;
    return std::make_unique<testing::FakeSearch>(request, size);
  };
  Restart(std::move(factory));
  FakeWorker board(*farm_, BoardHello(), Slow);
  const std::string id = *jobs_->Submit(BothSpec(40));
  WaitFor(id, [](const JobSnapshot& s) { return s.trials_done == 7; });
  FakeWorker host(*farm_, "host", Quick);
  EXPECT_EQ(WaitForEnd(id).trials_done, 40);
  EXPECT_THAT(TrialsOf(id),
              ElementsAre(::testing::Pair(kBoard, 7),
                          ::testing::Pair(TestTarget().Key(), 33)));
}

TEST_F(JobTargetsTest, OneThatCannotBeSearchedLeavesTheOthersAlone) {
  SearchFactory factory = FakeSearchFactory();
  factory.make_search = [make =
                             factory.make_search](const SearchRequest& request)
      -> absl::StatusOr<std::unique_ptr<search::Search>> {
    if (request.target.kind == "aarch64") {
      return absl::FailedPreconditionError("no such tile");
    }
    return make(request);
  };
  Restart(std::move(factory));
  FakeWorker board(*farm_, BoardHello(), Slow);
  FakeWorker host(*farm_, "host", Quick);
  const std::string id = *jobs_->Submit(BothSpec(10));
  const JobSnapshot end = WaitForEnd(id);
  EXPECT_EQ(end.state, JobState::kFailed);
  EXPECT_EQ(end.error, std::string("matmul for ") + kBoard +
                           " cannot be searched: no such tile");
  EXPECT_GE(end.tasks[0].trials_done, 5);
  EXPECT_GT(end.tasks[0].best_seconds, 0);
  EXPECT_THAT(board.link().leases(), IsEmpty());
}

TEST_F(JobTargetsTest, PatienceIsOfEachTarget) {
  FakeWorker host(*farm_, "host", Quick);  // the first one is the best
  JobSpec spec = BothSpec(0);
  spec.patience = 20;
  const std::string id = *jobs_->Submit(spec);
  WaitFor(id, [](const JobSnapshot& s) {
    return s.trials_done >= 20 && !s.message.empty();
  });
  FakeWorker board(*farm_, BoardHello(), Slow);
  const JobSnapshot end = WaitForEnd(id);
  EXPECT_EQ(end.state, JobState::kDone);
  EXPECT_GE(end.tasks[0].trials_done, 20);
  EXPECT_GE(end.tasks[1].trials_done, 20);
}

TEST_F(JobTargetsTest, OneDeviceMayServeSeveral) {
  farm::WorkerHello hello = testing::TestHello("w");
  FakeWorker worker(*farm_, hello, Quick);
  JobSpec spec = Spec(30);
  spec.targets.push_back({"x86-64:x86-64-v3,cores=1", std::nullopt});
  spec.targets.push_back({testing::TestTarget(1).Key(), std::nullopt});
  const std::string id = *jobs_->Submit(spec);
  const JobSnapshot end = WaitForEnd(id);
  EXPECT_EQ(end.state, JobState::kDone);
  ASSERT_THAT(end.tasks, SizeIs(3));
  for (const TaskSnapshot& task : end.tasks) EXPECT_EQ(task.trials_done, 10);
  // No target waits until the others are done.
  std::set<std::string> early;
  const auto leases = worker.link().leases();
  for (size_t i = 0; i < leases.size() / 2; ++i) {
    early.insert(leases[i].item.target.Key());
  }
  EXPECT_THAT(early, SizeIs(3));
}

TEST_F(JobTargetsTest, AModuleHasATaskForEachFunctionAndTarget) {
  FakeWorker host(*farm_, "host", Quick), board(*farm_, BoardHello(), Slow);
  JobSpec spec = BothSpec(64);
  spec.program = testing::kAddRelu;
  const std::string id = *jobs_->Submit(spec);
  const JobSnapshot end = WaitForEnd(id);
  EXPECT_EQ(end.trials_done, 64);
  std::vector<std::string> names;
  std::map<std::string, int64_t> trials;
  for (const TaskSnapshot& task : end.tasks) {
    names.push_back(task.function + " " + task.target);
    trials[task.target] += task.trials_done;
    EXPECT_GE(task.trials_done, 8);
  }
  const std::string host_key = TestTarget().Key();
  // Targets share evenly, the functions of a target by their expected gain.
  EXPECT_EQ(trials[host_key], 32);
  EXPECT_EQ(trials[kBoard], 32);
  EXPECT_THAT(names, ElementsAre("add " + host_key, "relu " + host_key,
                                 std::string("add ") + kBoard,
                                 std::string("relu ") + kBoard));
}

TEST_F(JobTargetsTest, RefusesTheSameTargetTwiceAndTooMany) {
  JobSpec spec = Spec();
  spec.targets.push_back({"x86-64:znver4,cores=4", std::nullopt});
  absl::Status status = jobs_->Submit(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("given twice"));
  spec.targets.clear();
  EXPECT_EQ(jobs_->Submit(spec).status().code(),
            absl::StatusCode::kInvalidArgument);
  for (int i = 0; i <= kMostTargets; ++i) {
    spec.targets.push_back({testing::TestTarget(i + 1).Key(), std::nullopt});
  }
  EXPECT_EQ(jobs_->Submit(spec).status().code(),
            absl::StatusCode::kInvalidArgument);
  spec = BothSpec(5);
  spec.targets[1].caches = {32 << 10, 0, 1 << 20};
  EXPECT_EQ(jobs_->Submit(spec).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(*jobs_->List(), IsEmpty());
}

TEST_F(JobTargetsTest, StoredJobsKeepTheirTargetsAndOldOnesAreRead) {
  JobSpec spec = BothSpec(5);
  spec.targets[1].caches = {48 << 10, 1 << 20, 2 << 20};
  ASSERT_TRUE(ResolveJob(*store_, spec).ok());
  const JobSpec read = *JobFromRow(JobToRow("job-1", spec));
  ASSERT_THAT(read.targets, SizeIs(2));
  EXPECT_EQ(read.targets[0].key, TestTarget().Key());
  EXPECT_FALSE(read.targets[0].caches.has_value());
  EXPECT_EQ(read.targets[1].key, kBoard);
  EXPECT_EQ(read.targets[1].caches, spec.targets[1].caches);
  ASSERT_THAT(read.tasks, SizeIs(2));
  EXPECT_EQ(read.tasks[0].target, TestTarget().Key());
  EXPECT_EQ(read.tasks[1].target, kBoard);
  EXPECT_EQ(TaskId(read.tasks[1]), TaskId(spec.tasks[1]));
  // A job for one target is stored in the format from before several targets.
  spec.targets.pop_back();
  ASSERT_TRUE(ResolveJob(*store_, spec).ok());
  const database::JobRow row = JobToRow("job-2", spec);
  const auto json = nlohmann::json::parse(row.spec_json);
  EXPECT_FALSE(json.contains("more_targets"));
  EXPECT_FALSE(json["tasks"][0].contains("target"));
  EXPECT_EQ(row.target, TestTarget().Key());
  EXPECT_EQ(JobFromRow(row)->tasks[0].target, TestTarget().Key());
}

TEST_F(JobTargetsTest, StoredJobsStayStrictAndOldOnesAreNot) {
  JobSpec spec = BothSpec(5);
  spec.strict_fp = true;
  ASSERT_TRUE(ResolveJob(*store_, spec).ok());
  database::JobRow row = JobToRow("job-1", spec);
  EXPECT_TRUE(JobFromRow(row)->strict_fp);
  auto json = nlohmann::json::parse(row.spec_json);
  json.erase("strict_fp");
  row.spec_json = json.dump();
  EXPECT_FALSE(JobFromRow(row)->strict_fp);
}

TEST(JobLogTargetsTest, LogsOfTheFirstReleasesNameNoTarget) {
  const std::vector<std::string> lines = {
      R"({"event":"open","at":"2026-01-02T03:04:05Z","fingerprint":"f",)"
      R"("caches":[1,2,3],"known":{},"libraries":["openblas"]})"};
  const LogSummary log = *ReadLog(lines);
  EXPECT_EQ(log.Opened("any", /*only=*/true).caches,
            (target::CacheSizes{1, 2, 3}));
  EXPECT_THAT(*log.Opened("any", /*only=*/true).libraries,
              ElementsAre("openblas"));
  EXPECT_FALSE(log.Opened("any", /*only=*/false).caches.has_value());
}

}  // namespace
}  // namespace tilefarm::jobs
