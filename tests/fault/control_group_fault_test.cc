// Candidates in real control groups: processes that a candidate starts end with
// it, even if runner and worker were killed; limits; the group that a worker
// chooses.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/fault/control_group_fixture.h"
#include "tests/fault/hostile_kernel_fixture.h"
#include "tests/support/process.h"
#include "tests/worker/fake_farm.h"
#include "tests/worker/programs.h"

namespace tilefarm::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// --- A group without a runner: this process has no other threads ---

class BareGroupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (place_.path().empty()) GTEST_SKIP() << place_.why_not();
  }
  std::unique_ptr<ControlGroup> Make(const GroupLimits& limits = {}) {
    std::string error;
    auto group = ControlGroup::Make(place_.path(), limits, &error);
    EXPECT_NE(group, nullptr) << error;
    return group;
  }
  // A child of this process that runs `body` in the group.
  static pid_t Start(ControlGroup& group, const std::function<void()>& body) {
    bool joined = false;
    const pid_t child = group.Fork(&joined);
    if (child != 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (joined) body();
    _exit(1);
  }
  static void Sleep() {
    for (;;) pause();
  }

  TestGroup place_;
};

TEST_F(BareGroupTest, AChildIsInItFromTheStartAndEndsWithIt) {
  const auto group = Make();
  ASSERT_NE(group, nullptr);
  EXPECT_FALSE(group->IsPopulated());
  EXPECT_TRUE(group->End(0));
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  const pid_t child = Start(*group, [&] {
    const std::string own = GroupOf("self");
    if (write(fds[1], own.data(), own.size()) < 0) _exit(2);
    Sleep();
  });
  ASSERT_GT(child, 0);
  char text[512] = {};
  ASSERT_GT(read(fds[0], text, sizeof text - 1), 0);
  close(fds[0]);
  close(fds[1]);
  EXPECT_THAT(std::string(text), ::testing::EndsWith("/candidate-1"));
  EXPECT_TRUE(group->path().ends_with(text)) << text;
  EXPECT_TRUE(group->IsPopulated());
  EXPECT_TRUE(group->End(10000));
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_FALSE(group->IsPopulated());
}

// The C library's data about a process after fork is valid for this one, too.
TEST_F(BareGroupTest, AChildIsAProcessLikeAnyOther) {
  const auto group = Make();
  ASSERT_NE(group, nullptr);
  const pid_t child = Start(*group, [] {
    int result = 0;
    std::thread([&] { result = 1; }).join();
    // Uses the thread id that the C library stores.
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    const int error =
        pthread_getaffinity_np(pthread_self(), sizeof cpus, &cpus);
    clockid_t clock;
    timespec time;
    const bool has_clock = pthread_getcpuclockid(pthread_self(), &clock) == 0 &&
                           clock_gettime(clock, &time) == 0;
    if (result == 1 && error == 0 && has_clock) raise(SIGUSR1);
    _exit(2);
  });
  ASSERT_GT(child, 0);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1) << status;
}

// Containers and emulators may not have clone3.
TEST_F(BareGroupTest, WithoutTheCallThatForksIntoAGroupAChildMovesThere) {
  const auto group = Make();
  ASSERT_NE(group, nullptr);
  const pid_t process = fork();
  if (process == 0) {
    sock_filter refuse[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program = {std::size(refuse), refuse};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
      _exit(77);
    }
    const pid_t child = Start(*group, [&] {
      _exit(group->path().ends_with(GroupOf("self")) ? 42 : 1);
    });
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) _exit(2);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 3);
  }
  int status = 0;
  ASSERT_EQ(waitpid(process, &status, 0), process);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no system call filter here";
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST_F(BareGroupTest, GroupsInItAndTheirProcessesGoWithIt) {
  std::string inner;
  {
    const auto group = Make();
    ASSERT_NE(group, nullptr);
    inner = group->path() + "/inner";
    const pid_t child = Start(*group, [&] {
      mkdir(inner.c_str(), 0755);
      std::ofstream(inner + "/cgroup.procs") << "0";
      Sleep();
    });
    ASSERT_GT(child, 0);
    ASSERT_TRUE(Until([&] {
      return TextOf(inner + "/cgroup.procs") == std::to_string(child) + "\n";
    }));
    // The destructor ends the processes without an explicit call.
    EXPECT_TRUE(group->IsPopulated());
  }
  EXPECT_FALSE(std::filesystem::exists(inner));
  EXPECT_THAT(place_.Candidates(), IsEmpty());
}

TEST_F(BareGroupTest, AGroupThatIsTakenIsNotTheNext) {
  const auto first = Make();
  const auto second = Make();
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_TRUE(first->path().ends_with("/candidate-1"));
  EXPECT_TRUE(second->path().ends_with("/candidate-2"));
}

TEST_F(BareGroupTest, ALimitThatCannotBeSetIsAnError) {
  std::string error;
  // No controller is enabled for groups in it.
  EXPECT_EQ(ControlGroup::Make(place_.path(), {uint64_t{1} << 30, 0}, &error),
            nullptr);
  EXPECT_THAT(error, HasSubstr("/memory.max: No such file or directory"));
  EXPECT_EQ(ControlGroup::Make(place_.path(), {0, 10}, &error), nullptr);
  EXPECT_THAT(error, HasSubstr("/pids.max: No such file or directory"));
  EXPECT_THAT(place_.Candidates(), IsEmpty());
}

// --- The real tune-runner ---

class GroupedRunnerTest : public HostileKernelFixture {
 protected:
  explicit GroupedRunnerTest(const std::string& at_most = "rlimits+cgroup")
      : GroupedRunnerTest(at_most, std::make_unique<TestGroup>()) {}

  void SetUp() override {
    if (place_->path().empty()) GTEST_SKIP() << place_->why_not();
    HostileKernelFixture::SetUp();
  }
  void ExpectNothingLeft(const std::string& act) {
    EXPECT_THAT(place_->Candidates(), IsEmpty()) << act;
    ExpectUnharmed(act);
  }
  // Processes of the group whose parents have gone. The candidate leads its
  // session, and a process on its way to become a daemon leads one or has a
  // parent in the group.
  int64_t CountDaemons() const {
    const std::vector<pid_t> all = place_->Processes();
    return std::ranges::count_if(all, [&](pid_t pid) {
      const pid_t parent = ParentOf(pid);
      return parent > 0 && std::ranges::count(all, parent) == 0 &&
             getsid(pid) != pid;
    });
  }

  const std::unique_ptr<TestGroup> place_;

 private:
  // Create the group before the runner.
  GroupedRunnerTest(const std::string& at_most,
                    std::unique_ptr<TestGroup> place)
      : HostileKernelFixture({"--at-most", at_most, "--cgroup", place->path()}),
        place_(std::move(place)) {}
};

TEST_F(GroupedRunnerTest, CandidatesAreMeasuredInGroupsAndRecordsSaySo) {
  EXPECT_EQ(client_.isolation(), "rlimits+cgroup");
  const RunReply reply = Run("good", object_);
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
  EXPECT_EQ(reply.isolation, "rlimits+cgroup");
  ExpectNothingLeft("good");
}

TEST_F(GroupedRunnerTest, DaemonsThatACandidateLeavesEndWithIt) {
  EXPECT_EQ(RunAct("leaves_fleeing_daemons").error, "the function returned 66");
  ExpectNothingLeft("leaves_fleeing_daemons");
  EXPECT_EQ(RunAct("leaves_daemons_and_hangs", 500).status,
            RunStatus::kRunTimeout);
  ExpectNothingLeft("leaves_daemons_and_hangs");
  EXPECT_EQ(RunAct("fork_bombs", 500).status, RunStatus::kRunTimeout);
  ExpectNothingLeft("fork_bombs");
  EXPECT_EQ(RunAct("exits_itself").error,
            "exited with status 0 in the first run");
  ExpectNothingLeft("exits_itself");
}

TEST_F(GroupedRunnerTest, WhatAKilledRunnerLeavesIsEndedByTheNext) {
  std::vector<pid_t> left;
  std::thread kills([&] {
    EXPECT_TRUE(Until([&] { return CountDaemons() == 4; }));
    kill(runner_, SIGKILL);
    EXPECT_TRUE(Until([&] {
      left = place_->Processes();
      return left.size() == 4;
    }));
  });
  ExpectRunnerGone("kernel_leaves_daemons_and_hangs");
  kills.join();
  ASSERT_EQ(left.size(), 4u);
  // Only the group can find them.
  EXPECT_EQ(place_->Processes(), left);
  ASSERT_NO_FATAL_FAILURE(LoadWorkload());
  EXPECT_THAT(place_->Candidates(), IsEmpty());
  EXPECT_EQ(Run("good", object_).status, RunStatus::kOk);
  EXPECT_THAT(place_->Candidates(), IsEmpty());
}

TEST_F(GroupedRunnerTest, WhatNothingEndsKeepsItsGroupAndOthersAreUsed) {
  Freezer freezer;
  if (!freezer.there()) GTEST_SKIP() << "no freezer of cgroup v1 to write to";
  bool frozen = false;
  std::thread freeze([&] {
    std::vector<pid_t> processes;
    Until([&] { return (processes = place_->Processes()).size() == 1; });
    frozen = processes.size() == 1 && freezer.Freeze(processes[0]);
  });
  EXPECT_THAT(RunAct("sleeps_long", /*timeout_ms=*/1500).error,
              HasSubstr("does not end when it is killed"));
  freeze.join();
  ASSERT_TRUE(frozen);
  // The runner has gone, and the next one works despite the remains.
  ExpectRunnerGone("good");
  ASSERT_NO_FATAL_FAILURE(LoadWorkload());
  EXPECT_EQ(client_.isolation(), "rlimits+cgroup");
  EXPECT_EQ(Run("good", object_).status, RunStatus::kOk);
  EXPECT_THAT(place_->Candidates(), SizeIs(1));
}

TEST_F(GroupedRunnerTest, ARunnerWithoutItsGroupMeasuresNothing) {
  // Another process removes the group that the runner was given.
  ASSERT_EQ(rmdir(place_->path().c_str()), 0) << std::strerror(errno);
  const RunReply reply = Run("good", object_);
  EXPECT_EQ(reply.status, RunStatus::kRunError);
  EXPECT_THAT(reply.error,
              HasSubstr("cannot be confined as this runner announces ("));
  EXPECT_THAT(reply.error, HasSubstr("No such file or directory"));
  ASSERT_EQ(mkdir(place_->path().c_str(), 0755), 0);
  EXPECT_EQ(Run("good", object_).status, RunStatus::kOk);
}

// With all parts of isolation.
class WholeSandboxTest : public GroupedRunnerTest {
 protected:
  WholeSandboxTest() : GroupedRunnerTest("seccomp+netns+cgroup+memory+pids") {}
};

TEST_F(WholeSandboxTest, AGroupAddsToWhatThereIs) {
  Isolation without;
  ASSERT_TRUE(ParseIsolation(RunnersIsolation({kRunnerProgram}), &without));
  Isolation with = without;
  with.cgroup = true;
  EXPECT_EQ(client_.isolation(), with.Text());
  if (HasFilter()) {
    EXPECT_THAT(RunAct("forks_once").error, HasSubstr("not allowed (clone)"));
    ExpectNothingLeft("forks_once");
  }
  EXPECT_EQ(RunAct("hangs_without_signals", 200).status,
            RunStatus::kRunTimeout);
  ExpectNothingLeft("hangs_without_signals");
}

class LimitedGroupTest : public GroupedRunnerTest {
 protected:
  LimitedGroupTest() : GroupedRunnerTest("rlimits+cgroup+memory+pids") {}
  bool memory_ = place_->Enable("memory");
  bool pids_ = place_->Enable("pids");
};

TEST_F(LimitedGroupTest, MemoryOfAllProcessesTogetherIsLimited) {
  if (!memory_) GTEST_SKIP() << "no memory controller for " << place_->path();
  EXPECT_THAT(client_.isolation(), HasSubstr("rlimits+cgroup+memory"));
  const RunReply reply = RunAct("allocates_in_children");
  EXPECT_EQ(reply.status, RunStatus::kRunError);
  EXPECT_THAT(reply.error,
              ::testing::MatchesRegex("was killed since it needed more memory "
                                      "than its [0-9]+ MiB in the first run"));
  ExpectNothingLeft("allocates_in_children");
  // A single process reaches its own limit first, which does not kill it.
  EXPECT_EQ(RunAct("allocates_without_end").error, "the function returned 12");
  ExpectNothingLeft("allocates_without_end");
}

TEST_F(LimitedGroupTest, ProcessesAreCounted) {
  if (!pids_) GTEST_SKIP() << "no pids controller for " << place_->path();
  EXPECT_THAT(client_.isolation(), ::testing::EndsWith("+pids"));
  EXPECT_THAT(RunAct("fork_bombs").error,
              ::testing::MatchesRegex(
                  "the function returned 11, after [0-9]+ processes "
                  "or threads beyond the [0-9]+ that it may have "
                  "were refused"));
  ExpectNothingLeft("fork_bombs");
}

TEST(RunnerGroupTest, AGroupThatCannotBeUsedIsNotAnnounced) {
  const std::string without = RunnersIsolation({kRunnerProgram});
  EXPECT_THAT(without, ::testing::Not(HasSubstr("cgroup")));
  for (const char* place : {"/tmp", "/no/such/directory"}) {
    EXPECT_EQ(RunnersIsolation({kRunnerProgram, "--cgroup", place}), without);
  }
  EXPECT_EQ(AskRunner({kRunnerProgram, "--cgroup", "relative"}, "--isolation"),
            "");
}

// --- The real rpc-worker, with a farm that the test simulates ---

class GroupedWorkerTest : public ::testing::Test {
 protected:
  using WorkerProcess = tilefarm::testing::Process;

  GroupedWorkerTest() {
    signal(SIGPIPE, SIG_IGN);
    farm_.Start();
  }
  ~GroupedWorkerTest() override {
    worker_.reset();
    farm_.Stop();
  }
  void SetUp() override {
    if (place_.path().empty()) GTEST_SKIP() << place_.why_not();
  }

  std::vector<std::string> Command(const std::string& name,
                                   std::vector<std::string> options) const {
    options.insert(
        options.begin(),
        {std::string(TILEFARM_BIN_DIR) + "/rpc-worker", "--server",
         farm_.address(), "--name", name, "--builders", "1", "--state-dir",
         directory_.File(name), "--lock-dir", directory_.File("locks")});
    return options;
  }
  // A directory where every candidate except those of the first workload leaves
  // daemons.
  std::vector<std::string> Daemons() const {
    return {"--cgroup", place_.path(), "--runner-command",
            absl::StrCat(TILEFARM_TEST_MEDDLING_RUNNER, " daemons ",
                         kRunnerProgram, " ", TILEFARM_TEST_HOSTILE_KERNELS)};
  }
  void StartWorker(std::vector<std::string> command) {
    const size_t before = farm_.hellos().size();
    worker_ = WorkerProcess::Spawn(std::move(command));
    ASSERT_NE(worker_, nullptr);
    ASSERT_TRUE(farm_.AwaitHellos(before + 1)) << worker_->errors();
    ASSERT_TRUE(
        farm_.Await([this] { return farm_.last_state().free_slots() > 0; }));
  }
  // A command that a shell starts in that group.
  std::vector<std::string> In(const std::string& group,
                              const std::vector<std::string>& command) const {
    std::vector<std::string> shell = {
        "/bin/sh", "-c",
        absl::StrCat("echo 0 > ", group, "/cgroup.procs && exec \"$@\""), "sh"};
    shell.insert(shell.end(), command.begin(), command.end());
    return shell;
  }
  v1::Lease Lease(const std::string& id, const std::string& workload) const {
    v1::Lease lease;
    lease.set_lease_id(id);
    lease.set_attempt(1);
    lease.set_program(kMatmulRelu);
    lease.set_trace(kMatmulReluTrace);
    lease.set_workload_hash(workload);
    lease.set_target("host,cores=1");
    lease.mutable_options()->set_run_timeout_ms(60000);
    return lease;
  }
  std::string Isolation(const std::string& lease_id) {
    return farm_.result(lease_id).measurement().isolation();
  }
  // Has a candidate leave four daemons and hang.
  void LeaveDaemons(const std::string& lease_id) {
    farm_.SendLease(Lease(lease_id + "-good", "canary"));
    ASSERT_TRUE(farm_.AwaitResult(lease_id + "-good")) << worker_->errors();
    EXPECT_EQ(farm_.result(lease_id + "-good").measurement().status(), "ok");
    EXPECT_THAT(Isolation(lease_id + "-good"),
                ::testing::StartsWith("rlimits+cgroup"));
    farm_.SendLease(Lease(lease_id, "harm"));
    ASSERT_TRUE(Until([&] { return place_.Processes().size() == 5; }));
  }
  void ExpectRefused(const std::vector<std::string>& options, int exit_code,
                     const std::string& why) {
    const auto result =
        tilefarm::testing::RunCommand(Command("refused", options));
    EXPECT_EQ(result.exit_code, exit_code) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr(why));
  }

  TestGroup place_;
  tilefarm::testing::TempDir directory_;
  FakeFarm farm_;
  std::unique_ptr<WorkerProcess> worker_;
};

TEST_F(GroupedWorkerTest, WhatAKilledWorkersCandidateLeftEndsAtTheNextStart) {
  ASSERT_NO_FATAL_FAILURE(StartWorker(Command("w", Daemons())));
  EXPECT_THAT(farm_.hellos()[0].device().isolation(),
              ::testing::StartsWith("rlimits+cgroup"));
  ASSERT_NO_FATAL_FAILURE(LeaveDaemons("first"));
  worker_->Kill(SIGKILL);
  EXPECT_EQ(worker_->Wait(), -SIGKILL);
  // Runner and candidate end with it; the daemons do not.
  ASSERT_TRUE(Until([&] { return place_.Processes().size() == 4; }));
  for (const pid_t pid : place_.Processes()) EXPECT_EQ(kill(pid, 0), 0);
  ASSERT_NO_FATAL_FAILURE(StartWorker(Command("w", Daemons())));
  EXPECT_THAT(place_.Candidates(), IsEmpty());
  farm_.SendLease(Lease("second", "canary"));
  ASSERT_TRUE(farm_.AwaitResult("second"));
  EXPECT_EQ(farm_.result("second").measurement().status(), "ok");
}

TEST_F(GroupedWorkerTest, AWorkerThatIsStoppedLeavesNothing) {
  std::vector<std::string> options = Daemons();
  options.insert(options.end(), {"--timeout", "finish_running=100ms"});
  ASSERT_NO_FATAL_FAILURE(StartWorker(Command("w", options)));
  ASSERT_NO_FATAL_FAILURE(LeaveDaemons("first"));
  worker_->Kill(SIGTERM);
  EXPECT_EQ(worker_->Wait(), 0) << worker_->errors();
  EXPECT_THAT(place_.Candidates(), IsEmpty());
}

TEST_F(GroupedWorkerTest, ADelegatedGroupIsTakenByItself) {
  if (setxattr(place_.path().c_str(), "user.delegate", "1", 1, 0) != 0) {
    GTEST_SKIP() << "no attributes on groups: " << std::strerror(errno);
  }
  ASSERT_NO_FATAL_FAILURE(StartWorker(In(place_.path(), Command("w", {}))));
  // It moved to a subgroup together with its helpers.
  EXPECT_EQ(TextOf(place_.path() + "/cgroup.procs"), "");
  EXPECT_THAT(GroupOf(std::to_string(worker_->pid())),
              ::testing::EndsWith("/worker"));
  farm_.SendLease(Lease("a", "canary"));
  ASSERT_TRUE(farm_.AwaitResult("a"));
  EXPECT_EQ(farm_.result("a").measurement().status(), "ok");
  EXPECT_THAT(Isolation("a"), HasSubstr("+cgroup"));
  EXPECT_EQ(Isolation("a"), farm_.hellos()[0].device().isolation());
  std::istringstream own(TextOf(place_.path() + "/worker/cgroup.procs"));
  size_t processes = 0;
  for (pid_t pid; own >> pid;) ++processes;
  EXPECT_GE(processes, 3u);
  // Sets the limits that the machine supports and reports the others.
  const GroupControllers enabled = EnabledControllers(place_.path());
  EXPECT_EQ(Isolation("a").find("+memory") != std::string::npos,
            enabled.memory);
  EXPECT_EQ(Isolation("a").find("+pids") != std::string::npos, enabled.pids);
  EXPECT_EQ(worker_->errors().find("candidates' groups do not limit") !=
                std::string::npos,
            !enabled.memory || !enabled.pids)
      << worker_->errors();
}

TEST_F(GroupedWorkerTest,
       AGroupWithOthersInItLimitsNothingAndIsNotTheirsAlone) {
  if (setxattr(place_.path().c_str(), "user.delegate", "1", 1, 0) != 0) {
    GTEST_SKIP() << "no attributes on groups: " << std::strerror(errno);
  }
  const std::string controllers = TextOf(place_.path() + "/cgroup.controllers");
  const auto other =
      WorkerProcess::Spawn(In(place_.path(), {"/bin/sleep", "1000"}));
  ASSERT_TRUE(
      Until([&] { return TextOf(place_.path() + "/cgroup.procs") != ""; }));
  ASSERT_NO_FATAL_FAILURE(StartWorker(In(place_.path(), Command("w", {}))));
  EXPECT_THAT(farm_.hellos()[0].device().isolation(),
              ::testing::EndsWith("+cgroup"));
  EXPECT_EQ(TextOf(place_.path() + "/cgroup.procs"),
            absl::StrCat(other->pid(), "\n"));
  if (controllers.find("pids") != std::string::npos) {
    EXPECT_THAT(
        worker_->errors(),
        HasSubstr(absl::StrCat("pids: other processes are in ", place_.path(),
                               ": ", other->pid(), " (sleep)")));
  }
  // If the group is named explicitly, this is an error.
  worker_->Kill(SIGTERM);
  EXPECT_EQ(worker_->Wait(), 0);
  ExpectRefused({"--cgroup", place_.path()}, 1,
                absl::StrCat("other processes are in it: ", other->pid()));
}

TEST_F(GroupedWorkerTest, WhatIsNotDelegatedIsLeftAlone) {
  ASSERT_NO_FATAL_FAILURE(StartWorker(In(place_.path(), Command("w", {}))));
  EXPECT_EQ(TextOf(place_.path() + "/cgroup.procs"),
            absl::StrCat(worker_->pid(), "\n"));
  EXPECT_THAT(farm_.hellos()[0].device().isolation(),
              ::testing::Not(HasSubstr("cgroup")));
  EXPECT_THAT(worker_->errors(), HasSubstr("is not delegated to this worker"));
  // The group in which the test's processes are must become empty.
  worker_->Kill(SIGTERM);
  EXPECT_EQ(worker_->Wait(), 0);
}

TEST_F(GroupedWorkerTest, ANamedGroupThatCannotBeUsedIsRefused) {
  ExpectRefused({"--cgroup", directory_.path()}, 2, "no cgroup v2 hierarchy");
  ExpectRefused({"--cgroup", "sometimes"}, 2, "neither auto, off nor");
  ExpectRefused({"--cgroup", place_.path(), "--runner-command",
                 absl::StrCat("env -u TUNE_RUNNER_CGROUP ", kRunnerProgram)},
                1, "the runner does not use");
  ASSERT_NO_FATAL_FAILURE(
      StartWorker(Command("w", {"--cgroup", place_.path()})));
  ExpectRefused({"--cgroup", place_.path()}, 1,
                "is used by another rpc-worker");
  // It reports this before it starts.
  const auto check = tilefarm::testing::RunCommand(
      Command("w", {"--cgroup", directory_.path(), "--check-config"}));
  EXPECT_EQ(check.exit_code, 2);
  EXPECT_THAT(check.errors, HasSubstr("no cgroup v2 hierarchy"));
}

TEST_F(GroupedWorkerTest, OffIsOffWhateverTheEnvironmentSays) {
  worker_ = WorkerProcess::Spawn(Command("w", {"--cgroup", "off"}),
                                 {"TUNE_RUNNER_CGROUP=" + place_.path()});
  ASSERT_TRUE(farm_.AwaitHellos(1));
  EXPECT_THAT(farm_.hellos()[0].device().isolation(),
              ::testing::Not(HasSubstr("cgroup")));
  EXPECT_THAT(worker_->errors(), ::testing::Not(HasSubstr("control group")));
}

}  // namespace
}  // namespace tilefarm::worker
