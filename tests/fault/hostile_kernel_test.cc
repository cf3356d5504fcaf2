// Hostile kernels against the real tune-runner: each one affects only itself.
#include <algorithm>
#include <cstdlib>
#include <thread>

#include "tests/fault/hostile_kernel_fixture.h"

namespace tilefarm::worker {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::MatchesRegex;

class HostileKernelTest : public HostileKernelFixture {
 protected:
  // The filter refuses the act, whatever it is.
  void ExpectRefused(const std::string& act, const std::string& call) {
    if (!HasFilter()) GTEST_SKIP() << "no system call filter here";
    const RunReply reply = RunAct(act);
    EXPECT_EQ(reply.status, RunStatus::kRunError) << act;
    EXPECT_EQ(reply.error,
              "the kernel made a system call that is not allowed (" + call +
                  "), in the first run");
    EXPECT_EQ(reply.isolation, client_.isolation());
    ExpectUnharmed(act);
  }

  // The system rejects the act, or it ends by itself.
  void ExpectError(const std::string& act, const std::string& pattern) {
    const RunReply reply = RunAct(act);
    EXPECT_EQ(reply.status, RunStatus::kRunError) << act;
    EXPECT_THAT(reply.error, MatchesRegex(pattern)) << act;
    ExpectUnharmed(act);
  }

  void ExpectHarmless(const std::string& act) {
    const RunReply reply = RunAct(act);
    EXPECT_EQ(reply.status, RunStatus::kOk) << act << ": " << reply.error;
    ExpectUnharmed(act);
  }
};

// --- Processes ---

TEST_F(HostileKernelTest, KernelThatForks) {
  ExpectRefused("forks_once", "clone");
}
TEST_F(HostileKernelTest, ForkBomb) { ExpectRefused("fork_bombs", "clone"); }
TEST_F(HostileKernelTest, KernelThatForksByACallThatCannotBeLookedInto) {
  if (!HasFilter()) GTEST_SKIP() << "no system call filter here";
  ExpectError("forks_by_clone3", "the function returned 38");  // ENOSYS
}
TEST_F(HostileKernelTest, KernelThatExecutesAProgram) {
  ExpectRefused("executes", "execve");
}
TEST_F(HostileKernelTest, KernelThatTraces) {
  ExpectRefused("traces", "ptrace");
}
TEST_F(HostileKernelTest, KernelThatSignalsOtherProcesses) {
  ExpectRefused("signals_others", "kill");
  ExpectRefused("signals_group", "kill");
  ExpectRefused("signals_thread", "tgkill");
}

// --- Memory ---

TEST_F(HostileKernelTest, AllocationOf100Gib) {
  ExpectError("allocates_100_gib", "the function returned 12");  // ENOMEM
}
TEST_F(HostileKernelTest, AllocationWithoutEnd) {
  ExpectError("allocates_without_end",
              "the function returned 12|crashed with SIGKILL in the first run");
}
TEST_F(HostileKernelTest, KernelThatMakesMachineCode) {
  ExpectRefused("maps_executable", "mmap");
  ExpectRefused("makes_executable", "mprotect");
}

// --- Files and the network ---

TEST_F(HostileKernelTest, KernelThatOpensAFile) {
  ExpectRefused("reads_file", "openat");
  ExpectRefused("creates_file", "openat");
  ExpectRefused("creates_file_here", "openat");
}
TEST_F(HostileKernelTest, KernelThatOpensASocket) {
  ExpectRefused("opens_socket", "socket");
}
TEST_F(HostileKernelTest, KernelThatConnects) {
  ExpectRefused("connects", "socket");
}
TEST_F(HostileKernelTest, KernelThatUsesUpFileDescriptors) {
  ExpectRefused("uses_up_descriptors", "dup");
}
TEST_F(HostileKernelTest, NoFileOfTheRunnersIsOpenInAKernel) {
  ExpectHarmless("finds_descriptors");
}
// With a worker that got its token in the environment.
class SecretiveKernelTest : public HostileKernelTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(setenv("TUNE_TOKEN", "tilefarm_secret", 1), 0);
    ASSERT_NO_FATAL_FAILURE(HostileKernelTest::SetUp());
  }
  void TearDown() override { unsetenv("TUNE_TOKEN"); }
};
TEST_F(SecretiveKernelTest, NoSecretOfTheWorkersIsInAKernelsEnvironment) {
  ExpectHarmless("finds_secrets");
  const std::string environment =
      ReadWhole("/proc/" + std::to_string(runner_) + "/environ");
  EXPECT_THAT(environment, HasSubstr("PATH="));
  EXPECT_THAT(environment, testing::Not(HasSubstr("tilefarm_secret")));
}
TEST_F(HostileKernelTest, KernelThatPrintsWithoutEnd) {
  ExpectHarmless("prints_a_lot");
}

// --- The machine ---

TEST_F(HostileKernelTest, KernelThatChangesPriorities) {
  ExpectRefused("changes_priority", "setpriority");
}
TEST_F(HostileKernelTest, KernelThatMovesOtherProcesses) {
  if (!HasFilter()) GTEST_SKIP() << "no system call filter here";
  ExpectError("moves_others", "the function returned 1");  // EPERM
}
TEST_F(HostileKernelTest, TheFilterCannotBeTurnedOff) {
  ExpectRefused("leaves_handler", "rt_sigaction");
}
// Without the handler that records the system call.
TEST_F(HostileKernelTest, ARefusedCallIsTheEndWithSignalsBlockedToo) {
  if (!HasFilter()) GTEST_SKIP() << "no system call filter here";
  ExpectError("blocks_and_opens_socket",
              "the kernel made a system call that is not allowed, in the first "
              "run");
}

// --- Ends ---

TEST_F(HostileKernelTest, HungKernelThatIgnoresSignals) {
  for (const char* act : {"hangs_without_signals", "sleeps_long"}) {
    const RunReply reply = RunAct(act, /*timeout_ms=*/200);
    EXPECT_EQ(reply.status, RunStatus::kRunTimeout) << act;
    EXPECT_THAT(reply.error, HasSubstr("longer than 200 ms")) << act;
    EXPECT_LT(reply.child_seconds, 20) << act;
    ExpectUnharmed(act);
  }
}
TEST_F(HostileKernelTest, KernelThatStopsItself) {
  const RunReply reply = RunAct("stops_itself", /*timeout_ms=*/200);
  EXPECT_EQ(reply.status, RunStatus::kRunTimeout);
  EXPECT_LT(reply.child_seconds, 20);
  ExpectUnharmed("stops_itself");
}
TEST_F(HostileKernelTest, KernelThatExits) {
  ExpectError("exits_itself", "exited with status 0 in the first run");
  ExpectError("exits_as_if_done", "returned in the first run");
}
TEST_F(HostileKernelTest, KernelThatAborts) {
  ExpectError("aborts_itself", "crashed with SIGABRT in the first run");
}
TEST_F(HostileKernelTest, KernelsThatCrash) {
  ExpectError("raises_sigbus", "crashed with SIGBUS in the first run");
  ExpectError("raises_sigfpe", "crashed with SIGFPE in the first run");
  ExpectError("traps", "crashed with SIG(ILL|TRAP) in the first run");
  ExpectError("writes_to_nowhere", "crashed with SIGSEGV in the first run");
  ExpectError("overflows_stack", "crashed with SIG(SEGV|BUS) in the first run");
}

TEST_F(HostileKernelTest, ARunnerWhoseChildNothingEndsIsReplaced) {
  Freezer freezer;
  if (!freezer.there()) GTEST_SKIP() << "no freezer of cgroup v1 to write to";
  bool frozen = false;
  std::thread freeze([&] {
    std::vector<pid_t> children;
    for (int i = 0; i < 500 && children.empty(); ++i) {
      usleep(10000);
      children = ChildrenOf(runner_);
    }
    frozen = children.size() == 1 && freezer.Freeze(children[0]);
  });
  const RunReply reply = RunAct("sleeps_long", /*timeout_ms=*/1500);
  freeze.join();
  ASSERT_TRUE(frozen);
  EXPECT_EQ(reply.status, RunStatus::kRunError);
  EXPECT_THAT(reply.error, HasSubstr("does not end when it is killed"));
  EXPECT_LT(reply.child_seconds, 30);
  // The runner has gone, and the next one works despite the remains.
  ExpectRunnerGone("good");
  ASSERT_NO_FATAL_FAILURE(LoadWorkload());
  EXPECT_EQ(Run("good", object_).status, RunStatus::kOk);
}

// --- Memory shared with the runner ---

class HostileReportTest : public HostileKernelTest {
 protected:
  const std::string finder_ = WithConstructor("finds_shared");
  static bool IsText(const std::string& text) {
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return c >= ' ' && c <= '~'; });
  }
};

TEST_F(HostileReportTest, KernelsThatWriteOverTheirReport) {
  if (!HasFilter()) GTEST_SKIP() << "the report is not found without /proc";
  for (const char* symbol :
       {"spoils_report_done", "spoils_report_failed", "spoils_report_nowhere",
        "spoils_report_done_with_text"}) {
    const RunReply reply = Run(symbol, finder_);
    EXPECT_EQ(reply.status, RunStatus::kRunError) << symbol;
    EXPECT_FALSE(reply.verified) << symbol;
    EXPECT_THAT(reply.error,
                AnyOf(HasSubstr("the child reported an impossible time"),
                      HasSubstr("????"), HasSubstr("at an unknown stage")))
        << symbol;
    EXPECT_TRUE(IsText(reply.error)) << symbol;
    EXPECT_LT(reply.error.size(), 1000u);
    EXPECT_LE(reply.retaken, 1024u);
    EXPECT_LE(reply.shared, 1024u);
    EXPECT_GE(reply.canary_seconds, 0);
    EXPECT_LE(reply.canary_seconds, 1);
    ExpectUnharmed(symbol);
  }
}

TEST_F(HostileReportTest, ANameOfARefusedCallThatCannotBe) {
  if (!HasFilter()) GTEST_SKIP() << "no system call filter here";
  const RunReply reply = Run("spoils_and_opens_socket", finder_);
  EXPECT_THAT(reply.error,
              HasSubstr("the kernel made a system call that is not allowed, "));
  ExpectUnharmed("spoils_and_opens_socket");
}

// --- While the artifact is loaded ---

class HostileConstructorTest : public HostileKernelTest {
 protected:
  void ExpectRefusedWhileLoading(const std::string& act,
                                 const std::string& call) {
    if (!HasFilter()) GTEST_SKIP() << "no system call filter here";
    const RunReply reply = Run("good", WithConstructor(act));
    EXPECT_EQ(reply.status, RunStatus::kRunError) << act;
    EXPECT_EQ(reply.error,
              "the kernel made a system call that is not allowed (" + call +
                  "), while loading");
    ExpectUnharmed(act);
  }
};

TEST_F(HostileConstructorTest, ConstructorsMakeNoProcesses) {
  ExpectRefusedWhileLoading("forks_once", "clone");
  ExpectRefusedWhileLoading("executes", "execve");
  ExpectRefusedWhileLoading("traces", "ptrace");
  ExpectRefusedWhileLoading("signals_others", "kill");
}
TEST_F(HostileConstructorTest, ConstructorsChangeNoFiles) {
  ExpectRefusedWhileLoading("creates_file", "openat");
  ExpectRefusedWhileLoading("opens_socket", "socket");
  ExpectRefusedWhileLoading("changes_priority", "setpriority");
}
TEST_F(HostileConstructorTest, ConstructorsCannotTurnTheFilterOff) {
  ExpectRefusedWhileLoading("leaves_handler", "rt_sigaction");
}
TEST_F(HostileConstructorTest, ConstructorThatHangs) {
  const RunReply reply =
      Run("good", WithConstructor("hangs_without_signals"), 200);
  EXPECT_EQ(reply.status, RunStatus::kRunTimeout);
  EXPECT_THAT(reply.error, HasSubstr("longer than 200 ms while loading"));
  ExpectUnharmed("hangs_without_signals");
}

// --- Levels ---

TEST_F(HostileKernelTest, ARunnerIsOutOfReachOfTheNetworkAndOfFiles) {
  const std::string proc = "/proc/" + std::to_string(runner_);
  EXPECT_THAT(std::filesystem::read_symlink(proc + "/cwd").string(),
              AnyOf(HasSubstr("(deleted)"), HasSubstr("/fdinfo")));
  if (!isolation_.netns) GTEST_SKIP() << "no network namespace may be made";
  EXPECT_NE(std::filesystem::read_symlink(proc + "/ns/net"),
            std::filesystem::read_symlink("/proc/self/ns/net"));
}

TEST_F(HostileKernelTest, AnArtifactThatNamesALibraryHasTheLooserFilter) {
  if (!HasFilter()) GTEST_SKIP() << "no system call filter here";
  const std::string object = ReadWhole(TILEFARM_TEST_HOSTILE_LIBRARY_KERNELS);
  const RunReply good = Run("good", object);
  EXPECT_EQ(good.status, RunStatus::kOk) << good.error;
  EXPECT_THAT(good.isolation, testing::StartsWith("seccomp-libraries"));
  EXPECT_EQ(Run("kernel_reads_file", object).error,
            "the function returned 66");  // done
  EXPECT_EQ(Run("kernel_maps_executable", object).error,
            "the function returned 66");
  EXPECT_THAT(Run("kernel_opens_socket", object).error,
              HasSubstr("not allowed (socket)"));
  EXPECT_THAT(Run("kernel_forks_once", object).error,
              HasSubstr("not allowed (clone)"));
  EXPECT_THAT(Run("kernel_creates_file", object).error,
              HasSubstr("not allowed (openat)"));
  ExpectUnharmed("all of these");
}

// The runner, started without a filter, for acts that a filter would prevent.
class RlimitsTest : public HostileKernelFixture {
 protected:
  RlimitsTest() : HostileKernelFixture({"--at-most", "rlimits"}) {}
};

TEST_F(RlimitsTest, WithoutAFilterLimitsHoldAndLeftoversAreHuntedDown) {
  EXPECT_EQ(client_.isolation(), "rlimits");
  // Processes that left a candidate's session are found, too.
  EXPECT_EQ(RunAct("forks_once").error, "the function returned 66");
  ExpectUnharmed("forks_once");
  EXPECT_EQ(RunAct("allocates_100_gib").error, "the function returned 12");
  ExpectUnharmed("allocates_100_gib");
  EXPECT_EQ(RunAct("uses_up_descriptors").error, "the function returned 24");
  ExpectUnharmed("uses_up_descriptors");
  EXPECT_EQ(RunAct("fork_bombs", 1000).status, RunStatus::kRunTimeout);
  ExpectUnharmed("fork_bombs");
  EXPECT_EQ(RunAct("hangs_without_signals", 200).status,
            RunStatus::kRunTimeout);
  ExpectUnharmed("hangs_without_signals");
  if (geteuid() != 0) return;
  // Root's capabilities are dropped.
  EXPECT_EQ(RunAct("signals_others").error, "the function returned 1");
  EXPECT_EQ(RunAct("moves_others").error, "the function returned 1");
  EXPECT_EQ(RunAct("creates_file_here").error, "the function returned 13");
}

// The runner is copied to boards by itself.
TEST(RunnerProgramTest, IsSmallAndNeedsNoLibraryButThoseOfC) {
#ifdef NDEBUG  // in release builds
  const std::string stripped = testing::TempDir() +
                               "tilefarm-stripped-runner-" +
                               std::to_string(getpid());
  const std::string strip =
      std::string("strip -o ") + stripped + " " + kRunnerProgram;
  ASSERT_EQ(std::system(strip.c_str()), 0);
  EXPECT_LT(std::filesystem::file_size(stripped), 1u << 20);
  std::filesystem::remove(stripped);
#endif
  const std::string program = ReadWhole(kRunnerProgram);
  for (const char* library : {"libLLVM", "libgrpc", "libprotobuf", "libabsl_",
                              "libseccomp.so", "libstdc++.so"}) {
    EXPECT_EQ(program.find(library), std::string::npos) << library;
  }
}

TEST(RunnerProgramTest, SaysHowItConfines) {
  Isolation isolation;
  EXPECT_TRUE(ParseIsolation(RunnersIsolation({kRunnerProgram}), &isolation));
  EXPECT_EQ(RunnersIsolation({kRunnerProgram, "--at-most", "rlimits"}),
            "rlimits");
  EXPECT_EQ(RunnersIsolation({"/no/such/runner"}), "none");
  EXPECT_EQ(AskRunner({kRunnerProgram, "--at-most", "nothing"}, "--isolation"),
            "");
}

}  // namespace
}  // namespace tilefarm::worker
