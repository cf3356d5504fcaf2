// A farm with its jobs, for tests of jobs.
#ifndef TILEFARM_TESTS_SERVER_JOBS_FIXTURE_H_
#define TILEFARM_TESTS_SERVER_JOBS_FIXTURE_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include "server/jobs/job_log.h"
#include "server/jobs/jobs.h"
#include "tests/server/fake_search.h"
#include "tests/server/fake_worker.h"

namespace tilefarm::jobs {

inline std::optional<farm::Measurement> Quick(const farm::Lease& lease) {
  return testing::Measured(1e-3 +
                           1e-6 * static_cast<double>(lease.item.sequence));
}

class JobsTest : public ::testing::Test {
 protected:
  JobsTest() : store_(*database::Store::Open(":memory:", kReadWrite)) {
    Restart(testing::FakeSearchFactory());
  }

  // A new server process on the same database.
  void Restart(SearchFactory factory, bool start = true) {
    jobs_.reset();
    farm_.reset();
    farm::Timeouts timeouts;
    timeouts.former_hold = absl::Milliseconds(200);
    timeouts.tick = absl::Milliseconds(20);
    timeouts.watch_interval = absl::Milliseconds(20);
    timeouts.search_poll = search_poll_;
    farm_ = std::make_unique<farm::Farm>(
        farm::FarmOptions{.timeouts = timeouts,
                          .fingerprint = testing::kFingerprint,
                          .lease_key = "key"});
    jobs_ =
        std::make_unique<Jobs>(*store_, *farm_,
                               JobsOptions{.timeouts = timeouts,
                                           .fingerprint = testing::kFingerprint,
                                           .search_factory = std::move(factory),
                                           .quotas = quotas_});
    ASSERT_TRUE(jobs_->Recover().ok());
    if (start) jobs_->Start();
  }

  JobSpec Spec(int64_t trials = 20) {
    JobSpec spec;
    spec.request_id = "request-" + std::to_string(++requests_);
    spec.program = testing::kMatmul;
    spec.program_name = "matmul.py";
    spec.targets = {{testing::TestTarget().Key(), std::nullopt}};
    spec.trials = trials;
    return spec;
  }
  JobSnapshot WaitForEnd(const std::string& id) {
    return WaitFor(id, [](const JobSnapshot& s) { return Ended(s.state); });
  }
  template <typename Condition>
  JobSnapshot WaitFor(const std::string& id, Condition condition) {
    JobSnapshot snapshot;
    for (int i = 0; i < 30'000; ++i) {
      snapshot = *jobs_->Get(id);
      if (condition(snapshot)) return snapshot;
      usleep(2000);
    }
    ADD_FAILURE() << "still " << JobStateName(snapshot.state) << " with "
                  << snapshot.trials_done << " trials";
    return snapshot;
  }
  // The entry for the test's target in the job's log.
  OpenedTarget Opened(const std::string& id) {
    return ReadLog(*store_->ReadJobLog(id))
        ->Opened(testing::TestTarget().Key(), /*only=*/false);
  }
  std::vector<database::Record> Records() {
    std::vector<database::Record> all;
    EXPECT_TRUE(store_
                    ->ForEachRecord([&](const database::Record& record) {
                      all.push_back(record);
                      return true;
                    })
                    .ok());
    return all;
  }

  static constexpr auto kReadWrite = database::Store::Mode::kReadWrite;
  std::unique_ptr<database::Store> store_;
  std::unique_ptr<farm::Farm> farm_;
  std::unique_ptr<Jobs> jobs_;
  int requests_ = 0;
  Quotas quotas_;                                       // used by Restart
  absl::Duration search_poll_ = absl::Milliseconds(5);  // used by Restart
};

}  // namespace tilefarm::jobs

#endif  // TILEFARM_TESTS_SERVER_JOBS_FIXTURE_H_
