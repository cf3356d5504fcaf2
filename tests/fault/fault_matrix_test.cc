// Faults between server and workers, one scenario per test: real processes, and
// a proxy for network faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "tests/fault/fault_farm.h"
#include "tests/support/fault_proxy.h"

namespace tilefarm::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using Mode = FaultProxy::Mode;

class FaultMatrixTest : public FaultFarm {};

TEST_F(FaultMatrixTest, CandidatesOfAWorkerKilledMidRunAreMeasuredByAnother) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto dies = StartWorker("w0");
  const auto lives = StartWorker("w1");
  const std::string id = Submit(24);
  ASSERT_TRUE(WaitForTrials(id, 5));
  dies->Kill(SIGKILL);
  ExpectDone(id, 24, *lives);
  EXPECT_THAT(server_->errors(), HasSubstr("on w0 lost"));
}

TEST_F(FaultMatrixTest, ResultThatArrivesAfterItsLeaseMovedIsSuperseded) {
  // Finalists do not wait for a missing device.
  SetServer("keepalive_interval=500ms");
  SetServer("keepalive_timeout=500ms");
  ASSERT_NO_FATAL_FAILURE(StartServer());
  FaultProxy proxy(address_);
  const auto far = StartWorker("far", proxy.address());
  const auto near = StartWorker("near");
  const std::string id = Submit(24);
  ASSERT_TRUE(Until([&] { return Logged(*far, "acknowledged").size() > 2; }));
  proxy.SetMode(Mode::kStall);
  ExpectDone(id, 24, *near);
  const auto records = Records();
  // The other worker measured its candidates meanwhile.
  ASSERT_THAT(Spooled("far"), Not(IsEmpty())) << far->errors();
  proxy.SetMode(Mode::kPass);
  EXPECT_TRUE(Until([&] { return Spooled("far").empty(); })) << far->errors();
  EXPECT_THAT(Logged(*far, "superseded"), Not(IsEmpty()));
  EXPECT_EQ(Records(), records);
}

TEST_F(FaultMatrixTest, LostAcknowledgementIsMadeGoodWithOneRecord) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  FaultProxy proxy(address_);
  const auto worker = StartWorker("w0", proxy.address());
  const std::string id = Submit(24);
  ASSERT_TRUE(WaitForTrials(id, 5));
  // Results arrive and are committed, but acknowledgements do not come back.
  proxy.SetMode(Mode::kToServer);
  ASSERT_TRUE(Until([&] {
    const auto spooled = Spooled("w0");
    return !spooled.empty() && Records().size() >= Measured().size() - 1;
  }));
  const auto committed = Records();
  proxy.Cut();
  proxy.SetMode(Mode::kPass);
  EXPECT_TRUE(Until([&] { return !Logged(*worker, "superseded").empty(); }))
      << worker->errors();
  for (const std::string& candidate : Logged(*worker, "superseded")) {
    EXPECT_TRUE(committed.contains(candidate)) << candidate;
  }
  ExpectDone(id, 24, *worker);
  EXPECT_TRUE(Until([&] { return Spooled("w0").empty(); }));
}

TEST_F(FaultMatrixTest, DuplicateResultChangesNothing) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  FaultProxy proxy(address_);
  auto worker = StartWorker("w0", proxy.address());
  const std::string id = Submit(20);
  ASSERT_TRUE(WaitForTrials(id, 5));
  proxy.SetMode(Mode::kToServer);
  ASSERT_TRUE(Until([&] { return !Spooled("w0").empty(); }));
  const auto spooled = Spooled("w0").front();
  const std::string copy = dir_.File("copy");
  std::filesystem::copy_file(spooled, copy);
  proxy.SetMode(Mode::kPass);
  ExpectDone(id, 20, *worker);
  ASSERT_TRUE(Until([&] { return Spooled("w0").empty(); }));
  worker->Kill(SIGTERM);
  EXPECT_EQ(worker->Wait(), 0);
  const auto records = Records();
  // As in a state directory that was restored from a backup.
  std::filesystem::copy_file(copy, spooled);
  worker = StartWorker("w0");
  EXPECT_TRUE(Until([&] { return Spooled("w0").empty(); }));
  EXPECT_EQ(Logged(*worker, "superseded").size(), 1u);
  EXPECT_EQ(Records(), records);
}

TEST_F(FaultMatrixTest, ServerRestartedWhileLeasesAreOut) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto worker = StartWorker("w0");
  const std::string id = Submit(24);
  ASSERT_TRUE(WaitForTrials(id, 5));
  server_->Kill(SIGKILL);
  server_->Wait();
  // The candidate on the device is measured meanwhile, and its result waits.
  ASSERT_TRUE(Until([&] { return !Spooled("w0").empty(); }));
  ASSERT_NO_FATAL_FAILURE(StartServer());
  ExpectDone(id, 24, *worker);
  EXPECT_THAT(Measured(), Each(Pair(::testing::_, 1)));
}

TEST_F(FaultMatrixTest, PartitionOfThreeLeasesHeals) {
  SetServer("keepalive_interval=500ms");
  SetServer("keepalive_timeout=500ms");
  SetWorker("keepalive_interval=500ms");
  SetWorker("keepalive_timeout=500ms");
  ASSERT_NO_FATAL_FAILURE(StartServer());
  FaultProxy proxy(address_);
  const auto worker = StartWorker("w0", proxy.address());
  const std::string id = Submit(24);
  ASSERT_TRUE(WaitForTrials(id, 5));
  proxy.SetMode(Mode::kStall);
  // Both sides detect it, and the leases are lost.
  ASSERT_TRUE(Until([&] {
    return Count(worker->errors(), "no stream to") > 0 &&
           Count(server_->errors(), "on w0 lost") > 0;
  })) << worker->errors();
  // This does not change during the partition, for twice a lease's duration.
  EXPECT_FALSE(
      Until([&] { return TuneJson({"devices"})[0]["state"] != "offline"; }, 4));
  const size_t before = Records().size();
  proxy.SetMode(Mode::kPass);
  ExpectDone(id, 24, *worker);
  EXPECT_LT(before, 24u);
  // Results of lost leases count if no other device got the candidate.
  EXPECT_THAT(Measured(), Each(Pair(::testing::_, 1)));
}

TEST_F(FaultMatrixTest, SlowLinkChangesNothing) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  FaultProxy proxy(address_);
  proxy.SetDelay(absl::Milliseconds(150));
  const auto worker = StartWorker("w0", proxy.address());
  const std::string id = Submit(20);
  ExpectDone(id, 20, *worker);
  EXPECT_THAT(server_->errors(), Not(HasSubstr(" lost (")));
}

TEST_F(FaultMatrixTest, ConnectionsThatAreCutAgainAndAgainLoseNothing) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  FaultProxy proxy(address_);
  const auto worker = StartWorker("w0", proxy.address());
  const std::string id = Submit(30);
  for (int trials = 4; trials <= 24; trials += 4) {
    ASSERT_TRUE(WaitForTrials(id, trials)) << worker->errors();
    const auto accepted = proxy.accepted();
    proxy.Cut();
    ASSERT_TRUE(Until([&] { return proxy.accepted() > accepted; }))
        << worker->errors();
  }
  ExpectDone(id, 30, *worker);
  EXPECT_THAT(Measured(), Each(Pair(::testing::_, 1)));
}

TEST_F(FaultMatrixTest, PoisonCandidateIsRecordedAndTheJobGoesOn) {
  SetServer("max_losses=5");
  ASSERT_NO_FATAL_FAILURE(StartServer());
  worker_options_.insert(
      worker_options_.end(),
      {"--runner-command", std::string(TILEFARM_TEST_MEDDLING_RUNNER) +
                               " poison " + Bin("tune-runner") + " " +
                               dir_.File("poison")});
  auto worker = StartWorker("w0");
  const std::string id = Submit(25);
  int deaths = 0;
  ASSERT_TRUE(Until([&] {
    if (worker->Wait(absl::ZeroDuration()).has_value()) {
      ++deaths;
      worker = StartWorker("w0");
    }
    return Job(id)["state"] == "done";
  })) << server_->errors();
  EXPECT_EQ(Job(id)["trials_done"], 25);
  int lost = 0;
  for (const auto& [candidate, record] : Records()) {
    if (record["status"] != "device_lost") continue;
    ++lost;
    EXPECT_THAT(record["error"].get<std::string>(), HasSubstr("was lost"));
  }
  EXPECT_GE(lost, 1);
  EXPECT_GE(deaths, 3);
  EXPECT_LE(deaths, 5 * lost + 1);
}

TEST_F(FaultMatrixTest, DrainingWorkerLeavesItsLeasesToOthersAtOnce) {
  // So long that this test would time out if leases had to expire.
  SetServer("lease_duration=2h");
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto leaves = StartWorker("w0");
  const auto stays = StartWorker("w1");
  const std::string id = Submit(30);
  ASSERT_TRUE(WaitForTrials(id, 5));
  leaves->Kill(SIGTERM);
  EXPECT_EQ(leaves->Wait(absl::Seconds(30)), 0);
  EXPECT_THAT(Spooled("w0"), IsEmpty());
  ExpectDone(id, 30, *stays);
}

TEST_F(FaultMatrixTest, UnknownTimeoutIsRefusedWithThoseThereAre) {
  const CommandResult server =
      RunCommand({Bin("tune-server"), "--db", db(), "--timeout", "leese=3s"});
  EXPECT_EQ(server.exit_code, 2);
  EXPECT_THAT(server.errors, HasSubstr("lease_duration, max_losses"));
  const CommandResult worker =
      RunCommand({Bin("rpc-worker"), "--state-dir", state("w"), "--timeout",
                  "await_acks=-1s"});
  EXPECT_EQ(worker.exit_code, 2);
  EXPECT_THAT(worker.errors, HasSubstr("await_acks"));
}

}  // namespace
}  // namespace tilefarm::testing
