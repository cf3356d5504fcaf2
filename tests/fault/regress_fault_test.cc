// A comparison outlives the death of its worker and of the server.
#include "tests/e2e/regress_fixture.h"
#include "tests/fault/fault_farm.h"

namespace tilefarm::testing {
namespace {

class RegressFaultTest : public RegressFixtureOf<FaultFarm> {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartServer());
    worker_ = StartWorker("board");
    ASSERT_TRUE(Until([&] {
      const Json devices = TuneJson({"devices"});
      return !devices.empty() && devices[0]["state"] == "idle";
    }));
    ASSERT_EQ(RunSuite("c1").exit_code, 0);
    WriteTrace(4);
    before_ = static_cast<int>(Measured().size());
  }
  // A gate that is going to find a regression, under way.
  void StartGate() {
    gate_ = Process::Spawn(
        {Bin("tune"), "regress", "gate", "--suite", suite_, "--commit", "c2",
         "--baseline", "main", "--json", "--no-attribution"},
        {"TUNE_SERVER=" + address_});
    ASSERT_NE(gate_, nullptr);
    ASSERT_TRUE(Until([&] {
      return static_cast<int>(Measured().size()) > before_;
    })) << gate_->errors();
  }
  void ExpectRegression() {
    EXPECT_EQ(gate_->Wait(absl::Minutes(4)), 1)
        << gate_->output() << gate_->errors() << "\n--- worker\n"
        << worker_->errors() << "\n--- server\n"
        << server_->errors();
    const Json report = Json::parse(gate_->output(), nullptr, false);
    ASSERT_TRUE(report.is_object()) << gate_->output();
    EXPECT_EQ(report["gate"], "regression");
  }

  std::unique_ptr<Process> worker_, gate_;
  int before_ = 0;  // measurements of the worker
};

TEST_F(RegressFaultTest, AKilledWorkerLosesItsClusterAlone) {
  ASSERT_NO_FATAL_FAILURE(StartGate());
  worker_->Kill(SIGKILL);
  worker_->Wait();
  worker_ = StartWorker("board");
  ExpectRegression();
}

TEST_F(RegressFaultTest, AKilledServerIsWaitedFor) {
  ASSERT_NO_FATAL_FAILURE(StartGate());
  server_->Kill(SIGKILL);
  server_->Wait();
  ASSERT_NO_FATAL_FAILURE(StartServer());
  ExpectRegression();
}

// What the worker has fetched is still there, or is fetched again if it was
// damaged.
TEST_F(RegressFaultTest, DamagedArtifactsAreFetchedAgain) {
  int damaged = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(state("board") + "/artifacts")) {
    std::ofstream(entry.path(), std::ios::app) << "x";
    ++damaged;
  }
  EXPECT_EQ(damaged, 1);
  ASSERT_NO_FATAL_FAILURE(StartGate());
  ExpectRegression();
}

}  // namespace
}  // namespace tilefarm::testing
