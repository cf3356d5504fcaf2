// A farm under a fake clock, with workers simulated by the tests.
#ifndef TILEFARM_TESTS_SERVER_FARM_FIXTURE_H_
#define TILEFARM_TESTS_SERVER_FARM_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/farm/farm.h"
#include "tests/server/fake_worker.h"
#include "tests/support/fake_clock.h"

namespace tilefarm::farm {

inline constexpr char kLeaseKey[] = "key";

// Stores the completions that it gets.
class FakeSink : public ResultSink {
 public:
  void OnResult(Completion completion) override {
    completions.push_back(std::move(completion));
  }
  std::vector<Completion> completions;
};

// Lease ids are lease-1, lease-2, ... in the order of the grants.
class FarmTest : public ::testing::Test {
 protected:
  FarmTest()
      : farm_({.clock = &clock_,
               .fingerprint = testing::kFingerprint,
               .lease_key = kLeaseKey,
               .new_lease_id = [this] {
                 return "lease-" + std::to_string(++leases_made_);
               }}) {
    farm_.SetSink(&sink_);
  }

  struct Connected {
    std::shared_ptr<testing::FakeLink> link =
        std::make_shared<testing::FakeLink>();
    int64_t session = 0;
  };
  Connected Connect(const WorkerHello& hello, int slots = 1) {
    Connected worker;
    worker.session = *farm_.Connect(hello, worker.link);
    farm_.OnState(worker.session, {}, false, slots);
    return worker;
  }
  Connected Connect(const std::string& name, int slots = 1) {
    return Connect(testing::TestHello(name), slots);
  }
  WorkItem Item(const std::string& id, const std::string& queue = "job") {
    WorkItem item;
    item.candidate_id = id;
    item.queue = queue;
    item.task_id = "task";
    item.race = "race";
    item.target = testing::TestTarget();
    return item;
  }
  void Add(const std::string& id, const std::string& queue = "job",
           Where where = Where::kBack) {
    ASSERT_TRUE(farm_.Add(Item(id, queue), where).ok());
  }
  // Reports a success with the attempt that the worker got.
  void Report(const Connected& worker, const std::string& lease,
              const std::string& candidate) {
    uint32_t attempt = 1;
    for (const Lease& one : worker.link->leases()) {
      if (one.lease_id == lease) attempt = one.attempt;
    }
    farm_.OnResult(worker.session, {.lease_id = lease,
                                    .attempt = attempt,
                                    .candidate_id = candidate,
                                    .measurement = testing::Measured(1e-3)});
  }
  // Sends a state with one lease.
  void Hold(const Connected& worker, const std::string& lease, Phase phase,
            int slots = 1) {
    const HeldLease held[] = {{lease, 1, phase}};
    farm_.OnState(worker.session, held, false, slots);
  }
  void Pass(absl::Duration time) {
    clock_.Advance(time);
    farm_.Tick();
  }

  testing::FakeClock clock_;
  int leases_made_ = 0;
  FakeSink sink_;
  Farm farm_;
};

}  // namespace tilefarm::farm

#endif  // TILEFARM_TESTS_SERVER_FARM_FIXTURE_H_
