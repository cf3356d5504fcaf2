// The real tune-builder and tune-runner on small programs: from text to a
// verified time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/sanitizers.h"
#include "tests/worker/programs.h"
#include "worker/builder_client.h"
#include "worker/runner_client.h"

namespace tilefarm::worker {
namespace {

using testing::HasSubstr;

constexpr const char* kTrace = kMatmulReluTrace;

class BuilderTest : public testing::Test {
 protected:
  BuilderTest()
      : builder_(starter_, {std::string(TILEFARM_BIN_DIR) + "/tune-builder"}),
        runner_(starter_, {std::string(TILEFARM_BIN_DIR) + "/tune-runner"}) {
    signal(SIGPIPE, SIG_IGN);
  }

  static BuildRequest Request(const std::string& trace,
                              bool reference = false) {
    BuildRequest request;
    request.program = kMatmulRelu;
    request.trace = trace;
    request.target = "host,cores=1";
    request.reference = reference;
    return request;
  }

  BuildReply Build(const BuildRequest& request) {
    absl::StatusOr<BuildReply> reply =
        builder_.Build(request, absl::Seconds(60));
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? *reply : BuildReply{};
  }

  // Runs `candidate` unscheduled, verified by the oracle of `program`.
  RunReply Verify(const std::string& program, const std::string& candidate) {
    BuildRequest request = Request("", /*reference=*/true);
    request.program = program;
    const BuildReply oracle = Build(request);
    EXPECT_EQ(oracle.status, BuildStatus::kOk) << oracle.error;
    request.reference = false;
    request.program = candidate;
    const BuildReply build = Build(request);
    EXPECT_EQ(build.status, BuildStatus::kOk) << build.error;
    LoadWorkload load;
    load.key = "verify";
    load.symbol = oracle.symbol;
    load.artifact = oracle.artifact;
    load.program = oracle.program;
    const absl::StatusOr<LoadReply> loaded = runner_.Load(load);
    EXPECT_TRUE(loaded.ok() && loaded->ok) << loaded.status();
    RunRequest run;
    run.key = "verify";
    run.symbol = build.symbol;
    run.artifact = build.artifact;
    run.max_samples = 1;
    const absl::StatusOr<RunReply> reply = runner_.Run(run);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? *reply : RunReply{};
  }

  ProcessStarter starter_;
  BuilderClient builder_;
  RunnerClient runner_;
};

TEST_F(BuilderTest, BuiltCandidateIsVerifiedAndTimed) {
  const BuildReply reference = Build(Request("", /*reference=*/true));
  ASSERT_EQ(reference.status, BuildStatus::kOk) << reference.error;
  const ProgramSpec& spec = reference.program;
  ASSERT_EQ(spec.buffers.size(), 3u);
  EXPECT_TRUE(spec.buffers[0].read && spec.buffers[1].read);
  EXPECT_FALSE(spec.buffers[2].read);
  EXPECT_TRUE(spec.buffers[2].written);
  EXPECT_FALSE(spec.buffers[0].written);
  EXPECT_EQ(spec.buffers[2].elements, 64u * 64);
  EXPECT_TRUE(spec.buffers[2].bounded);
  EXPECT_FALSE(spec.buffers[0].bounded);
  EXPECT_GT(spec.oracle_bytes, 64u * 64 * 8);

  const BuildReply build = Build(Request(kTrace));
  ASSERT_EQ(build.status, BuildStatus::kOk) << build.error;
  EXPECT_EQ(build.symbol, "tilefarm_main");
  EXPECT_EQ(build.cores, 1u);
  EXPECT_EQ(build.code_digest.size(), 64u);
  EXPECT_GT(build.compile_seconds, 0);

  LoadWorkload load;
  load.key = "mm";
  load.symbol = reference.symbol;
  load.artifact = reference.artifact;
  load.program = spec;
  const absl::StatusOr<LoadReply> loaded = runner_.Load(load);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_TRUE(loaded->ok) << loaded->error;
  RunRequest run;
  run.key = "mm";
  run.symbol = build.symbol;
  run.artifact = build.artifact;
  const absl::StatusOr<RunReply> reply = runner_.Run(run);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->status, RunStatus::kOk) << reply->error;
  EXPECT_TRUE(reply->verified);
  EXPECT_GT(reply->median_seconds, 0);
  RecordProperty("median_us", std::to_string(reply->median_seconds * 1e6));
}

std::string CausalScores(const std::string& scale) {
  return absl::StrCat(R"(
@T.prim_func
def main(Q: T.Buffer((16, 32), "float32"), K: T.Buffer((16, 32), "float32"), S: T.Buffer((16, 16), "float32")):
    X = T.alloc_buffer((16, 16), "float32")
    for i, j, k in T.grid(16, 16, 32):
        with T.block("X"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                X[vi, vj] = T.float32(0)
            X[vi, vj] = X[vi, vj] + Q[vi, vk] * K[vj, vk]
    for i, j in T.grid(16, 16):
        with T.block("S"):
            vi, vj = T.axis.remap("SS", [i, j])
            S[vi, vj] = T.if_then_else(vj <= vi, X[vi, vj] * T.float32()",
                      scale, R"(), T.float32(-1e9))
)");
}

// A fifth of a percent is an error, even next to elements of -1e9.
TEST_F(BuilderTest, SmallErrorsBesideMasksAreFound) {
  const RunReply right = Verify(CausalScores("0.125"), CausalScores("0.125"));
  EXPECT_EQ(right.status, RunStatus::kOk) << right.error;
  EXPECT_TRUE(right.verified);
  const RunReply wrong = Verify(CausalScores("0.125"), CausalScores("0.12525"));
  EXPECT_EQ(wrong.status, RunStatus::kWrongResult);
  EXPECT_THAT(wrong.error, HasSubstr("wrong result: parameter 2, element 0"));
}

std::string InPlace(const std::string& addend) {
  return absl::StrCat(R"(
@T.prim_func
def main(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
    for i in range(100):
        with T.block("A"):
            vi = T.axis.spatial(100, i)
            A[vi] = A[vi] * B[vi] + T.float32()",
                      addend, R"()
)");
}

TEST_F(BuilderTest, ParametersInPlaceAreVerified) {
  EXPECT_EQ(Verify(InPlace("1"), InPlace("1")).status, RunStatus::kOk);
  EXPECT_EQ(Verify(InPlace("1"), InPlace("1.001")).status,
            RunStatus::kWrongResult);
}

TEST_F(BuilderTest, ArtifactsAreTheSameEveryTime) {
  const BuildReply a = Build(Request(kTrace));
  const BuildReply b = Build(Request(kTrace));
  EXPECT_EQ(a.artifact, b.artifact);
  EXPECT_EQ(a.code_digest, b.code_digest);
}

TEST_F(BuilderTest, TraceThatDoesNotFitIsInvalid) {
  const BuildReply reply =
      Build(Request("b0 = sch.get_block(\"no_such_block\")\n"));
  EXPECT_EQ(reply.status, BuildStatus::kInvalidSchedule);
  EXPECT_THAT(reply.error, HasSubstr("no_such_block"));
  EXPECT_EQ(Build(Request("not a trace")).status,
            BuildStatus::kInvalidSchedule);
}

TEST_F(BuilderTest, OtherProgramThanTheLeaseNamesIsInvalid) {
  BuildRequest request = Request(kTrace);
  request.scheduled_hash = std::string(64, '0');
  const BuildReply reply = Build(request);
  EXPECT_EQ(reply.status, BuildStatus::kInvalidSchedule);
  EXPECT_THAT(reply.error, HasSubstr("the lease names 000"));
}

TEST_F(BuilderTest, BadProgramOrTargetIsACompileError) {
  BuildRequest request = Request("");
  request.program = "def main(:";
  EXPECT_EQ(Build(request).status, BuildStatus::kCompileError);
  request = Request("");
  request.target = "no-such-kind";
  EXPECT_EQ(Build(request).status, BuildStatus::kCompileError);
}

TEST_F(BuilderTest, TooLittleMemoryIsACompileError) {
#if TILEFARM_SANITIZED
  GTEST_SKIP() << "a sanitizer's own memory does not fit any such limit";
#endif
  BuildRequest request = Request(kTrace);
  request.memory_bytes = 1 << 20;
  const absl::StatusOr<BuildReply> reply =
      builder_.Build(request, absl::Seconds(60));
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Build(Request(kTrace)).status, BuildStatus::kOk);
}

TEST_F(BuilderTest, TooLittleTimeKillsIt) {
  EXPECT_EQ(Build(Request(kTrace)).status, BuildStatus::kOk);
  const absl::StatusOr<BuildReply> reply =
      builder_.Build(Request(kTrace), absl::ZeroDuration());
  if (!reply.ok()) {
    EXPECT_EQ(reply.status().code(), absl::StatusCode::kDeadlineExceeded);
  }
  EXPECT_EQ(Build(Request(kTrace)).status, BuildStatus::kOk);
}

}  // namespace
}  // namespace tilefarm::worker
