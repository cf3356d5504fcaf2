// Which jobs are accepted, how many, and which one starts next.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "server/jobs/jobs.h"
#include "tests/server/fake_search.h"
#include "tests/server/jobs_fixture.h"

namespace tilefarm::jobs {
namespace {

using testing::FakeSearchFactory;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kConv[] = R"(
@T.prim_func
def main(A: T.Buffer((64,), "float32"), W: T.Buffer((3,), "float32"), C: T.Buffer((64,), "float32")):
    P = T.alloc_buffer((66,), "float32")
    for i in range(66):
        with T.block("P"):
            v = T.axis.spatial(66, i)
            P[v] = T.if_then_else(1 <= v and v < 65, A[v - 1], T.float32(0))
    for i, k in T.grid(64, 3):
        with T.block("C"):
            v, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[v] = T.float32(0)
            C[v] = C[v] + P[v + vk] * W[vk]
)";

TEST_F(JobsTest, RetriedSubmitReturnsTheSameJob) {
  const JobSpec spec = Spec();
  const std::string id = *jobs_->Submit(spec);
  EXPECT_EQ(*jobs_->Submit(spec), id);
  EXPECT_THAT(*jobs_->List(), SizeIs(1));
  EXPECT_NE(*jobs_->Submit(Spec()), id);
}

TEST_F(JobsTest, ChoosingTheNextJobLooksAtEachOpenJobOnce) {
  for (int i = 0; i < 60; ++i) jobs_->Cancel(*jobs_->Submit(Spec())).value();
  // Without a device, the first of these runs and the others wait for it.
  constexpr int kOpen = 40;
  const std::string first = *jobs_->Submit(Spec());
  for (int i = 1; i < kOpen; ++i) EXPECT_TRUE(jobs_->Submit(Spec()).ok());
  WaitFor(first,
          [](const JobSnapshot& s) { return s.state == JobState::kRunning; });
  const SchedulingFigures before = jobs_->scheduling_figures();
  SchedulingFigures after;
  for (int i = 0; i < 10'000 && after.choices < before.choices + 20; ++i) {
    usleep(1000);
    after = jobs_->scheduling_figures();
  }
  ASSERT_GE(after.choices, before.choices + 20);
  // One more choice may be under way.
  EXPECT_LE(after.examined - before.examined,
            kOpen * (after.choices - before.choices + 1));
  const std::vector<JobSnapshot> all = *jobs_->List();
  for (const JobSnapshot& one : all) {
    if (!Ended(one.state)) jobs_->Cancel(one.id).value();
  }
}

TEST_F(JobsTest, RefusesBadSubmissions) {
  const auto code = [&](const JobSpec& spec) {
    return jobs_->Submit(spec).status().code();
  };
  JobSpec spec = Spec();
  spec.program = "def";
  EXPECT_EQ(code(spec), absl::StatusCode::kInvalidArgument);
  // Every read of the last row of A is out of bounds.
  spec = Spec();
  spec.program.replace(spec.program.find("(16, 16)"), 8, "(15, 16)");
  EXPECT_EQ(code(spec), absl::StatusCode::kInvalidArgument);
  spec = Spec();
  spec.targets[0].key = "host";
  EXPECT_EQ(code(spec), absl::StatusCode::kInvalidArgument);
  spec = Spec();
  spec.targets[0].key = "toaster";
  EXPECT_EQ(code(spec), absl::StatusCode::kInvalidArgument);
  spec.targets[0].key = "cuda:sm_30";
  EXPECT_EQ(code(spec), absl::StatusCode::kInvalidArgument);
  spec = Spec(0);
  EXPECT_EQ(code(spec), absl::StatusCode::kInvalidArgument);
  spec = Spec(-1);
  EXPECT_EQ(code(spec), absl::StatusCode::kInvalidArgument);
  spec = Spec();
  spec.model = "oracle";
  EXPECT_EQ(code(spec), absl::StatusCode::kInvalidArgument);
  spec = Spec();
  spec.search = "luck";
  EXPECT_EQ(code(spec), absl::StatusCode::kInvalidArgument);
  spec = Spec();
  spec.targets[0].caches = {32 << 10, 0, 1 << 20};
  EXPECT_EQ(code(spec), absl::StatusCode::kInvalidArgument);
  spec = Spec();
  spec.program = testing::kAddRelu;
  spec.space_trace = "b0 = sch.get_block(\"C\")";
  EXPECT_EQ(code(spec), absl::StatusCode::kInvalidArgument);
  // A sketch that a strict job forbids.
  spec = Spec();
  spec.program = kConv;
  spec.space_trace =
      "b0 = sch.get_block(\"P\")\nsch.compute_inline(b0)\n"
      "b1 = sch.get_block(\"C\")\n"
      "sch.annotate(b1, \"tilefarm.skip_padding\", 1)\n";
  ASSERT_TRUE(ResolveJob(*store_, spec).ok());
  spec.strict_fp = true;
  EXPECT_EQ(code(spec), absl::StatusCode::kInvalidArgument);
  // A library without permission, in a sketch or in the program itself.
  spec = Spec();
  spec.space_trace =
      "b0 = sch.get_block(\"C\")\n"
      "sch.call_library(b0, kernel=\"openblas.sgemm\")";
  EXPECT_EQ(code(spec), absl::StatusCode::kInvalidArgument);
  spec = Spec();
  spec.allow_library = true;
  const std::string next = "            with T.init():";
  spec.program.insert(spec.program.find(next),
                      "            T.block_attr({\"tilefarm.library\": "
                      "\"openblas.sgemm\"})\n");
  EXPECT_EQ(code(spec), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(*jobs_->List(), SizeIs(0));
}

TEST_F(JobsTest, RequestIdsOfUsersAreTheirOwn) {
  JobSpec spec = Spec();
  spec.user = "ann";
  const std::string anns = *jobs_->Submit(spec);
  spec.user = "bob";
  spec.trials = 7;
  const std::string bobs = *jobs_->Submit(spec);
  EXPECT_NE(anns, bobs);
  EXPECT_EQ(jobs_->Get(bobs)->user, "bob");
  EXPECT_EQ(jobs_->Get(bobs)->trials, 7);
  EXPECT_EQ(*jobs_->Submit(spec), bobs);
  Restart(FakeSearchFactory());
  EXPECT_EQ(*jobs_->Submit(spec), bobs);
  spec.user = "ann";
  EXPECT_EQ(*jobs_->Submit(spec), anns);
}

TEST_F(JobsTest, AUserHasAsManyUnendedJobsAsHeMay) {
  JobSpec first = Spec();
  first.user = "ann";
  std::string last;
  for (int i = 0; i < JobsOptions().user_jobs.jobs; ++i) {
    JobSpec spec = i == 0 ? first : Spec();
    spec.user = "ann";
    const auto id = jobs_->Submit(spec);
    ASSERT_TRUE(id.ok()) << id.status();
    last = *id;
  }
  JobSpec more = Spec();
  more.user = "ann";
  const auto refused = jobs_->Submit(more);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("ann has 1000 jobs that have not ended"));
  // A retry is not another job, and other users have their own limit.
  EXPECT_TRUE(jobs_->Submit(first).ok());
  more.user = "bob";
  EXPECT_TRUE(jobs_->Submit(more).ok());
  ASSERT_TRUE(jobs_->Cancel(last).ok());
  more.user = "ann";
  EXPECT_TRUE(jobs_->Submit(more).ok());
}

TEST_F(JobsTest, AUsersUnendedJobsHoldAsMuchTextAsTheyMay) {
  JobSpec spec = Spec();
  spec.user = "ann";
  spec.program += std::string(3 << 20, '\n');
  int accepted = 0;
  absl::Status status;
  for (; status.ok() && accepted < 100; ++accepted) {
    spec.request_id = "large-" + std::to_string(accepted);
    status = jobs_->Submit(spec).status();
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(accepted - 1, 21);  // 3 MiB each, in 64
}

}  // namespace
}  // namespace tilefarm::jobs
