// The whole worker with a simulated farm: candidates that misbehave, streams
// that break, acknowledgements that get lost.
#include "worker/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "tests/worker/fake_farm.h"
#include "worker/cpus.h"
#include "worker/runner_query.h"

namespace tilefarm::worker {
namespace {

using testing::HasSubstr;

// Child processes of this one, including zombies.
std::vector<pid_t> Children() {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "stat");
    std::string name, state;
    pid_t pid = 0, parent = 0;
    if (file >> pid >> name >> state >> parent && parent == getpid()) {
      children.push_back(pid);
    }
  }
  return children;
}

bool IsZombie(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string id, name, state;
  return !(file >> id >> name >> state) || state == "Z";
}

class WorkerTest : public testing::Test {
 protected:
  WorkerTest() {
    signal(SIGPIPE, SIG_IGN);
    char path[] = "/tmp/tilefarm-worker-test-XXXXXX";
    directory_ = mkdtemp(path);
    farm_.Start();
  }
  ~WorkerTest() override {
    worker_.reset();
    farm_.Stop();
    std::filesystem::remove_all(directory_);
  }

  Worker::Options Options() {
    Worker::Options options;
    options.server = farm_.address();
    options.hello.set_name("device");
    options.hello.set_fingerprint("fake");
    options.state_directory = directory_ + "/state";
    options.pipeline.builder_command = {TILEFARM_TEST_FAKE_BUILDER,
                                        TILEFARM_TEST_KERNELS};
    options.pipeline.runner_command = {std::string(TILEFARM_BIN_DIR) +
                                       "/tune-runner"};
    // Two, whatever this machine has: pinning to a missing cpu does nothing.
    options.pipeline.cpus = {0, 1};
    options.pipeline.lock_directory = directory_ + "/locks";
    options.timeouts.reconnect_first = absl::Milliseconds(20);
    options.timeouts.reconnect_last = absl::Milliseconds(100);
    options.timeouts.finish_running = absl::Seconds(2);
    options.timeouts.builder_transfer = absl::Milliseconds(500);
    return options;
  }

  void StartWorker() { StartWorker(Options()); }
  void StartWorker(Worker::Options options) {
    const size_t before = farm_.hellos().size();
    absl::StatusOr<std::unique_ptr<Worker>> worker =
        Worker::Start(std::move(options));
    ASSERT_TRUE(worker.ok()) << worker.status();
    worker_ = *std::move(worker);
    ASSERT_TRUE(farm_.AwaitHellos(before + 1));
    ASSERT_TRUE(farm_.Await([this] { return worker_->connected(); }));
  }

  // `trace` tells the fake builder what to do.
  static v1::Lease Lease(const std::string& id, const std::string& trace) {
    v1::Lease lease;
    lease.set_lease_id(id);
    lease.set_attempt(2);
    lease.set_candidate_id("candidate-" + id);
    lease.set_program("good");
    lease.set_trace(trace);
    lease.set_workload_hash("workload");
    lease.set_target("fake");
    v1::MeasureOptions& options = *lease.mutable_options();
    options.set_build_timeout_ms(10000);
    options.set_run_timeout_ms(10000);
    options.set_min_samples(2);
    options.set_max_samples(3);
    options.set_target_ms(3);
    return lease;
  }

  v1::Measurement Measure(const v1::Lease& lease) {
    farm_.SendLease(lease);
    EXPECT_TRUE(farm_.AwaitResult(lease.lease_id())) << lease.trace();
    return farm_.result(lease.lease_id()).measurement();
  }

  void ExpectStillWorks(const std::string& id = "after") {
    const v1::Measurement m = Measure(Lease(id, "good"));
    EXPECT_EQ(m.status(), "ok") << m.error();
  }

  // Result files of all databases.
  size_t Spooled() const {
    size_t count = 0;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(directory_ + "/state")) {
      count += entry.path().extension() == ".result";
    }
    return count;
  }

  std::string directory_;
  FakeFarm farm_;
  std::unique_ptr<Worker> worker_;
};

// With a GPU: the same pipeline, whose runner has another device.
TEST_F(WorkerTest, MeasuresOnAGpu) {
  Worker::Options options = Options();
  options.pipeline.builder_command.push_back(TILEFARM_TEST_DEVICE_KERNELS);
  options.pipeline.runner_command = {
      "/usr/bin/env", "TILEFARM_CUDA_DRIVER=" TILEFARM_TEST_FAKE_CUDA,
      std::string(TILEFARM_BIN_DIR) + "/tune-runner", "--device", "cuda:0"};
  StartWorker(std::move(options));
  const v1::Measurement good = Measure(Lease("a", "good"));
  EXPECT_EQ(good.status(), "ok") << good.error();
  EXPECT_TRUE(good.verified());
  EXPECT_EQ(good.layout(), "as_stated");
  EXPECT_THAT(good.device_state(), HasSubstr("\"timing\":\"events around "));
  const v1::Measurement fails = Measure(Lease("b", "illegal_address"));
  EXPECT_EQ(fails.status(), "run_error");
  EXPECT_THAT(fails.error(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  EXPECT_EQ(Measure(Lease("c", "wrong")).status(), "wrong_result");
  ExpectStillWorks();
}

TEST_F(WorkerTest, TheTimelineSaysWhatWasDoneWhen) {
  Mutex mutex;
  std::vector<std::string> lines;
  Worker::Options options = Options();
  options.pipeline.on_timeline = [&](const std::string& line) {
    MutexLock lock(mutex);
    lines.push_back(line);
  };
  StartWorker(std::move(options));
  Measure(Lease("a", "good"));
  Measure(Lease("b", "invalid"));
  worker_.reset();
  ASSERT_THAT(lines, testing::SizeIs(2));
  EXPECT_THAT(lines[0],
              testing::MatchesRegex(
                  R"(.*"candidate":"candidate-a","status":"ok".*)"
                  R"("built":.[0-9.]+,[0-9.]+.,"ran":.[0-9.]+,[0-9.]+.,.*)"));
  EXPECT_THAT(lines[1], testing::HasSubstr("\"ran\":null"));
}

TEST_F(WorkerTest, LentCoresAreGivenBackToWhoWaits) {
  StartWorker();
  // Nothing else is ready after this, so builders may use all cores.
  Measure(Lease("a", "good"));
  EXPECT_TRUE(CpuLock::Acquire(directory_ + "/locks", {0, 1}, [] {
                return false;
              }).ok());
  ExpectStillWorks();
}

TEST_F(WorkerTest, MeasuresALease) {
  StartWorker();
  const v1::Measurement m = Measure(Lease("a", "good"));
  EXPECT_EQ(m.status(), "ok") << m.error();
  EXPECT_TRUE(m.verified());
  EXPECT_GE(m.seconds_size(), 2);
  EXPECT_GT(m.median_seconds(), 0);
  EXPECT_EQ(m.compile_seconds(), 0.25);
  EXPECT_EQ(m.code_digest(), "digest");
  EXPECT_EQ(m.fingerprint(), "fake");
  EXPECT_EQ(m.isolation(), RunnersIsolation({TILEFARM_BIN_DIR "/tune-runner"}));
  EXPECT_EQ(m.cores(), 1u);
  EXPECT_THAT(m.device_state(), HasSubstr("\"canary_seconds\":"));
  EXPECT_EQ(farm_.result("a").attempt(), 2u);
  EXPECT_EQ(farm_.result("a").candidate_id(), "candidate-a");
  EXPECT_TRUE(farm_.Await([this] { return Spooled() == 0; }));
}

TEST_F(WorkerTest, SaysHowConstantsWereLaidOut) {
  StartWorker();
  EXPECT_EQ(Measure(Lease("a", "good")).layout(), "as_stated");
  v1::Lease lease = Lease("b", "packs");
  lease.set_program("packs");
  lease.set_workload_hash("workload with constants");
  const v1::Measurement m = Measure(lease);
  EXPECT_EQ(m.status(), "ok") << m.error();
  EXPECT_EQ(m.layout(), "packed");
  // So do its failures: ranks are only compared within one protocol.
  lease.set_lease_id("c");
  lease.set_trace("fail");
  EXPECT_EQ(Measure(lease).layout(), "packed");
}

TEST_F(WorkerTest, EveryFaultIsAResultAndTheWorkerGoesOn) {
  StartWorker();
  struct Case {
    const char* trace;
    const char* status;
    const char* error;
  };
  int number = 0;
  for (const Case& c : std::vector<Case>{
           {"crash", "compile_error", "the builder crashed with SIGSEGV"},
           {"hang", "compile_timeout", "longer than 300ms"},
           {"stall", "compile_timeout", "answer took longer than 500ms"},
           {"garbage", "compile_error", "the builder"},
           {"invalid", "invalid_schedule", "split: does not fit"},
           {"fail", "compile_error", "cannot"},
           {"aborts", "run_error", "crashed with SIGABRT"},
           {"writes_past_end", "run_error", "crashed with SIGSEGV"},
           {"allocates", "run_error", "returned -1"},
           {"exits", "run_error", "exited"},
           {"loops", "run_timeout", "longer than 300 ms"},
           {"loops_ignoring_sigterm", "run_timeout", "longer than 300 ms"},
           {"wrong", "wrong_result", "element 777"},
           {"not_a_number", "wrong_result", "nan"},
       }) {
    v1::Lease lease = Lease(absl::StrCat("fault", ++number), c.trace);
    if (std::string(c.status) == "compile_timeout") {
      lease.mutable_options()->set_build_timeout_ms(300);
    }
    if (std::string(c.status) == "run_timeout") {
      lease.mutable_options()->set_run_timeout_ms(300);
    }
    lease.mutable_options()->set_run_memory_bytes(256 << 20);
    const v1::Measurement m = Measure(lease);
    EXPECT_EQ(m.status(), c.status) << c.trace;
    EXPECT_THAT(m.error(), HasSubstr(c.error)) << c.trace;
    EXPECT_FALSE(m.verified()) << c.trace;
    ExpectStillWorks(absl::StrCat("after", number));
  }
}

TEST_F(WorkerTest, ReferenceThatFailsIsSaid) {
  StartWorker();
  v1::Lease lease = Lease("a", "good");
  lease.set_program("crash");
  lease.set_workload_hash("bad workload");
  const v1::Measurement m = Measure(lease);
  EXPECT_EQ(m.status(), "run_error");
  EXPECT_THAT(m.error(), HasSubstr("reference: crashed with SIGSEGV"));
  ExpectStillWorks();
}

TEST_F(WorkerTest, BuildsAheadWhileOneRuns) {
  StartWorker();
  ASSERT_TRUE(
      farm_.Await([this] { return farm_.last_state().free_slots() == 4; }));
  farm_.SendLease(Lease("loop", "loops"));
  ASSERT_TRUE(farm_.Await(
      [this] { return farm_.phase("loop") == v1::LEASE_PHASE_RUNNING; }));
  for (const char* id : {"b", "c", "d"}) farm_.SendLease(Lease(id, "good"));
  ASSERT_TRUE(farm_.Await([this] {
    return farm_.phase("d") == v1::LEASE_PHASE_BUILT &&
           farm_.last_state().free_slots() == 0;
  }));
  v1::ServerMessage cancel;
  cancel.mutable_cancel()->set_lease_id("loop");
  farm_.Send(cancel);
  for (const char* id : {"b", "c", "d"}) EXPECT_TRUE(farm_.AwaitResult(id));
  EXPECT_EQ(farm_.results(), 3u);
}

TEST_F(WorkerTest, CancelledLeasesHaveNoResult) {
  StartWorker();
  farm_.SendLease(Lease("loop", "loops"));
  farm_.SendLease(Lease("slow", "sleep 200 good"));
  farm_.SendLease(Lease("waiting", "good"));
  ASSERT_TRUE(farm_.Await(
      [this] { return farm_.phase("slow") == v1::LEASE_PHASE_BUILDING; }));
  for (const char* id : {"waiting", "slow", "loop"}) {
    v1::ServerMessage cancel;
    cancel.mutable_cancel()->set_lease_id(id);
    farm_.Send(cancel);
  }
  ASSERT_TRUE(
      farm_.Await([this] { return farm_.last_state().held_size() == 0; }));
  ExpectStillWorks();
  EXPECT_EQ(farm_.results(), 1u);
}

TEST_F(WorkerTest, LostAcknowledgementIsMadeGoodAfterReconnecting) {
  farm_.set_acknowledges(false);
  StartWorker();
  farm_.SendLease(Lease("a", "good"));
  ASSERT_TRUE(farm_.AwaitResult("a"));
  EXPECT_EQ(Spooled(), 1u);
  // Still held, so that no other device measures it.
  EXPECT_TRUE(farm_.Await([this] {
    return farm_.phase("a") == v1::LEASE_PHASE_REPORTED &&
           farm_.last_state().free_slots() == 4;
  }));
  farm_.set_acknowledges(true);
  farm_.Restart();
  EXPECT_TRUE(farm_.AwaitResult("a", 2));
  EXPECT_TRUE(farm_.Await([this] { return Spooled() == 0; }));
  ASSERT_GE(farm_.hellos().size(), 2u);
  EXPECT_EQ(farm_.hellos()[0].boot_id(), farm_.hellos()[1].boot_id());
  ExpectStillWorks();
}

TEST_F(WorkerTest, AMessageThatCannotBeReadIsMadeGoodByReconnecting) {
  StartWorker();
  v1::ServerMessage unreadable;
  // Strings must be UTF-8; otherwise the message is rejected.
  unreadable.mutable_cancel()->set_lease_id("\xff");
  farm_.Send(unreadable);
  ASSERT_TRUE(farm_.AwaitHellos(2));
  ASSERT_TRUE(farm_.Await([this] { return worker_->connected(); }));
  ExpectStillWorks();
}

TEST_F(WorkerTest, LeasesThatNoResultCanNameAreNotTaken) {
  // Each would be in every state that follows, which the server would refuse.
  StartWorker();
  farm_.SendLease(Lease("\x11", "good"));
  farm_.SendLease(Lease(std::string(1000, 'a'), "good"));
  EXPECT_EQ(Measure(Lease("b", "good")).status(), "ok");
  EXPECT_EQ(farm_.results(), 1u);
  EXPECT_EQ(farm_.hellos().size(), 1u);
}

TEST_F(WorkerTest, LeasesOutliveTheStream) {
  StartWorker();
  farm_.SendLease(Lease("slow", "sleep 500 good"));
  ASSERT_TRUE(farm_.Await(
      [this] { return farm_.phase("slow") == v1::LEASE_PHASE_BUILDING; }));
  farm_.Restart();
  EXPECT_TRUE(farm_.AwaitResult("slow"));
  EXPECT_EQ(farm_.result("slow").measurement().status(), "ok");
}

TEST_F(WorkerTest, SpooledResultSurvivesARestartOfTheWorker) {
  farm_.set_acknowledges(false);
  StartWorker();
  farm_.SendLease(Lease("a", "good"));
  ASSERT_TRUE(farm_.AwaitResult("a"));
  worker_.reset();
  EXPECT_EQ(Spooled(), 1u);
  farm_.set_acknowledges(true);
  StartWorker();
  EXPECT_TRUE(farm_.AwaitResult("a", 2));
  EXPECT_NE(farm_.hellos()[0].boot_id(), farm_.hellos()[1].boot_id());
  EXPECT_TRUE(farm_.Await([this] { return Spooled() == 0; }));
}

TEST_F(WorkerTest, ResultsGoToTheirOwnDatabaseAlone) {
  farm_.set_acknowledges(false);
  StartWorker();
  farm_.SendLease(Lease("a", "good"));
  ASSERT_TRUE(farm_.AwaitResult("a"));
  farm_.set_acknowledges(true);
  farm_.set_database_uuid("22222222-bbbb");
  farm_.Restart();
  ASSERT_TRUE(farm_.AwaitHellos(2));
  ExpectStillWorks();
  EXPECT_FALSE(farm_.last_state().held_size() > 1);
  // The lease of ExpectStillWorks leaves when its acknowledgement arrives.
  EXPECT_TRUE(farm_.Await([this] { return Spooled() == 1; }));
  farm_.set_database_uuid("11111111-aaaa");
  farm_.Restart();
  EXPECT_TRUE(farm_.AwaitResult("a", 2));
  EXPECT_TRUE(farm_.Await([this] { return Spooled() == 0; }));
}

TEST_F(WorkerTest, DrainTakesNothingNew) {
  StartWorker();
  v1::ServerMessage drain;
  drain.mutable_drain();
  farm_.Send(drain);
  EXPECT_TRUE(farm_.Await([this] {
    return farm_.last_state().draining() &&
           farm_.last_state().free_slots() == 0;
  }));
}

TEST_F(WorkerTest, ShutdownFinishesWhatRuns) {
  StartWorker();
  farm_.SendLease(Lease("a", "sleep 300 good"));
  ASSERT_TRUE(farm_.Await(
      [this] { return farm_.phase("a") == v1::LEASE_PHASE_BUILDING; }));
  worker_->Shutdown();
  EXPECT_EQ(farm_.result("a").measurement().status(), "ok");
  EXPECT_EQ(Spooled(), 0u);
  worker_.reset();
  EXPECT_THAT(Children(), testing::IsEmpty());
}

TEST_F(WorkerTest, ShutdownLeavesNothingBehind) {
  StartWorker();
  v1::Lease endless = Lease("a", "loops_ignoring_sigterm");
  endless.mutable_options()->set_run_timeout_ms(1000000);
  farm_.SendLease(endless);
  v1::Lease hanging = Lease("b", "hang");
  hanging.mutable_options()->set_build_timeout_ms(1000000);
  farm_.SendLease(hanging);
  farm_.SendLease(Lease("c", "good"));
  ASSERT_TRUE(farm_.Await([this] {
    return farm_.phase("a") == v1::LEASE_PHASE_RUNNING &&
           farm_.phase("b") == v1::LEASE_PHASE_BUILDING;
  }));
  const absl::Time start = absl::Now();
  worker_->Shutdown();
  worker_.reset();
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
  EXPECT_THAT(Children(), testing::IsEmpty());
  EXPECT_EQ(farm_.results(), 0u);
}

TEST_F(WorkerTest, HelpersThatAreKilledAreReplaced) {
  StartWorker();
  ExpectStillWorks("before");
  for (pid_t pid : Children()) kill(pid, SIGKILL);  // runner and builder
  ASSERT_TRUE(farm_.Await([] {
    for (pid_t pid : Children()) {
      if (!IsZombie(pid)) return false;
    }
    return true;
  }));
  // The restart is between two candidates, so neither is affected.
  ExpectStillWorks();
}

TEST_F(WorkerTest, CoresAreFreeForTheMeasurement) {
  // With only one core, builders stop while the kernel runs.
  Worker::Options options = Options();
  options.pipeline.cpus = {options.pipeline.cpus.front()};
  StartWorker(std::move(options));
  v1::Lease building = Lease("b", "sleep 50 good");
  building.mutable_options()->set_build_timeout_ms(400);
  farm_.SendLease(Lease("a", "slow"));
  farm_.SendLease(building);
  ASSERT_TRUE(farm_.AwaitResult("a"));
  ASSERT_TRUE(farm_.AwaitResult("b"));
  EXPECT_EQ(farm_.result("b").measurement().status(), "ok")
      << farm_.result("b").measurement().error();
}

TEST_F(WorkerTest, StateDirectoryIsForOneWorker) {
  StartWorker();
  EXPECT_EQ(Worker::Start(Options()).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(WorkerTest, WaitsForAServerThatIsNotThereYet) {
  Worker::Options options = Options();
  farm_.Stop();
  absl::StatusOr<std::unique_ptr<Worker>> worker =
      Worker::Start(std::move(options));
  ASSERT_TRUE(worker.ok());
  worker_ = *std::move(worker);
  absl::SleepFor(absl::Milliseconds(200));
  EXPECT_FALSE(worker_->connected());
  farm_.Start(farm_.address());
  EXPECT_TRUE(farm_.AwaitHellos(1));
  ExpectStillWorks();
}

}  // namespace
}  // namespace tilefarm::worker
