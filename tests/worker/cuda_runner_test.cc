// The real tune-runner with a real GPU of CUDA. Skipped without one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/worker/runner_fixture.h"
#include "worker/runner_query.h"

namespace tilefarm::worker {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

std::vector<std::string> Command() { return {kRunner, "--device", "cuda:0"}; }

class CudaRunnerTest : public RunnerTest {
 protected:
  CudaRunnerTest() : RunnerTest(Command()) {}

  void SetUp() override {
    const std::string properties = AskRunner(Command(), "--properties");
    if (properties.starts_with("error ")) GTEST_SKIP() << properties;
    fputs(properties.c_str(), stdout);
    LoadDouble();
    printf("isolation %s\n", client_.isolation().c_str());
  }

  RunReply RunKernel(const std::string& symbol, bool flush_cache = false) {
    RunRequest request = Request(symbol);
    request.artifact = kernels_;
    request.flush_cache = flush_cache;
    request.max_samples = 0;
    request.limits.timeout_ms = 2000;
    const RunReply reply = Run(request);
    printf(
        "%s: %.3f us (%.3f to %.3f, %zu samples), %s, %.0f MHz, %.0f W, "
        "%.3f s in all%s%s\n",
        symbol.c_str(), reply.median_seconds * 1e6, reply.ci_low_seconds * 1e6,
        reply.ci_high_seconds * 1e6, reply.seconds.size(), reply.timing.c_str(),
        reply.conditions.clock_mhz, reply.conditions.power_w,
        reply.child_seconds, reply.error.empty() ? "" : ": ",
        reply.error.c_str());
    return reply;
  }
  void ExpectGood() {
    const RunReply reply = RunKernel("good");
    EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
    EXPECT_TRUE(reply.verified);
    EXPECT_GT(reply.median_seconds, 0.5e-6);
    EXPECT_LT(reply.median_seconds, 1e-4);
  }

  const std::string kernels_ = ReadFile(TILEFARM_TEST_CUDA_KERNELS);
};

TEST_F(CudaRunnerTest, MeasuresWarmAndCold) {
  ExpectGood();
  ExpectGood();
  const RunReply cold = RunKernel("good", /*flush_cache=*/true);
  EXPECT_EQ(cold.status, RunStatus::kOk) << cold.error;
  EXPECT_THAT(cold.timing, HasSubstr("L2 cold"));
}

TEST_F(CudaRunnerTest, FindsWrongResults) {
  EXPECT_EQ(RunKernel("wrong").status, RunStatus::kWrongResult);
  EXPECT_THAT(RunKernel("past_end").error,
              HasSubstr("writes outside parameter 1, 1 bytes past its end"));
  EXPECT_THAT(RunKernel("to_input").error, HasSubstr("writes to parameter 0"));
  ExpectGood();
}

TEST_F(CudaRunnerTest, ErrorsEndOneProcessOnly) {
  ExpectGood();
  RunReply reply = RunKernel("illegal");
  EXPECT_EQ(reply.status, RunStatus::kRunError);
  EXPECT_THAT(reply.error, HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  ExpectGood();
  reply = RunKernel("traps");
  EXPECT_EQ(reply.status, RunStatus::kRunError);
  EXPECT_THAT(reply.error, AnyOf(HasSubstr("(719)"), HasSubstr("(715)")));
  ExpectGood();
}

TEST_F(CudaRunnerTest, HangsEnd) {
  EXPECT_EQ(RunKernel("hangs").status, RunStatus::kRunTimeout);
  ExpectGood();
}

}  // namespace
}  // namespace tilefarm::worker
