// The real tune-runner with PoCL, an OpenCL driver for the processor. Skipped
// without it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/worker/runner_fixture.h"
#include "worker/runner_query.h"

namespace tilefarm::worker {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> Command(int device,
                                 const std::vector<std::string>& variables) {
  std::vector<std::string> command = {"/usr/bin/env"};
  command.insert(command.end(), variables.begin(), variables.end());
  command.insert(command.end(),
                 {kRunner, "--device", absl::StrCat("opencl:", device)});
  return command;
}

// What the runner says of PoCL's device, and its number; -1: there is none, for
// this reason.
struct Found {
  int device = 0;
  std::string properties;
};
const Found& Pocl() {
  static const auto* const found = [] {
    auto* const result = new Found;
    do {
      result->properties =
          AskRunner(Command(result->device, {}), "--properties");
      if (absl::StrContains(result->properties, "target opencl:pocl\n")) {
        return result;
      }
      ++result->device;
    } while (!absl::StartsWith(result->properties, "error "));
    result->device = -1;
    return result;
  }();
  return *found;
}

std::set<std::string> DeviceFolders() {
  std::set<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator("/tmp")) {
    const std::string path = entry.path().string();
    if (absl::StartsWith(path, "/tmp/tilefarm-device-")) folders.insert(path);
  }
  return folders;
}

class OpenClRunnerTest : public RunnerTest {
 protected:
  explicit OpenClRunnerTest(const std::vector<std::string>& variables = {})
      : RunnerTest(Command(std::max(Pocl().device, 0), variables)) {
    std::ifstream file(TILEFARM_TEST_OPENCL_KERNELS, std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    kernels_ = bytes.str();
  }

  void SetUp() override {
    if (Pocl().device < 0) GTEST_SKIP() << "no PoCL: " << Pocl().properties;
    LoadDouble();
  }

  RunRequest OpenClRequest(const std::string& symbol) {
    RunRequest request = Request(symbol);
    request.artifact = kernels_;
    // PoCL compiles in the first run.
    request.limits.timeout_ms = 20000;
    return request;
  }
  RunReply RunKernel(const std::string& symbol) {
    const RunReply reply = Run(OpenClRequest(symbol));
    printf("%s: %.3f us, %s, %.3f s in all, %s\n", symbol.c_str(),
           reply.median_seconds * 1e6, reply.timing.c_str(),
           reply.child_seconds, reply.error.c_str());
    return reply;
  }
  void ExpectRuns(const std::string& symbol) {
    const RunReply reply = RunKernel(symbol);
    EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
    EXPECT_TRUE(reply.verified);
    EXPECT_GT(reply.median_seconds, 0);
  }
  void ExpectFails(const std::string& symbol, RunStatus status,
                   const std::string& error) {
    const RunReply reply = RunKernel(symbol);
    EXPECT_EQ(reply.status, status) << reply.error;
    EXPECT_THAT(reply.error, HasSubstr(error));
    EXPECT_FALSE(reply.verified);
    ExpectRuns("good");
  }

  std::string kernels_;
};

TEST_F(OpenClRunnerTest, SaysWhatTheDeviceIs) {
  const std::string& text = Pocl().properties;
  EXPECT_THAT(text, HasSubstr(", driver "));
  EXPECT_THAT(text, HasSubstr(" compute units, "));
  EXPECT_THAT(text, HasSubstr(" MHz\n"));
  EXPECT_THAT(text, HasSubstr("\nbus_id opencl:"));
  EXPECT_THAT(text, Not(HasSubstr("memory_bytes 0\n")));
  EXPECT_THAT(AskRunner(Command(1000, {}), "--properties"),
              HasSubstr("error OpenCL's devices are 0 to "));
}

TEST_F(OpenClRunnerTest, MeasuresAGoodKernel) {
  const RunReply reply = RunKernel("good");
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
  EXPECT_TRUE(reply.verified);
  EXPECT_GE(reply.seconds.size(), 3u);
  EXPECT_GT(reply.median_seconds, 0);
  EXPECT_EQ(reply.max_abs_error, 0);
  EXPECT_THAT(reply.timing, HasSubstr("events around "));
  EXPECT_THAT(reply.timing, HasSubstr("L2 warm"));
  EXPECT_EQ(reply.isolation, client_.isolation());
  EXPECT_EQ(reply.conditions.clock_mhz, 0);
}

TEST_F(OpenClRunnerTest, SlowKernelsTakeLonger) {
  const RunReply slow = RunKernel("slow");
  EXPECT_EQ(slow.status, RunStatus::kOk) << slow.error;
  const RunReply good = RunKernel("good");
  EXPECT_EQ(good.status, RunStatus::kOk) << good.error;
  EXPECT_GT(slow.median_seconds, 3 * good.median_seconds);
}

TEST_F(OpenClRunnerTest, ColdRunsAreOnCopiesOfTheBuffers) {
  RunRequest request = OpenClRequest("good");
  request.flush_cache = true;
  const RunReply reply = Run(request);
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
  EXPECT_THAT(reply.timing, HasSubstr("L2 cold"));
}

TEST_F(OpenClRunnerTest, OutputsThatAreInputsAreRestored) {
  const LoadReply load =
      Load("doubles_in_place", {Buffer(ElementType::kFloat32, true, true)});
  ASSERT_TRUE(load.ok) << load.error;
  ExpectRuns("doubles_in_place");
}

TEST_F(OpenClRunnerTest, FindsWrongResults) {
  ExpectFails("wrong", RunStatus::kWrongResult, "element 777");
  ExpectFails("past_end", RunStatus::kWrongResult,
              "writes outside parameter 1, ");
  ExpectFails("before_start", RunStatus::kWrongResult,
              "writes outside parameter 1, 1 bytes before its start");
  ExpectFails("reads_past_end", RunStatus::kWrongResult, "element 999");
  ExpectFails("to_input", RunStatus::kWrongResult,
              "writes to parameter 0, which is an input");
}

TEST_F(OpenClRunnerTest, ABuildErrorIsTheCandidates) {
  const RunReply reply = RunKernel("does_not_build");
  EXPECT_EQ(reply.status, RunStatus::kRunError);
  EXPECT_THAT(reply.error, HasSubstr("the function returned 11: "));
  EXPECT_THAT(reply.error, HasSubstr("no_such_name"));
  ExpectRuns("good");
}

TEST_F(OpenClRunnerTest, WorkspaceIsPoisonedInTheFirstRun) {
  ExpectRuns("wants_poison");
}

TEST_F(OpenClRunnerTest, ACrashEndsOneProcessOnly) {
  ExpectFails("crashes", RunStatus::kRunError,
              "crashed with SIGSEGV in the first run");
}

TEST_F(OpenClRunnerTest, AKernelThatHangsIsEnded) {
  RunRequest request = OpenClRequest("hangs");
  request.limits.timeout_ms = 2000;
  const RunReply reply = Run(request);
  EXPECT_EQ(reply.status, RunStatus::kRunTimeout);
  EXPECT_THAT(reply.error, HasSubstr("ran longer than 2000 ms"));
  ExpectRuns("good");
}

TEST_F(OpenClRunnerTest, ACandidateIsCancelled) {
  RunRequest request = OpenClRequest("hangs");
  request.run_id = 7;
  std::thread cancels([this] {
    absl::SleepFor(absl::Milliseconds(1500));
    client_.Cancel(7);
  });
  EXPECT_EQ(Run(request).status, RunStatus::kCancelled);
  cancels.join();
  ExpectRuns("good");
}

TEST_F(OpenClRunnerTest, ThreadsOfTheDriverFollowTheCandidate) {
  cpu_set_t cores;
  sched_getaffinity(0, sizeof cores, &cores);
  if (!CPU_ISSET(0, &cores) || !CPU_ISSET(1, &cores)) {
    GTEST_SKIP() << "cores 0 and 1 are needed";
  }
  for (const uint32_t core : {1u, 0u, 1u}) {
    RunRequest request = OpenClRequest(absl::StrCat("on_core_", core));
    request.limits.cpus = {core};
    const RunReply reply = Run(request);
    EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
  }
}

TEST_F(OpenClRunnerTest, IsConfined) {
  // Filters are as strong as PoCL's linker permits, but the level is not.
  EXPECT_THAT(client_.isolation(), HasSubstr("rlimits"));
  if (AskRunner({kRunner}, "--isolation").find("seccomp") ==
      std::string::npos) {
    GTEST_SKIP() << "no filters here";
  }
  // The second version lets files be moved between folders.
  if (syscall(SYS_landlock_create_ruleset, nullptr, 0,
              1 /* LANDLOCK_CREATE_RULESET_VERSION */) < 2) {
    GTEST_SKIP() << "no Landlock here";
  }
  ExpectRuns("escapes");
  ExpectRuns("escapes_by_a_program");
  EXPECT_FALSE(std::filesystem::exists("/tmp/tilefarm-escaped"));
}

TEST_F(OpenClRunnerTest, FilesOfTheDriverAreRemoved) {
  const std::set<std::string> before = DeviceFolders();
  std::vector<std::string> command = Command(Pocl().device, {});
  command.insert(command.end(), {"--at-most", "none"});
  EXPECT_EQ(AskRunner(command, "--isolation"), "none\n");
  std::vector<std::string> left;
  // Runners of other tests may have some for a moment.
  for (int i = 0; i < 100; ++i) {
    left.clear();
    const std::set<std::string> after = DeviceFolders();
    std::set_difference(after.begin(), after.end(), before.begin(),
                        before.end(), std::back_inserter(left));
    if (left.empty()) break;
    absl::SleepFor(absl::Milliseconds(100));
  }
  EXPECT_THAT(left, testing::IsEmpty());
}

class TimelessOpenClTest : public OpenClRunnerTest {
 protected:
  TimelessOpenClTest()
      : OpenClRunnerTest(
            {"TILEFARM_OPENCL_DRIVER=" TILEFARM_TEST_TIMELESS_OPENCL}) {}
};

TEST_F(TimelessOpenClTest, TheHostsClockTimes) {
  RunReply reply = RunKernel("slow");
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
  EXPECT_TRUE(reply.verified);
  EXPECT_GT(reply.median_seconds, 0);
  EXPECT_THAT(reply.timing, HasSubstr("host clock around "));
}

}  // namespace
}  // namespace tilefarm::worker
