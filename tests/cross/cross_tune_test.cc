// Two kinds of devices in one job: this machine, and an AArch64 board emulated
// by qemu. Each gets its own best schedule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/rng.h"
#include "tests/e2e/farm_fixture.h"

namespace tilefarm::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kBoard[] = "aarch64:cortex-a72,cores=1";
constexpr int kSize = 128;   // of kMmRelu
constexpr int kTrials = 12;  // for both together

class CrossTuneTest : public FarmFixture {
 protected:
  void SetUp() override {
    if (std::string(TILEFARM_CROSS_RUNNER).empty()) {
      GTEST_SKIP() << "no cross compiler for AArch64 was found when this was "
                      "configured";
    }
    if (RunCommand({"/usr/bin/env", "qemu-aarch64-static", "--version"})
            .exit_code != 0) {
      GTEST_SKIP() << "no qemu-aarch64-static is installed";
    }
    ASSERT_EQ(access(TILEFARM_CROSS_RUNNER, X_OK), 0) << TILEFARM_CROSS_RUNNER;
  }

  std::unique_ptr<Process> StartBoard() {
    return Process::Spawn({Bin("rpc-worker"), "--server", address_, "--name",
                           "board", "--target", kBoard, "--emulated",
                           "--state-dir", dir_.File("state-board"),
                           "--lock-dir", dir_.File("locks"), "--runner-command",
                           "qemu-aarch64-static -L "
                           "/usr/aarch64-linux-gnu " TILEFARM_CROSS_RUNNER});
  }

  CommandResult Tunec(std::vector<std::string> options,
                      const std::string& output) {
    options.insert(options.begin(),
                   {Bin("tunec"), program_, "--target", kBoard, "--db", db(),
                    "--require-tuned", "-o", output});
    return RunCommand(std::move(options));
  }
};

TEST_F(CrossTuneTest, OneJobTunesForBothAndTheBoardsLibraryRuns) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto host = StartWorker("host");
  const auto board = StartBoard();
  const CommandResult run =
      Tune({"run", program_, "--target", "host,cores=1", "--target", kBoard,
            "--trials", std::to_string(kTrials), "--json"});
  ASSERT_EQ(run.exit_code, 0)
      << run.errors << host->errors() << board->errors();
  const size_t last_line = run.output.rfind('\n', run.output.size() - 2) + 1;
  const Json last = Json::parse(run.output.substr(last_line), nullptr,
                                /*allow_exceptions=*/false);
  EXPECT_EQ(last["state"], "done");
  EXPECT_EQ(last["trials_done"], kTrials);
  ASSERT_EQ(last["tasks"].size(), 2u) << last;
  for (const Json& task : last["tasks"]) {
    EXPECT_EQ(task["trials_done"], kTrials / 2) << task;
    EXPECT_GT(task["best_seconds"].get<double>(), 0) << task;
  }
  const std::string host_target = last["tasks"][0]["target"];
  EXPECT_THAT(host_target, Not(HasSubstr("aarch64")));
  EXPECT_EQ(last["tasks"][1]["target"], kBoard);
  EXPECT_EQ(Job(last["job_id"])["targets"], Json({host_target, kBoard}));
  int of_board = 0, of_host = 0;
  for (const Json& record : Export()) {
    EXPECT_EQ(record["job_id"], last["job_id"]);
    if (record["status"] != "ok") continue;
    const bool boards = record["target"] == kBoard;
    ++(boards ? of_board : of_host);
    EXPECT_EQ(record["emulated"], boards);
    EXPECT_EQ(record["verified"], true) << record;
    EXPECT_THAT(record["device"].get<std::string>(),
                ::testing::StartsWith(boards ? "board@" : "host@"));
    // Each record has the isolation of its device.
    EXPECT_NE(record["isolation"], "");
  }
  EXPECT_GT(of_board, 0);
  EXPECT_GT(of_host, 0);

  // Each is looked up on its own.
  const auto best = [&](const std::string& target) {
    return TuneJson({"best", program_, "--target", target, "--allow-emulated"});
  };
  EXPECT_EQ(best("host,cores=1")["target"], host_target);
  EXPECT_EQ(best(kBoard)["target"], kBoard);

  // An emulator's times rank schedules only if the user permits it.
  const std::string library = dir_.File("board.so");
  const CommandResult refused = Tunec({}, library);
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.errors, HasSubstr("--allow-emulated"));
  const CommandResult built = Tunec({"--allow-emulated"}, library);
  ASSERT_EQ(built.exit_code, 0) << built.errors;
  EXPECT_THAT(built.errors + built.output, HasSubstr("emulator"));

  Rng rng(7);
  std::vector<float> a(kSize * kSize), b(a.size()), c(a.size());
  for (std::vector<float>* side : {&a, &b}) {
    for (float& x : *side) x = static_cast<float>(rng.Between(-8, 8));
  }
  std::string bytes;
  for (const std::vector<float>* buffer : {&a, &b, &c}) {
    bytes.append(reinterpret_cast<const char*>(buffer->data()),
                 buffer->size() * 4);
  }
  const std::string file = dir_.Write("buffers", bytes);
  const std::string size = std::to_string(c.size() * 4);
  const CommandResult ran =
      RunCommand({"/usr/bin/env", "qemu-aarch64-static", "-cpu", "cortex-a72",
                  "-L", "/usr/aarch64-linux-gnu", TILEFARM_RUN_ARTIFACT_AARCH64,
                  library, "mm_relu", file, size, size, size});
  ASSERT_EQ(ran.exit_code, 0) << ran.errors;
  std::ifstream in(file, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(2 * c.size() * 4));
  in.read(reinterpret_cast<char*>(c.data()),
          static_cast<std::streamsize>(c.size() * 4));
  ASSERT_TRUE(in.good());
  for (int i = 0; i < kSize; ++i) {
    for (int j = 0; j < kSize; ++j) {
      float sum = 0;  // of whole numbers: exact
      for (int k = 0; k < kSize; ++k) {
        sum += a[static_cast<size_t>(i * kSize + k)] *
               b[static_cast<size_t>(k * kSize + j)];
      }
      ASSERT_EQ(c[static_cast<size_t>(i * kSize + j)], std::max(sum, 0.0F))
          << i << " " << j;
    }
  }
}

TEST_F(CrossTuneTest, TheSameTargetTwiceIsBadUsage) {
  address_ = "127.0.0.1:1";  // must not be called
  const CommandResult twice =
      Tune({"submit", program_, "--target", kBoard, "--target",
            "aarch64:cortex-a72,cores=1", "--trials", "4"});
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_THAT(twice.errors, HasSubstr("are the same"));
}

TEST_F(CrossTuneTest, ATargetThatIsNotThisMachineNeedsARunner) {
  const CommandResult result =
      RunCommand({Bin("rpc-worker"), "--server", "127.0.0.1:1", "--target",
                  kBoard, "--state-dir", dir_.File("state")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.errors, HasSubstr("--runner-command"));
}

}  // namespace
}  // namespace tilefarm::testing
