// What searches get to know about the devices they tune for.
#include <gmock/gmock.h>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "server/jobs/job_log.h"
#include "tests/server/jobs_fixture.h"

namespace tilefarm::jobs {
namespace {

using ::testing::ElementsAre;
using testing::FakeSearchFactory;
using testing::FakeWorker;
using ::testing::SizeIs;
// Records the caches of the targets that searches were created for. Shared with
// search threads, which outlive a test's body.
class NotedCaches {
 public:
  void Add(const target::CacheSizes& caches) {
    MutexLock lock(mutex_);
    all_.push_back(caches);
  }
  std::vector<target::CacheSizes> all() const {
    MutexLock lock(mutex_);
    return all_;
  }
  // Waits until this many searches were created.
  std::vector<target::CacheSizes> WaitFor(size_t count) const {
    for (int i = 0; i < 30'000 && all().size() < count; ++i) usleep(1000);
    return all();
  }

 private:
  mutable Mutex mutex_;
  std::vector<target::CacheSizes> all_ ABSL_GUARDED_BY(mutex_);
};

SearchFactory NotesCaches(const std::shared_ptr<NotedCaches>& caches) {
  SearchFactory factory = FakeSearchFactory();
  factory.make_search =
      [caches, make = factory.make_search](const SearchRequest& request) {
        caches->Add(request.target.caches);
        return make(request);
      };
  return factory;
}

TEST_F(JobsTest, TheSearchSeesTheCachesOfTheFirstDevice) {
  const auto caches = std::make_shared<NotedCaches>();
  Restart(NotesCaches(caches));
  const std::string id = *jobs_->Submit(Spec(3));
  WaitFor(id, [](const JobSnapshot& s) { return !s.message.empty(); });
  EXPECT_THAT(caches->all(), SizeIs(0));
  {
    FakeWorker worker(*farm_, "w", Quick);
    EXPECT_EQ(WaitForEnd(id).state, JobState::kDone);
  }
  const target::CacheSizes announced = testing::TestHello("w").device.caches();
  EXPECT_NE(announced, target::CacheSizes());
  EXPECT_THAT(caches->all(), ElementsAre(announced));
  EXPECT_EQ(Opened(id).caches, announced);
}

TEST_F(JobsTest, TheClientsCachesAreKeptWithTheJob) {
  const target::CacheSizes own = {64 << 10, 4 << 20, 8 << 20};
  const auto caches = std::make_shared<NotedCaches>();
  Restart(NotesCaches(caches));
  JobSpec spec = Spec(1'000'000);
  spec.targets[0].caches = own;
  const std::string id = *jobs_->Submit(spec);
  {
    FakeWorker worker(*farm_, "w", Quick);
    WaitFor(id, [](const JobSnapshot& s) { return s.trials_done > 3; });
  }
  Restart(NotesCaches(caches));
  FakeWorker worker(*farm_, "w", Quick);
  EXPECT_THAT(caches->WaitFor(2), ElementsAre(own, own));
}

TEST_F(JobsTest, AResumedJobKeepsTheCachesItStartedWith) {
  const auto caches = std::make_shared<NotedCaches>();
  Restart(NotesCaches(caches));
  const std::string id = *jobs_->Submit(Spec(1'000'000));
  {
    FakeWorker worker(*farm_, "w", Quick);
    WaitFor(id, [](const JobSnapshot& s) { return s.trials_done > 3; });
  }
  Restart(NotesCaches(caches));
  // Another device is connected now.
  farm::WorkerHello hello = testing::TestHello("x");
  hello.device.l2_bytes *= 2;
  ASSERT_TRUE(
      farm_->Connect(hello, std::make_shared<testing::FakeLink>()).ok());
  const std::vector<target::CacheSizes> all = caches->WaitFor(2);
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all.front(), all.back());
}

// A factory that records which libraries the search may use.
SearchFactory NotesLibraries(std::vector<std::vector<std::string>>& noted) {
  SearchFactory factory = FakeSearchFactory();
  factory.make_search = [make = factory.make_search,
                         &noted](const SearchRequest& request) {
    noted.push_back(request.libraries);
    return make(request);
  };
  return factory;
}

TEST_F(JobsTest, LibrariesAreOfferedWherePermittedAndThere) {
  std::vector<std::vector<std::string>> noted;
  Restart(NotesLibraries(noted));
  farm::WorkerHello hello = testing::TestHello("w");
  hello.device.libraries["openblas"] = "0.3.21";
  FakeWorker worker(*farm_, hello, Quick);
  EXPECT_EQ(WaitForEnd(*jobs_->Submit(Spec(3))).state, JobState::kDone);
  JobSpec spec = Spec(3);
  spec.allow_library = true;
  // The client knows the caches, but not the device's libraries.
  spec.targets[0].caches = target::CacheSizes();
  const std::string id = *jobs_->Submit(spec);
  EXPECT_EQ(WaitForEnd(id).state, JobState::kDone);
  EXPECT_THAT(noted, ElementsAre(std::vector<std::string>(),
                                 std::vector<std::string>{"openblas"}));
  EXPECT_THAT(*Opened(id).libraries, ElementsAre("openblas"));
}

TEST_F(JobsTest, AJobWithoutThePermissionDoesNotTakeALibrarysTime) {
  FakeWorker worker(*farm_, "w", Quick);
  EXPECT_EQ(WaitForEnd(*jobs_->Submit(Spec(3))).state, JobState::kDone);
  // Another user's record of the same task, which is much faster.
  database::Record fast = Records().front();
  fast.candidate_id = "library";
  fast.trace = "sch.call_library(b0, kernel=\"openblas.sgemm\")\n";
  fast.seconds = {1e-6};
  fast.median_seconds = fast.ci_low_seconds = fast.ci_high_seconds = 1e-6;
  fast.remeasured.clear();
  ASSERT_TRUE(store_->AddRecords(std::vector{fast}).ok());
  EXPECT_GT(WaitForEnd(*jobs_->Submit(Spec(3))).best_seconds(), 1e-4);
  JobSpec spec = Spec(3);
  spec.allow_library = true;
  EXPECT_LT(WaitForEnd(*jobs_->Submit(spec)).best_seconds(), 1e-4);
}

TEST_F(JobsTest, AStrictJobDoesNotTakeTheTimeOfAScheduleThatChangesFloats) {
  std::optional<FakeWorker> worker;
  worker.emplace(*farm_, "w", Quick);
  EXPECT_EQ(WaitForEnd(*jobs_->Submit(Spec(3))).state, JobState::kDone);
  database::Record fast = Records().front();
  fast.candidate_id = "winograd";
  fast.trace = "b1, b2, b3, b4, b5, b6 = sch.winograd(b0, tile=2)\n";
  fast.seconds = {1e-6};
  fast.median_seconds = fast.ci_low_seconds = fast.ci_high_seconds = 1e-6;
  fast.remeasured.clear();
  ASSERT_TRUE(store_->AddRecords(std::vector{fast}).ok());
  JobSpec strict = Spec(3);
  strict.strict_fp = true;
  const std::string id = *jobs_->Submit(strict);
  EXPECT_GT(WaitForEnd(id).best_seconds(), 1e-4);
  const std::string rounds = *jobs_->Submit(Spec(3));
  EXPECT_LT(WaitForEnd(rounds).best_seconds(), 1e-4);
  // The same after a restart, when jobs are read from the database.
  worker.reset();
  Restart(testing::FakeSearchFactory());
  EXPECT_GT(jobs_->Get(id)->best_seconds(), 1e-4);
  EXPECT_LT(jobs_->Get(rounds)->best_seconds(), 1e-4);
}

}  // namespace
}  // namespace tilefarm::jobs
