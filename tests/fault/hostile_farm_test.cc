// Hostile programs and greedy users in a farm of real processes: only they are
// affected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/e2e/secure_farm_fixture.h"
#include "tests/fault/fault_farm.h"
#include "tests/fault/hostile_acts.h"

namespace tilefarm::testing {
namespace {

using ::testing::HasSubstr;

class HostileFarmTest : public FaultFarm {
 protected:
  // The error records.
  static std::string Trouble(const std::map<std::string, Json>& records) {
    std::string text;
    for (const auto& [candidate, record] : records) {
      if (record["status"] == "ok") continue;
      text += record["status"].get<std::string>() + ": " +
              record.value("error", "") + "\n";
    }
    return text;
  }
};

TEST_F(HostileFarmTest, KernelsThatWantToDoHarmAreRecordedAndTheJobGoesOn) {
  const CommandResult isolation =
      RunCommand({Bin("tune-runner"), "--isolation"});
  if (isolation.output.find("seccomp") == std::string::npos) {
    GTEST_SKIP() << "no system call filter here: " << isolation.output;
  }
  ASSERT_NO_FATAL_FAILURE(StartServer());
  worker_options_.insert(
      worker_options_.end(),
      {"--runner-command", std::string(TILEFARM_TEST_MEDDLING_RUNNER) +
                               " hostile " + Bin("tune-runner") + " " +
                               TILEFARM_TEST_HOSTILE_KERNELS});
  const auto worker = StartWorker("w0");
  const std::string id = Submit(40);
  ExpectDone(id, 40, *worker);
  const auto records = Records();
  for (const Act& act : kActs) {
    EXPECT_TRUE(std::any_of(
        records.begin(), records.end(),
        [&](const auto& entry) {
          const Json& record = entry.second;
          return record["status"] == act.status &&
                 record.value("error", "").find(act.error) != std::string::npos;
        }))
        << act.name << " is none of " << Trouble(records);
  }
  // Other users are not affected, and the farm still has its device.
  const auto bad = std::count_if(
      records.begin(), records.end(),
      [](const auto& entry) { return entry.second["status"] != "ok"; });
  EXPECT_EQ(static_cast<size_t>(bad), std::size(kActs));
  EXPECT_FALSE(worker->Wait(absl::ZeroDuration()).has_value());
  EXPECT_GT(Job(id)["best_seconds"], 0);
  EXPECT_TRUE(
      Until([&] { return TuneJson({"devices"})[0]["state"] == "idle"; }));
}

class CrowdedFarmTest : public SecureFarmFixture {};

TEST_F(CrowdedFarmTest, AUserWhoFloodsTheFarmLeavesOthersTheirShare) {
  constexpr int kFlood = 12, kFloodTrials = 60, kTrials = 24;
  ASSERT_EQ(MakeCerts({"--server", "127.0.0.1", "--worker", "w0", "--user",
                       "alice", "--user", "bob"})
                .exit_code,
            0);
  ASSERT_NO_FATAL_FAILURE(StartServerWith(MutualTls()));
  const Args alice = ClientTls("user-alice"), bob = ClientTls("user-bob");
  // Jobs on the same workload share measurements: other seeds, other trials.
  const auto submit = [&](const Args& user, int trials, int seed) {
    return TuneJsonWith(user, {"submit", program_, "--target", "host,cores=1",
                               "--trials", std::to_string(trials), "--model",
                               "random", "--seed", std::to_string(seed)})
        .value("id", "");
  };
  for (int i = 0; i < kFlood; ++i) submit(alice, kFloodTrials, i);
  // The number of records of a user's jobs.
  const auto done = [&](const std::string& user) {
    int trials = 0;
    for (const Json& job : TuneJsonWith(bob, {"jobs"})) {
      if (job["user"] == user) trials += job["trials_done"].get<int>();
    }
    return trials;
  };
  const auto worker = StartWorkerWith("w0", ClientTls("worker-w0"));
  ASSERT_TRUE(Until([&] { return done("alice") >= 30; })) << worker->errors();
  const int before = done("alice");
  const std::string id = submit(bob, kTrials, 100);
  ASSERT_TRUE(Until([&] { return done("bob") == kTrials; }));
  // About as many as bob's; if bob's job waited for its turn among the others,
  // 720 of alice's trials would come first.
  EXPECT_LT(done("alice") - before, 8 * kTrials);
}

}  // namespace
}  // namespace tilefarm::testing
