#include "server/jobs/jobs.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/mutex.h"
#include "compiler/ir/parser.h"
#include "server/jobs/job_log.h"
#include "tests/server/flaky_store.h"
#include "tests/server/jobs_fixture.h"
#include "tests/support/until.h"

namespace tilefarm::jobs {
namespace {

using ::testing::ElementsAre;
using testing::FakeSearchFactory;
using testing::FakeWorker;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kFingerprint;
using testing::Measured;
using ::testing::Pair;
using ::testing::SizeIs;
using testing::TestTarget;

TEST_F(JobsTest, RunsExactlyTheTrialsAskedFor) {
  FakeWorker worker(*farm_, "w", Quick);
  const std::string id = *jobs_->Submit(Spec(50));
  const JobSnapshot end = WaitForEnd(id);
  EXPECT_EQ(end.state, JobState::kDone);
  EXPECT_EQ(end.trials_done, 50);
  EXPECT_THAT(end.by_status, ElementsAre(Pair("ok", 50)));
  EXPECT_DOUBLE_EQ(end.best_seconds(), 1.001e-3);
  EXPECT_GT(end.best_gflops(), 0);
  const auto records = Records();
  ASSERT_THAT(records, SizeIs(50));
  std::set<int64_t> sequences;
  for (const database::Record& record : records) {
    EXPECT_EQ(record.job_id, id);
    EXPECT_THAT(record.device, HasSubstr("w@"));
    EXPECT_EQ(record.target, TestTarget().Key());
    sequences.insert(record.sequence);
  }
  EXPECT_THAT(sequences, SizeIs(50));
  EXPECT_EQ(store_->GetJob(id)->state, "done");
}

TEST_F(JobsTest, ListsTheJobsThatPass) {
  std::vector<std::string> ids;
  for (const char* user : {"ann", "bob", "ann"}) {
    JobSpec spec = Spec(5);
    spec.user = user;
    spec.program_name = absl::StrCat(user, ids.size(), ".py");
    ids.push_back(*jobs_->Submit(spec));
  }
  EXPECT_EQ(*jobs_->Cancel(ids[1]), JobState::kCancelled);
  const auto listed = [&](const JobFilter& filter) {
    std::vector<std::string> found;
    const auto jobs = jobs_->List(filter);
    EXPECT_TRUE(jobs.ok()) << jobs.status();
    for (const JobSnapshot& job : *jobs) found.push_back(job.id);
    return found;
  };
  EXPECT_EQ(listed({}), ids);
  EXPECT_THAT(listed({.user = "ann"}), ElementsAre(ids[0], ids[2]));
  EXPECT_THAT(listed({.user = "ann", .limit = 1}), ElementsAre(ids[2]));
  EXPECT_THAT(listed({.limit = 2}), ElementsAre(ids[1], ids[2]));
  EXPECT_THAT(listed({.program = "b1."}), ElementsAre(ids[1]));
  EXPECT_THAT(listed({.id_prefix = ids[2]}), ElementsAre(ids[2]));
  EXPECT_THAT(listed({.target = "x86-64"}), SizeIs(3));
  EXPECT_THAT(listed({.target = "toaster"}), IsEmpty());
  EXPECT_TRUE(Until([&] {
    return listed({.states = {JobState::kCancelled}}) ==
           std::vector<std::string>{ids[1]};
  }));
  EXPECT_THAT(listed({.states = {JobState::kQueued, JobState::kRunning}}),
              ElementsAre(ids[0], ids[2]));
}

TEST_F(JobsTest, TheUnscheduledProgramIsNoTrial) {
  FakeWorker worker(*farm_, "w", [](const farm::Lease& lease) {
    return Measured(lease.item.purpose == farm::Purpose::kBaseline ? 0.5
                                                                   : 1e-3);
  });
  const std::string id = *jobs_->Submit(Spec(5));
  const JobSnapshot end = WaitForEnd(id);
  EXPECT_DOUBLE_EQ(end.unscheduled_seconds(), 0.5);
  EXPECT_EQ(end.trials_done, 5);
  EXPECT_THAT(Records(), SizeIs(5));
  // Measured once for all jobs of the task.
  const std::string again = *jobs_->Submit(Spec(5));
  EXPECT_DOUBLE_EQ(WaitForEnd(again).unscheduled_seconds(), 0.5);
  int baselines = 0;
  for (const farm::Lease& lease : worker.link().leases()) {
    baselines += lease.item.purpose == farm::Purpose::kBaseline;
  }
  EXPECT_EQ(baselines, 1);
}

TEST_F(JobsTest, AProgramTooSlowToMeasureAsWrittenIsTriedOnce) {
  FakeWorker worker(*farm_, "w", [](const farm::Lease& lease) {
    farm::Measurement measured = Measured(1e-3);
    if (lease.item.purpose == farm::Purpose::kBaseline) {
      EXPECT_LE(lease.item.options.run_timeout, absl::Seconds(10));
      measured.status = database::Status::kRunTimeout;
    }
    return measured;
  });
  for (int job = 0; job < 2; ++job) {
    const JobSnapshot end = WaitForEnd(*jobs_->Submit(Spec(5)));
    EXPECT_EQ(end.state, JobState::kDone);
    EXPECT_EQ(end.unscheduled_seconds(), 0);
  }
  int baselines = 0;
  for (const farm::Lease& lease : worker.link().leases()) {
    baselines += lease.item.purpose == farm::Purpose::kBaseline;
  }
  EXPECT_EQ(baselines, 1);
}

TEST_F(JobsTest, FinalistsAreMeasuredOnceMore) {
  // The first candidate's time was lucky, the second one's output is sometimes
  // wrong, the others are as measured.
  auto worker =
      std::make_unique<FakeWorker>(*farm_, "w", [](const farm::Lease& lease) {
        const int64_t sequence = lease.item.sequence;
        farm::Measurement measured =
            Measured(1e-3 + 1e-4 * static_cast<double>(sequence));
        if (lease.item.purpose == farm::Purpose::kFinalist) {
          if (sequence == 1) measured = Measured(5e-3);
          if (sequence == 2) measured.status = database::Status::kWrongResult;
        }
        return measured;
      });
  const std::string id = *jobs_->Submit(Spec(10));
  const JobSnapshot end = WaitForEnd(id);
  EXPECT_EQ(end.state, JobState::kDone);
  EXPECT_EQ(end.trials_done, 10);
  EXPECT_DOUBLE_EQ(end.best_seconds(), 1.3e-3);
  EXPECT_THAT(Records(), SizeIs(10));
  std::vector<int64_t> finalists;
  for (const farm::Lease& lease : worker->link().leases()) {
    if (lease.item.purpose != farm::Purpose::kFinalist) continue;
    EXPECT_EQ(lease.item.device, "w");
    finalists.push_back(lease.item.sequence);
  }
  EXPECT_THAT(finalists, ElementsAre(1, 2, 3, 3, 3));
  // The database reaches the same conclusion.
  const auto best =
      store_->FindBest({.program = *ir::ParseFunction(testing::kMatmul),
                        .target = TestTarget(),
                        .fingerprint = kFingerprint});
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->record.sequence, 3);
  // So does the next server.
  worker.reset();
  Restart(FakeSearchFactory());
  EXPECT_DOUBLE_EQ(jobs_->Get(id)->best_seconds(), 1.3e-3);
}

// From the first candidate to the last round of finalists, a device gets its
// next work as soon as results allow.
TEST_F(JobsTest, NoStepWaitsForThePoll) {
  search_poll_ = absl::Hours(1);
  Restart(FakeSearchFactory());
  FakeWorker worker(*farm_, "w", Quick);
  const JobSnapshot end = WaitForEnd(*jobs_->Submit(Spec(40)));
  EXPECT_EQ(end.state, JobState::kDone);
  EXPECT_EQ(end.trials_done, 40);
  int finalists = 0;
  for (const farm::Lease& lease : worker.link().leases()) {
    finalists += lease.item.purpose == farm::Purpose::kFinalist;
  }
  EXPECT_GT(finalists, 2);
}

TEST_F(JobsTest, JobsOfOneTaskTakeTurnsAndShareWhatIsKnown) {
  const std::string first = *jobs_->Submit(Spec(30));
  const std::string second = *jobs_->Submit(Spec(30));
  const JobSnapshot waiting =
      WaitFor(second, [](const JobSnapshot& s) { return !s.message.empty(); });
  EXPECT_EQ(waiting.state, JobState::kQueued);
  FakeWorker worker(*farm_, "w", Quick);
  EXPECT_EQ(WaitForEnd(first).trials_done, 30);
  EXPECT_EQ(WaitForEnd(second).trials_done, 30);
  std::set<std::string> candidates;
  for (const database::Record& record : Records()) {
    candidates.insert(record.candidate_id);
  }
  EXPECT_THAT(candidates, SizeIs(60));
}

TEST_F(JobsTest, OneTaskPerDistinctFunctionSharesTheTrials) {
  FakeWorker worker(*farm_, "w", Quick);
  JobSpec spec = Spec(41);
  spec.program = testing::kAddRelu;
  const std::string id = *jobs_->Submit(spec);
  const JobSnapshot end = WaitForEnd(id);
  EXPECT_EQ(end.state, JobState::kDone);
  EXPECT_EQ(end.trials_done, 41);
  ASSERT_THAT(end.tasks, SizeIs(2));
  EXPECT_EQ(end.tasks[0].function, "add");
  EXPECT_EQ(end.tasks[1].function, "relu");
  EXPECT_EQ(end.tasks[0].trials_done + end.tasks[1].trials_done, 41);
  EXPECT_GT(end.tasks[0].trials_done, 0);
  EXPECT_GT(end.tasks[1].trials_done, 0);
}

TEST_F(JobsTest, EndsEarlyWhenTheSpaceIsExhausted) {
  Restart(FakeSearchFactory(/*size=*/7));
  FakeWorker worker(*farm_, "w", Quick);
  const std::string id = *jobs_->Submit(Spec(100));
  const JobSnapshot end = WaitForEnd(id);
  EXPECT_EQ(end.state, JobState::kDone);
  EXPECT_EQ(end.trials_done, 7);
}

TEST_F(JobsTest, FailsWhenNothingVerified) {
  FakeWorker worker(*farm_, "w", [](const farm::Lease&) {
    farm::Measurement measured;
    measured.status = database::Status::kCompileError;
    measured.error = "index 0 of read of A reaches from 1 to 128";
    return measured;
  });
  const std::string id = *jobs_->Submit(Spec(6));
  const JobSnapshot end = WaitForEnd(id);
  EXPECT_EQ(end.state, JobState::kFailed);
  EXPECT_EQ(end.trials_done, 6);
  EXPECT_THAT(end.by_status, ElementsAre(Pair("compile_error", 6)));
  EXPECT_EQ(end.error,
            "no candidate was measured and verified; 6 of 6 failed, the first "
            "one with compile_error: index 0 of read of A reaches from 1 to "
            "128");
}

TEST_F(JobsTest, WaitsForADeviceAndSaysSo) {
  const std::string id = *jobs_->Submit(Spec(3));
  const JobSnapshot waiting = WaitFor(id, [](const JobSnapshot& s) {
    return !s.message.empty() && s.state == JobState::kRunning;
  });
  EXPECT_THAT(waiting.message, HasSubstr("waits for a device"));
  EXPECT_THAT(waiting.message, HasSubstr(TestTarget().Key()));
  FakeWorker worker(*farm_, "w", Quick);
  EXPECT_EQ(WaitForEnd(id).state, JobState::kDone);
}

TEST_F(JobsTest, AJobWithoutADeviceIsCancelledOrRunsOutOfTime) {
  const std::string cancelled = *jobs_->Submit(Spec(3));
  WaitFor(cancelled, [](const JobSnapshot& s) { return !s.message.empty(); });
  EXPECT_EQ(*jobs_->Cancel(cancelled), JobState::kCancelled);
  EXPECT_EQ(WaitForEnd(cancelled).state, JobState::kCancelled);
  JobSpec spec = Spec(3);
  spec.seconds = 0.1;
  const JobSnapshot late = WaitForEnd(*jobs_->Submit(spec));
  EXPECT_EQ(late.state, JobState::kFailed);
  EXPECT_EQ(late.error, "no candidate was measured and verified");
}

TEST_F(JobsTest, CancelledJobStopsAndStaysSo) {
  const std::string running = *jobs_->Submit(Spec(1'000'000));
  const std::string queued = *jobs_->Submit(Spec(10));
  {
    FakeWorker worker(*farm_, "w", Quick);
    WaitFor(running, [](const JobSnapshot& s) { return s.trials_done > 10; });
    EXPECT_EQ(*jobs_->Cancel(queued), JobState::kCancelled);
    EXPECT_EQ(*jobs_->Cancel(running), JobState::kCancelled);
    EXPECT_EQ(WaitForEnd(running).state, JobState::kCancelled);
  }
  EXPECT_EQ(WaitForEnd(queued).state, JobState::kCancelled);
  EXPECT_EQ(store_->GetJob(running)->state, "cancelled");
  EXPECT_EQ(jobs_->Cancel("job-none").status().code(),
            absl::StatusCode::kNotFound);
  Restart(FakeSearchFactory());
  EXPECT_EQ(jobs_->Get(running)->state, JobState::kCancelled);
  EXPECT_GT(jobs_->Get(running)->trials_done, 10);
}

TEST_F(JobsTest, StopsByTime) {
  FakeWorker worker(*farm_, "w", Quick);
  JobSpec spec = Spec(0);
  spec.seconds = 0.3;
  const JobSnapshot end = WaitForEnd(*jobs_->Submit(spec));
  EXPECT_EQ(end.state, JobState::kDone);
  EXPECT_GT(end.trials_done, 0);
}

TEST_F(JobsTest, StopsByPatience) {
  FakeWorker worker(*farm_, "w", Quick);  // the first one is the best
  JobSpec spec = Spec(0);
  spec.patience = 40;
  const JobSnapshot end = WaitForEnd(*jobs_->Submit(spec));
  EXPECT_EQ(end.state, JobState::kDone);
  EXPECT_GE(end.trials_done, 40);
}

TEST_F(JobsTest, ResumesAfterARestartWithoutMeasuringAgain) {
  const std::string id = *jobs_->Submit(Spec(60));
  std::vector<farm::Lease> unanswered;
  {
    int measured = 0;
    FakeWorker worker(
        *farm_, "w",
        [&](const farm::Lease& lease) -> std::optional<farm::Measurement> {
          if (lease.item.purpose == farm::Purpose::kTrial && ++measured > 20) {
            unanswered.push_back(lease);
            return std::nullopt;
          }
          return Quick(lease);
        },
        /*slots=*/3);
    WaitFor(id, [](const JobSnapshot& s) { return s.trials_done >= 20; });
    ASSERT_TRUE(Until([&] { return farm_->Counts(id).leased == 3; }));
  }
  ASSERT_THAT(unanswered, SizeIs(3));
  const auto before = Records();
  std::set<std::string> seen;
  for (const database::Record& record : before) {
    seen.insert(record.candidate_id);
  }
  EXPECT_THAT(seen, SizeIs(20));

  Restart(FakeSearchFactory());
  EXPECT_EQ(jobs_->Get(id)->trials_done, 20);
  // One result of a former lease comes from the worker's spool.
  auto link = std::make_shared<testing::FakeLink>();
  const int64_t session = *farm_->Connect(testing::TestHello("w"), link);
  farm_->OnResult(session, {.lease_id = unanswered[0].lease_id,
                            .attempt = unanswered[0].attempt,
                            .candidate_id = unanswered[0].item.candidate_id,
                            .measurement = Measured(2e-3)});
  WaitFor(id, [](const JobSnapshot& s) { return s.trials_done == 21; });
  EXPECT_THAT(link->acks(), ElementsAre(Pair(unanswered[0].lease_id, false)));
  seen.insert(unanswered[0].item.candidate_id);
  farm_->Disconnect(session);

  FakeWorker worker(*farm_, "w2", Quick);
  const JobSnapshot end = WaitForEnd(id);
  EXPECT_EQ(end.state, JobState::kDone);
  EXPECT_EQ(end.trials_done, 60);
  for (const farm::Lease& lease : worker.link().leases()) {
    EXPECT_FALSE(seen.contains(lease.item.candidate_id));
  }
  std::set<std::string> candidates;
  const auto records = Records();
  for (const database::Record& record : records) {
    candidates.insert(record.candidate_id);
  }
  EXPECT_THAT(records, SizeIs(60));
  EXPECT_THAT(candidates, SizeIs(60));
}

TEST_F(JobsTest, LogsProposalsAndResultsInOrder) {
  FakeWorker worker(*farm_, "w", Quick);
  const std::string id = *jobs_->Submit(Spec(20));
  WaitForEnd(id);
  const auto lines = *store_->ReadJobLog(id);
  ASSERT_GE(lines.size(), 4u);
  EXPECT_THAT(lines.front(), HasSubstr("\"open\""));
  EXPECT_THAT(lines.back(), HasSubstr("\"end\""));
  const auto log = *ReadLog(lines);
  ASSERT_THAT(log.proposals, SizeIs(20));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(log.proposals[i].sequence, i + 1);
    EXPECT_EQ(log.proposals[i].trace, "# candidate " + std::to_string(i));
  }
  const std::vector<std::string> broken = {"{"};
  EXPECT_EQ(ReadLog(broken).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(JobsTest, SavesTheCostModel) {
  FakeWorker worker(*farm_, "w", Quick);
  WaitForEnd(*jobs_->Submit(Spec(5)));
  EXPECT_EQ(*store_->GetBlob("model/" + TestTarget().Key()), "model");
}

// A model that is a list of the jobs whose samples it was trained on.
class ListModel : public testing::FakeModel {
 public:
  // As if it was trained on the job's own results at once.
  explicit ListModel(const std::string& job) : own_(job), jobs_({job}) {}
  absl::StatusOr<std::string> Serialize() const override {
    return absl::StrJoin(jobs_, " ");
  }
  absl::Status Load(std::string_view bytes) override {
    jobs_ = {own_};
    return Merge(bytes);
  }
  absl::Status Merge(std::string_view bytes) override {
    const std::vector<std::string> words = absl::StrSplit(
        absl::string_view(bytes.data(), bytes.size()), ' ', absl::SkipEmpty());
    jobs_.insert(words.begin(), words.end());
    return absl::OkStatus();
  }

 private:
  const std::string own_;
  std::set<std::string> jobs_;
};

TEST_F(JobsTest, JobsOfOneTargetKeepEachOthersCostModel) {
  SearchFactory factory = FakeSearchFactory();
  factory.make_model = [](const JobSpec& spec) {
    return std::make_unique<ListModel>(spec.request_id);
  };
  Restart(std::move(factory));
  JobSpec first = Spec(100), second = Spec(100);
  second.program = testing::kAddRelu;
  const std::string one = *jobs_->Submit(first), other = *jobs_->Submit(second);
  for (const std::string& id : {one, other}) {
    WaitFor(id,
            [](const JobSnapshot& s) { return s.state == JobState::kRunning; });
  }
  FakeWorker worker(*farm_, "w", Quick);
  WaitForEnd(one);
  WaitForEnd(other);
  const std::string stored = *store_->GetBlob("model/" + TestTarget().Key());
  EXPECT_THAT(stored, HasSubstr(first.request_id));
  EXPECT_THAT(stored, HasSubstr(second.request_id));
}

TEST_F(JobsTest, WatchersAreToldOfTheEnd) {
  FakeWorker worker(*farm_, "w", Quick);
  const std::string id = *jobs_->Submit(Spec(200));
  Mutex mutex;
  std::vector<JobSnapshot> told;
  const auto subscription = jobs_->Watch(id, [&](const JobSnapshot& snapshot) {
    MutexLock lock(mutex);
    told.push_back(snapshot);
  });
  ASSERT_TRUE(subscription.ok());
  WaitForEnd(id);
  EXPECT_TRUE(Until([&] {
    MutexLock lock(mutex);
    return !told.empty() && Ended(told.back().state);
  }));
  jobs_->Unwatch(*subscription);
  EXPECT_EQ(told.back().state, JobState::kDone);
  EXPECT_EQ(told.back().trials_done, 200);
  EXPECT_EQ(jobs_->Watch("job-none", [](const JobSnapshot&) {}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(JobsTest, MeasuresByHandBeforeTheQueue) {
  FakeWorker worker(*farm_, "w", Quick);
  Mutex mutex;
  std::vector<database::Record> measured;
  const auto take = [&](const database::Record& record) {
    MutexLock lock(mutex);
    measured.push_back(record);
  };
  const MeasureSpec spec = {
      .program = testing::kMatmul, .trace = "", .target = TestTarget().Key()};
  for (int round = 1; round <= 2; ++round) {
    const auto ticket = jobs_->Measure(spec, take);
    ASSERT_TRUE(ticket.ok()) << ticket.status();
    EXPECT_TRUE(Until([&] {
      MutexLock lock(mutex);
      return static_cast<int>(measured.size()) == round;
    }));
    jobs_->AbandonMeasure(*ticket);
  }
  ASSERT_THAT(measured, SizeIs(2));
  EXPECT_EQ(measured[0].candidate_id, measured[1].candidate_id);
  // The second time adds a measurement to the same record.
  EXPECT_THAT(Records(), SizeIs(1));
  MeasureSpec elsewhere = spec;
  elsewhere.target = "aarch64:cortex-a72";
  EXPECT_EQ(jobs_->Measure(elsewhere, take).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(JobsTest, ListingReadsTheRecordsOfATaskOnceForAllItsJobs) {
  auto flaky = std::make_unique<testing::FlakyStore>(std::move(store_));
  testing::FlakyStore& store = *flaky;
  store_ = std::move(flaky);
  Restart(FakeSearchFactory());
  {
    FakeWorker worker(*farm_, "w", Quick);
    const std::string id = *jobs_->Submit(Spec(20));
    WaitForEnd(id);
    ASSERT_TRUE(Until([&] { return store.GetJob(id)->state == "done"; }));
  }
  // Nothing runs, so that only List queries the store.
  Restart(FakeSearchFactory(), /*start=*/false);
  JobSpec other = Spec();
  other.program = testing::kAddRelu;
  ASSERT_TRUE(jobs_->Submit(other).ok());
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(jobs_->Submit(Spec()).ok());
  store.searches = 0;
  const std::vector<JobSnapshot> all = *jobs_->List();
  EXPECT_EQ(store.searches, 3);  // matmul, add, relu
  ASSERT_THAT(all, SizeIs(42));
  EXPECT_EQ(all[0].trials_done, 20);
  EXPECT_THAT(all[0].by_status, ElementsAre(Pair("ok", 20)));
  EXPECT_EQ(all[1].best_seconds(), 0);
  for (size_t i = 2; i < all.size(); ++i) {
    EXPECT_EQ(all[i].state, JobState::kQueued);
    EXPECT_EQ(all[i].trials_done, 0);
    EXPECT_EQ(all[i].best_seconds(), all[0].best_seconds());
    EXPECT_GT(all[i].best_gflops(), 0);
    EXPECT_EQ(all[i].best_gflops(), all[0].best_gflops());
  }
}

TEST_F(JobsTest, AStoreThatIsBusyAtTheStartFailsNoJob) {
  auto flaky = std::make_unique<testing::FlakyStore>(std::move(store_));
  testing::FlakyStore& store = *flaky;
  store_ = std::move(flaky);
  Restart(FakeSearchFactory());
  const std::string id = *jobs_->Submit(Spec(20));
  {
    std::atomic<int> measured = 0;
    FakeWorker worker(*farm_, "w", [&](const farm::Lease& lease) {
      return ++measured < 8 ? Quick(lease) : std::nullopt;
    });
    WaitFor(id, [](const JobSnapshot& s) { return s.trials_done >= 4; });
  }
  store.log_failures = 3;
  Restart(FakeSearchFactory(), /*start=*/false);
  EXPECT_EQ(jobs_->Get(id)->state, JobState::kQueued);
  EXPECT_THAT(jobs_->Get(id)->message, HasSubstr("the file is busy"));
  jobs_->Start();
  FakeWorker worker(*farm_, "w", Quick);
  const JobSnapshot end = WaitForEnd(id);
  EXPECT_EQ(end.state, JobState::kDone);
  EXPECT_EQ(end.trials_done, 20);
}

TEST_F(JobsTest, ATimeThatIsTooGoodIsHeldAgainstNobody) {
  // The first trial's time is a lie that a roofline cannot detect.
  std::atomic<bool> lied = false;
  FakeWorker worker(*farm_, "w", [&](const farm::Lease& lease) {
    if (lease.item.purpose == farm::Purpose::kTrial && !lied.exchange(true)) {
      return testing::Measured(1e-5);
    }
    return *Quick(lease);
  });
  // Enough trials that leases are granted after the first results.
  WaitForEnd(*jobs_->Submit(Spec(400)));
  int held = 0;
  for (const farm::Lease& lease : worker.link().leases()) {
    if (lease.best_seconds == 0) continue;
    ++held;
    EXPECT_GE(lease.best_seconds, 1e-3);
  }
  EXPECT_GT(held, 0);
}

TEST_F(JobsTest, AJobThatAFullDiskKeepsFromStartingWaitsAlone) {
  const std::string path = ::testing::TempDir() + "tilefarm-full-disk-" +
                           std::to_string(getpid()) + ".db";
  jobs_.reset();
  farm_.reset();
  store_ = *database::Store::Open(path, kReadWrite);
  Restart(FakeSearchFactory(), /*start=*/false);
  auto worker = std::make_unique<FakeWorker>(*farm_, "w", Quick);
  const std::string id = *jobs_->Submit(Spec(5));
  // Writes fail as on a full disk, once the signal is ignored.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit full = before;
  full.rlim_cur = std::filesystem::file_size(path + "-wal");
  setrlimit(RLIMIT_FSIZE, &full);
  jobs_->Start();
  // The conductor continues, and other calls get the lock.
  EXPECT_FALSE(Until(
      [&] {
        const auto all = jobs_->List();
        return !all.ok() || all->front().state != JobState::kQueued;
      },
      absl::Milliseconds(400)));
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(WaitForEnd(id).trials_done, 5);
  worker.reset();
  jobs_.reset();
  farm_.reset();
  store_.reset();
  for (const char* end : {"", "-wal", "-shm", ".lock"}) {
    std::filesystem::remove(path + end);
  }
}

}  // namespace
}  // namespace tilefarm::jobs
