// A job with --strict-fp proposes no schedule that changes floats.
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "compiler/driver/kept_floats.h"
#include "server/jobs/jobs.h"
#include "server/jobs/search_factory.h"
#include "tests/server/fake_search.h"
#include "tests/server/fake_worker.h"
#include "tests/server/made_up_times.h"

namespace tilefarm::jobs {
namespace {

using testing::HelloFor;
using testing::MadeUpSeconds;

// A padded convolution that Winograd's algorithm may compute.
constexpr char kConv[] = R"(
@T.prim_func
def main(A: T.Buffer((8, 8, 16), "float32"), W: T.Buffer((3, 3, 16, 16), "float32"), C: T.Buffer((8, 8, 16), "float32")):
    P = T.alloc_buffer((10, 10, 16), "float32")
    for h, w, k in T.grid(10, 10, 16):
        with T.block("P"):
            vh, vw, vk = T.axis.remap("SSS", [h, w, k])
            P[vh, vw, vk] = T.if_then_else(1 <= vh and vh < 9 and 1 <= vw and vw < 9, A[vh - 1, vw - 1, vk], T.float32(0))
    for h, w, o, r, s, k in T.grid(8, 8, 16, 3, 3, 16):
        with T.block("C"):
            vh, vw, vo, vr, vs, vk = T.axis.remap("SSSRRR", [h, w, o, r, s, k])
            with T.init():
                C[vh, vw, vo] = T.float32(0)
            C[vh, vw, vo] = C[vh, vw, vo] + P[vh + vr, vw + vs, vk] * W[vr, vs, vk, vo]
)";

TEST(StrictJobTest, ProposesNothingThatChangesFloatsWhateverIsKnown) {
  auto store =
      *database::Store::Open(":memory:", database::Store::Mode::kReadWrite);
  farm::Farm farm({.fingerprint = testing::kFingerprint});
  Jobs jobs(*store, farm,
            {.fingerprint = testing::kFingerprint,
             .search_factory = RealSearchFactory()});
  ASSERT_TRUE(jobs.Recover().ok());
  jobs.Start();
  const std::string target = testing::TestTarget(1).Key();
  testing::FakeWorker worker(
      farm, HelloFor(target, 0), [](const farm::Lease& lease) {
        // What a strict job may not use is the fastest.
        const bool keeps =
            driver::KeepsFloats(lease.item.program, lease.item.trace);
        return testing::Measured(MadeUpSeconds(lease.item.scheduled_hash) *
                                 (keeps ? 1 : 1e-3));
      });
  const auto run = [&](bool strict) {
    JobSpec spec;
    spec.request_id = strict ? "strict" : "other";
    spec.program = kConv;
    spec.targets.push_back({target, std::nullopt});
    spec.trials = 80;
    spec.strict_fp = strict;
    const std::string id = *jobs.Submit(spec);
    for (int i = 0; i < 20'000 && !Ended(jobs.Get(id)->state); ++i) {
      usleep(5000);
    }
    return *jobs.Get(id);
  };
  const JobSnapshot other = run(/*strict=*/false);
  ASSERT_EQ(other.state, JobState::kDone) << other.error;
  const JobSnapshot strict = run(/*strict=*/true);
  ASSERT_EQ(strict.state, JobState::kDone) << strict.error;
  EXPECT_LT(other.best_seconds(), 1e-3);
  EXPECT_GE(strict.best_seconds(), 1e-3);
  std::map<std::string, int> kept, changed;  // by job
  ASSERT_TRUE(store
                  ->ForEachRecord([&](const database::Record& record) {
                    ++(driver::KeepsFloats(record.program, record.trace)
                           ? kept
                           : changed)[record.job_id];
                    return true;
                  })
                  .ok());
  EXPECT_GT(changed[other.id], 0);
  EXPECT_EQ(changed[strict.id], 0);
  EXPECT_EQ(kept[strict.id], 80);
}

}  // namespace
}  // namespace tilefarm::jobs
