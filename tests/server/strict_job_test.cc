// A job with --strict-fp proposes no schedule that changes floats; one with
// --no-winograd none that uses Winograd's algorithm.
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

TEST(StrictJobTest, WithoutWinogradOtherRoundingStays) {
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
        const bool winograd = !driver::Obeys(
            ir::FloatRule::kNoWinograd, lease.item.program, lease.item.trace);
        const bool keeps =
            driver::KeepsFloats(lease.item.program, lease.item.trace);
        return testing::Measured(MadeUpSeconds(lease.item.scheduled_hash) *
                                 (winograd ? 1e-6
                                  : keeps  ? 1
                                           : 1e-3));
      });
  const auto run = [&](bool no_winograd) {
    JobSpec spec;
    spec.request_id = no_winograd ? "without" : "other";
    spec.program = kConv;
    spec.targets.push_back({target, std::nullopt});
    spec.trials = 80;
    spec.no_winograd = no_winograd;
    const std::string id = *jobs.Submit(spec);
    for (int i = 0; i < 20'000 && !Ended(jobs.Get(id)->state); ++i) {
      usleep(5000);
    }
    return *jobs.Get(id);
  };
  // The best of each: what is known of it is in the snapshot.
  const JobSnapshot other = run(/*no_winograd=*/false);
  ASSERT_EQ(other.state, JobState::kDone) << other.error;
  const JobSnapshot without = run(/*no_winograd=*/true);
  ASSERT_EQ(without.state, JobState::kDone) << without.error;
  EXPECT_LT(other.best_seconds(), without.best_seconds());
  ASSERT_FALSE(other.tasks[0].algorithms.empty());
  EXPECT_EQ(other.tasks[0].algorithms[0].substr(0, 10), "winograd F");
  EXPECT_FALSE(other.tasks[0].keeps_floats);
  // Padding is left out instead.
  EXPECT_LT(without.best_seconds(), 1e-3);
  EXPECT_FALSE(without.tasks[0].keeps_floats);
  int winograd = 0;
  ASSERT_TRUE(store
                  ->ForEachRecord([&](const database::Record& record) {
                    winograd += record.job_id == without.id &&
                                !driver::Obeys(ir::FloatRule::kNoWinograd,
                                               record.program, record.trace);
                    return true;
                  })
                  .ok());
  EXPECT_EQ(winograd, 0);
}

}  // namespace
}  // namespace tilefarm::jobs
