// tune-builder and tune-runner, the real programs, on small programs: from
// text to a verified time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "absl/time/time.h"
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
  EXPECT_EQ(spec.buffers[2].epsilon, 0x1p-23);
  EXPECT_EQ(spec.reduction_length, 64u);

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
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
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
