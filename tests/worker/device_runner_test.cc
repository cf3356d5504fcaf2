// The real tune-runner with a fake GPU: the child that uses the device, its
// replacement after faults, verification and timing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/worker/runner_fixture.h"
#include "worker/runner_query.h"

namespace tilefarm::worker {
namespace {

using testing::HasSubstr;

// The runner with a fake driver, and variables of that (fake_cuda.c).
std::vector<std::string> Command(
    const std::vector<std::string>& variables = {}) {
  std::vector<std::string> command = {
      "/usr/bin/env", "TILEFARM_CUDA_DRIVER=" TILEFARM_TEST_FAKE_CUDA};
  command.insert(command.end(), variables.begin(), variables.end());
  command.insert(command.end(), {kRunner, "--device", "cuda:0"});
  return command;
}

class DeviceRunnerTest : public RunnerTest {
 protected:
  DeviceRunnerTest() : DeviceRunnerTest(Command()) {}
  explicit DeviceRunnerTest(std::vector<std::string> command)
      : RunnerTest(std::move(command)) {
    std::ifstream file(TILEFARM_TEST_DEVICE_KERNELS, std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    kernels_ = bytes.str();
  }

  RunRequest DeviceRequest(const std::string& symbol) {
    RunRequest request = Request(symbol);
    request.artifact = kernels_;
    return request;
  }
  RunReply RunOnDevice(const std::string& symbol) {
    return Run(DeviceRequest(symbol));
  }
  void ExpectGood() {
    const RunReply reply = RunOnDevice("good");
    EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
    EXPECT_TRUE(reply.verified);
  }
  void ExpectFails(const std::string& symbol, RunStatus status,
                   const std::string& error) {
    LoadDouble();
    ExpectGood();
    const RunReply reply = RunOnDevice(symbol);
    EXPECT_EQ(reply.status, status) << reply.error;
    EXPECT_THAT(reply.error, HasSubstr(error));
    EXPECT_FALSE(reply.verified);
    ExpectGood();
  }

  std::string kernels_;
};

TEST_F(DeviceRunnerTest, MeasuresAGoodKernel) {
  LoadDouble();
  const RunReply reply = RunOnDevice("good");
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
  EXPECT_TRUE(reply.verified);
  EXPECT_GE(reply.seconds.size(), 3u);
  EXPECT_GT(reply.median_seconds, 0);
  EXPECT_EQ(reply.max_abs_error, 0);
  EXPECT_THAT(reply.timing, HasSubstr("L2 warm"));
  EXPECT_EQ(reply.isolation, client_.isolation());
}

TEST_F(DeviceRunnerTest, ManyCandidatesUseOneProcess) {
  LoadDouble();
  for (int i = 0; i < 5; ++i) {
    const RunReply reply = RunOnDevice("good_once");
    // The first call of each load succeeds, so none is of a former load.
    EXPECT_THAT(reply.error, HasSubstr("the function returned 9"));
    ExpectGood();
  }
}

TEST_F(DeviceRunnerTest, ColdRunsAreOnCopiesOfTheBuffers) {
  LoadDouble();
  RunRequest request = DeviceRequest("good");
  request.flush_cache = true;
  const RunReply reply = Run(request);
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
  EXPECT_THAT(reply.timing, HasSubstr("32 runs on 32 copies, L2 cold"));
}

TEST_F(DeviceRunnerTest, LongColdRunsAreTimedOneByOne) {
  LoadDouble();
  RunRequest request = DeviceRequest("slow");
  request.flush_cache = true;
  const RunReply reply = Run(request);
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
  EXPECT_GE(reply.median_seconds, 0.02);
  EXPECT_EQ(reply.timing, "events around 1 run, L2 cold");
}

TEST_F(DeviceRunnerTest, HopelessCandidateStopsEarly) {
  LoadDouble();
  RunRequest request = DeviceRequest("slow");
  request.best_seconds = 1e-6;
  const RunReply reply = Run(request);
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
  EXPECT_TRUE(reply.stopped_early);
  EXPECT_TRUE(reply.verified);
  EXPECT_EQ(reply.seconds.size(), 1u);
}

TEST_F(DeviceRunnerTest, OutputsThatAreInputsAreRestored) {
  const LoadReply load =
      Load("doubles_in_place", {Buffer(ElementType::kFloat32, true, true)});
  ASSERT_TRUE(load.ok) << load.error;
  const RunReply reply = RunOnDevice("doubles_in_place");
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
  EXPECT_TRUE(reply.verified);
}

TEST_F(DeviceRunnerTest, WrongResult) {
  ExpectFails("wrong", RunStatus::kWrongResult, "element 777");
}
TEST_F(DeviceRunnerTest, WrongLater) {
  ExpectFails("wrong_later", RunStatus::kWrongResult, "in the last timed run");
}
TEST_F(DeviceRunnerTest, WritesPastTheEnd) {
  ExpectFails("writes_past_end", RunStatus::kWrongResult,
              "writes outside parameter 1, ");
}
TEST_F(DeviceRunnerTest, WritesBeforeTheStart) {
  ExpectFails("writes_before_start", RunStatus::kWrongResult,
              "writes outside parameter 1, 1 bytes before its start");
}
TEST_F(DeviceRunnerTest, WritesToAnInput) {
  ExpectFails("writes_input", RunStatus::kWrongResult,
              "writes to parameter 0, which is an input");
}
TEST_F(DeviceRunnerTest, ReadsPastTheEnd) {
  ExpectFails("reads_past_end", RunStatus::kWrongResult, "element 999");
}
TEST_F(DeviceRunnerTest, RefusedLaunch) {
  ExpectFails("refuses", RunStatus::kRunError,
              "the function returned 1: text of refuses");
}
TEST_F(DeviceRunnerTest, ErrorThatEndsTheContext) {
  ExpectFails("illegal_address", RunStatus::kRunError,
              "CUDA_ERROR_ILLEGAL_ADDRESS (700)");
}
TEST_F(DeviceRunnerTest, Crash) {
  ExpectFails("crashes", RunStatus::kRunError,
              "crashed with SIGSEGV in the first run");
}
TEST_F(DeviceRunnerTest, Exit) {
  ExpectFails("exits", RunStatus::kRunError, "exited with status 3");
}
TEST_F(DeviceRunnerTest, MissingSymbol) {
  ExpectFails("no_launcher", RunStatus::kRunError,
              "no such symbol: no_launcher_on");
}
TEST_F(DeviceRunnerTest, Hang) {
  LoadDouble();
  RunRequest request = DeviceRequest("hangs");
  request.limits.timeout_ms = 700;
  const RunReply reply = Run(request);
  EXPECT_EQ(reply.status, RunStatus::kRunTimeout);
  EXPECT_THAT(reply.error, HasSubstr("ran longer than 700 ms"));
  ExpectGood();
}

TEST_F(DeviceRunnerTest, ACandidateIsCancelled) {
  LoadDouble();
  RunRequest request = DeviceRequest("hangs");
  request.run_id = 7;
  request.limits.timeout_ms = 60000;
  std::thread cancels([this] {
    absl::SleepFor(absl::Milliseconds(500));
    client_.Cancel(7);
  });
  EXPECT_EQ(Run(request).status, RunStatus::kCancelled);
  cancels.join();
  ExpectGood();
}

TEST_F(DeviceRunnerTest, OtherWorkloadsHaveOtherInputs) {
  LoadDouble();
  ExpectGood();
  LoadDouble();
  ExpectGood();
}

TEST_F(DeviceRunnerTest, IsConfined) {
  LoadDouble();
  if (client_.isolation().find("seccomp") == std::string::npos) {
    GTEST_SKIP() << "no filters here";
  }
  const RunReply reply = RunOnDevice("escapes");
  EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
  EXPECT_THAT(reply.isolation, HasSubstr("seccomp-libraries"));
}

class FailingDeviceTest : public DeviceRunnerTest {
 protected:
  FailingDeviceTest()
      : DeviceRunnerTest(Command({"FAKE_CUDA_FAIL_AFTER=12"})) {}
};

// Which candidate the error hits is chance, and it gets a fresh process.
TEST_F(FailingDeviceTest, ErrorsOfAnOldProcessAreNotTheCandidates) {
  LoadDouble();
  for (int i = 0; i < 4; ++i) {
    RunRequest request = DeviceRequest("slow");  // so it is launched rarely
    request.max_samples = 3;
    const RunReply reply = Run(request);
    EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
  }
}

class LostDeviceTest : public DeviceRunnerTest {
 protected:
  LostDeviceTest()
      : DeviceRunnerTest(Command({absl::StrCat("FAKE_CUDA_LOST=", Path())})) {
    std::filesystem::remove(Path());
  }
  ~LostDeviceTest() override { std::filesystem::remove(Path()); }
  static std::string Path() {
    return absl::StrCat("/tmp/tilefarm-fake-cuda-lost-", getpid());
  }
};

// Every candidate says so, canaries among them, until the device is back.
TEST_F(LostDeviceTest, IsReportedUntilItIsBack) {
  LoadDouble();
  ExpectGood();
  std::ofstream(Path()) << "lost";
  for (int i = 0; i < 3; ++i) {
    const RunReply reply = RunOnDevice("good");
    EXPECT_EQ(reply.status, RunStatus::kRunError);
    EXPECT_THAT(reply.error,
                HasSubstr("the device is lost: cuInit: CUDA_ERROR_UNKNOWN"));
  }
  std::filesystem::remove(Path());
  ExpectGood();
}

TEST(DevicePropertiesTest, AreTheDrivers) {
  const std::string text = AskRunner(Command(), "--properties");
  EXPECT_THAT(text, HasSubstr("target cuda:sm_90a\n"));
  EXPECT_THAT(text,
              HasSubstr("brand Fake GPU 0, driver of CUDA 12.4, 1980 MHz, "
                        "memory 2619 MHz\n"));
  EXPECT_THAT(text, HasSubstr("multiprocessors 132\n"));
  EXPECT_THAT(text, HasSubstr("l2_bytes 1048576\n"));
}

TEST(DevicePropertiesTest, SaysWhyThereAreNone) {
  EXPECT_EQ(AskRunner(Command({"FAKE_CUDA_DEVICES=0"}), "--properties"),
            "error the driver has no devices\n");
  EXPECT_THAT(AskRunner(Command({"TILEFARM_CUDA_DRIVER=/no/such/driver.so"}),
                        "--properties"),
              HasSubstr("error /no/such/driver.so is not here"));
}

}  // namespace
}  // namespace tilefarm::worker
