// What a server does when a user's quota is used up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "tests/server/jobs_fixture.h"

namespace tilefarm::jobs {
namespace {

using testing::FakeSearchFactory;
using testing::FakeWorker;
using ::testing::HasSubstr;
using testing::TestHello;

TEST_F(JobsTest, RefusesMoreJobsThanAUserMayHave) {
  ASSERT_TRUE(quotas_.Set("jobs=2").ok());
  ASSERT_TRUE(quotas_.Set("bob:jobs=3").ok());
  Restart(FakeSearchFactory());
  const auto submit = [&](const std::string& user) {
    JobSpec spec = Spec();
    spec.user = user;
    return jobs_->Submit(spec);
  };
  const auto first = submit("alice");
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(submit("alice").ok());
  const absl::Status refused = submit("alice").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("alice has 2 jobs that have not ended, of 2"));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(submit("bob").ok());
  EXPECT_FALSE(submit("bob").ok());
  ASSERT_TRUE(jobs_->Cancel(*first).ok());
  WaitForEnd(*first);
  EXPECT_TRUE(submit("alice").ok());
}

TEST_F(JobsTest, EndsJobsWhoseUserHasUsedUpDeviceTime) {
  // A few leases are enough.
  ASSERT_TRUE(quotas_.Set("alice:device_hours=1e-9").ok());
  Restart(FakeSearchFactory());
  JobSpec spec = Spec(/*trials=*/100'000);
  spec.user = "alice";
  const std::string id = *jobs_->Submit(spec);
  spec = Spec(/*trials=*/5);
  spec.user = "bob";
  const std::string other = *jobs_->Submit(spec);
  std::optional<FakeWorker> worker(std::in_place, *farm_, TestHello("w0"),
                                   Quick);
  const JobSnapshot ended = WaitForEnd(id);
  // On a slow machine, the baselines alone use it up.
  EXPECT_EQ(ended.state,
            ended.trials_done > 0 ? JobState::kDone : JobState::kFailed)
      << ended.error;
  EXPECT_LT(ended.trials_done, 100'000);
  EXPECT_THAT(ended.error, HasSubstr("ended early: alice has used"));
  // Others are served.
  EXPECT_EQ(WaitForEnd(other).trials_done, 5);
  spec = Spec();
  spec.user = "alice";
  EXPECT_THAT(std::string(jobs_->Submit(spec).status().message()),
              HasSubstr("device hours"));
  MeasureSpec measure;
  measure.user = "alice";
  EXPECT_EQ(jobs_->Measure(measure, [](auto) {}).status().code(),
            absl::StatusCode::kResourceExhausted);
  // The next process knows what was used.
  worker.reset();
  Restart(FakeSearchFactory());
  EXPECT_EQ(jobs_->Submit(Spec()).ok(), true);
  EXPECT_EQ(jobs_->Submit(spec).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(JobsTest, QueuedJobsOfSuchAUserWait) {
  // Nothing starts here, so that the job is still queued in the next process.
  Restart(FakeSearchFactory(), /*start=*/false);
  JobSpec spec = Spec();
  spec.user = "alice";
  const std::string queued = *jobs_->Submit(spec);
  DeviceTime used;
  used.Add("alice", absl::Now(), absl::Hours(2));
  ASSERT_TRUE(store_->PutBlob("device-time", used.Print()).ok());
  ASSERT_TRUE(quotas_.Set("device_hours=1").ok());
  Restart(FakeSearchFactory());
  const JobSnapshot waits = WaitFor(queued, [](const JobSnapshot& s) {
    return s.message.find("device hours") != std::string::npos ||
           Ended(s.state);
  });
  EXPECT_EQ(waits.state, JobState::kQueued) << waits.error;
  EXPECT_THAT(waits.message, HasSubstr("alice has used 2.0 device hours of 1"));
}

TEST_F(JobsTest, DamagedDeviceTimeCountsFromNothing) {
  ASSERT_TRUE(store_->PutBlob("device-time", "{").ok());
  ASSERT_TRUE(quotas_.Set("device_hours=1").ok());
  Restart(FakeSearchFactory());
  EXPECT_TRUE(jobs_->Submit(Spec()).ok());
}

TEST_F(JobsTest, StorageIsTheShareOfRecords) {
  Restart(FakeSearchFactory());
  JobSpec spec = Spec(/*trials=*/5);
  spec.user = "alice";
  {
    FakeWorker worker(*farm_, TestHello("w0"), Quick);
    WaitForEnd(*jobs_->Submit(spec));
  }
  const int64_t all = *store_->BytesOfUser("alice");
  EXPECT_GT(all, 0);
  EXPECT_EQ(*store_->BytesOfUser("bob"), 0);
  ASSERT_TRUE(quotas_.Set("storage=1KiB").ok());
  Restart(FakeSearchFactory());
  spec = Spec();
  spec.user = "alice";
  EXPECT_THAT(std::string(jobs_->Submit(spec).status().message()),
              HasSubstr("tune db prune makes room"));
  spec.user = "bob";
  spec.request_id = "other";
  EXPECT_TRUE(jobs_->Submit(spec).ok());
}

}  // namespace
}  // namespace tilefarm::jobs
