// The wall clock of a server or a worker is stepped by an hour, in either
// direction, while it works: nothing expires or hangs, and records keep their
// order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>

#include "tests/fault/fault_farm.h"

namespace tilefarm::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kHour = 3600;

class ClockStepTest : public FaultFarm {
 protected:
  ClockStepTest() {
    SetClock(0);
    // Not in the folder of the job's clients, which keep their clocks.
    shifted_ = {"LD_PRELOAD=" TILEFARM_TEST_CLOCK_SHIM,
                "CLOCK_SHIM_FILE=" + dir_.File("clock")};
  }

  // Write in place, since the file is mapped.
  void SetClock(int64_t seconds) {
    const std::string path = dir_.File("clock");
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    if (!file) file.open(path, std::ios::binary | std::ios::out);
    file.write(reinterpret_cast<const char*>(&seconds), sizeof seconds);
  }

  // A job with a budget of time and of trials, over two steps.
  void Run() {
    ASSERT_NO_FATAL_FAILURE(StartServer());
    const auto worker = StartWorker("w0");
    const std::string id =
        TuneJson({"submit", program_, "--target", "host,cores=1", "--trials",
                  "100000", "--time", "10m"})["id"];
    for (const int64_t step : {kHour, -kHour, int64_t{0}}) {
      const int before = Job(id)["trials_done"];
      SetClock(step);
      // More than the device held at that moment.
      ASSERT_TRUE(WaitForTrials(id, before + 10))
          << worker->errors() << server_->errors();
      // Longer than a lease, so it must be renewed meanwhile.
      EXPECT_FALSE(Until(
          [&] { return TuneJson({"devices"})[0]["state"] == "offline"; }, 3));
    }
    EXPECT_EQ(Tune({"cancel", id}).exit_code, 0);
    EXPECT_TRUE(WaitForState(id, "cancelled"));
    // Every timeout had its length: nothing was lost, no stream ended.
    EXPECT_THAT(server_->errors(), Not(HasSubstr(" lost (")));
    EXPECT_EQ(Count(worker->errors(), "connected to"), 1) << worker->errors();
    // Each has a unique number, whatever the hour.
    std::set<int64_t> sequences;
    const std::vector<Json> records = Export();
    for (const Json& record : records) {
      sequences.insert(record["sequence"].get<int64_t>());
    }
    EXPECT_EQ(sequences.size(), records.size());
    // The server hears of a worker without work, too.
    SetClock(-2 * kHour);
    for (int i = 0; i < 3; ++i) {
      const Json seen = TuneJson({"devices"})[0]["last_seen"];
      EXPECT_TRUE(Until(
          [&] { return TuneJson({"devices"})[0]["last_seen"] != seen; }, 30));
    }
    worker->Kill(SIGTERM);
    EXPECT_EQ(worker->Wait(absl::Seconds(30)), 0);
  }

  std::vector<std::string> shifted_;
};

TEST_F(ClockStepTest, OfTheServer) {
  server_environment_ = shifted_;
  Run();
  // Otherwise the shim did nothing.
  std::set<std::string> hours;
  for (const Json& record : Export()) {
    hours.insert(record["recorded_at"].get<std::string>().substr(0, 13));
  }
  EXPECT_GE(hours.size(), 3u);
}

TEST_F(ClockStepTest, OfTheWorker) {
  worker_environment_.insert(worker_environment_.end(), shifted_.begin(),
                             shifted_.end());
  Run();
}

}  // namespace
}  // namespace tilefarm::testing
