// kill -9 of the server and of a worker in the middle of a job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <map>
#include <set>
#include <sstream>

#include "tests/e2e/farm_fixture.h"

namespace tilefarm::testing {
namespace {

using ::testing::HasSubstr;

class ServerKillTest : public FarmFixture {
 protected:
  // Maps candidate ids to their exported records.
  std::map<std::string, Json> ById(const std::vector<Json>& records) {
    std::map<std::string, Json> by_id;
    for (const Json& record : records) {
      const bool first = by_id.emplace(record["candidate_id"], record).second;
      EXPECT_TRUE(first) << "twice: " << record["candidate_id"];
    }
    return by_id;
  }

  // Expects `after` to be the record `before`, with all its measurements. Good
  // candidates are measured again, at the end and to confirm a new best; this
  // adds measurements at any time.
  void ExpectKept(Json before, Json after) {
    const Json had = before.value("remeasured", Json::array());
    const Json has = after.value("remeasured", Json::array());
    ASSERT_GE(has.size(), had.size());
    for (size_t i = 0; i < had.size(); ++i) EXPECT_EQ(has[i], had[i]);
    before.erase("remeasured");
    after.erase("remeasured");
    EXPECT_EQ(after, before);
  }
};

TEST_F(ServerKillTest, JobGoesOnAfterTheServerIsKilled) {
  constexpr int kTrials = 120;
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto worker = StartWorker("w0");
  auto run = Process::Spawn(
      {Bin("tune"), "run", program_, "--target", "host,cores=1", "--trials",
       std::to_string(kTrials), "--json", "--server", address_});
  ASSERT_TRUE(Until([&] { return !TuneJson({"jobs"}).empty(); }));
  const std::string id = TuneJson({"jobs"})[0]["id"];

  std::map<std::string, Json> before;
  for (const int trials : {15, 45, 80}) {
    ASSERT_TRUE(WaitForTrials(id, trials)) << worker->errors();
    const auto acknowledged = ById(Export());
    EXPECT_GE(acknowledged.size(), static_cast<size_t>(trials));
    server_->Kill(SIGKILL);
    ASSERT_EQ(server_->Wait(), -SIGKILL);
    ASSERT_NO_FATAL_FAILURE(StartServer());
    // Every acknowledged record is still there.
    const auto after = ById(Export());
    for (const auto& [candidate, record] : acknowledged) {
      ASSERT_TRUE(after.contains(candidate));
      ExpectKept(record, after.at(candidate));
    }
    before = acknowledged;
  }
  // The job continues without another submission; the watching client
  // reconnects.
  EXPECT_EQ(run->Wait(absl::Minutes(3)), 0) << run->errors();
  EXPECT_THAT(run->errors(), HasSubstr("away"));
  EXPECT_TRUE(WaitForState(id, "done"));
  EXPECT_EQ(Job(id)["trials_done"], kTrials);
  const auto all = ById(Export());
  EXPECT_EQ(all.size(), static_cast<size_t>(kTrials));
  for (const auto& [candidate, record] : before) {
    ExpectKept(record, all.at(candidate));
  }
  // Nothing was measured again: each candidate has one sequence number and one
  // schedule.
  std::set<std::string> traces;
  std::set<int64_t> sequences;
  for (const auto& [candidate, record] : all) {
    traces.insert(record["trace"].dump());
    sequences.insert(record["sequence"].get<int64_t>());
  }
  EXPECT_EQ(traces.size(), all.size());
  EXPECT_EQ(sequences.size(), all.size());
}

TEST_F(ServerKillTest, CandidatesOfAKilledWorkerAreMeasuredAfterItReturns) {
  constexpr int kTrials = 60;
  ASSERT_NO_FATAL_FAILURE(StartServer());
  auto worker = StartWorker("w0");
  const std::string id = Submit(kTrials);
  for (const int trials : {10, 30}) {
    ASSERT_TRUE(WaitForTrials(id, trials)) << worker->errors();
    worker->Kill(SIGKILL);
    ASSERT_EQ(worker->Wait(), -SIGKILL);
    EXPECT_TRUE(
        Until([&] { return TuneJson({"devices"})[0]["state"] == "offline"; }));
    worker = StartWorker("w0");
  }
  ASSERT_TRUE(WaitForState(id, "done")) << worker->errors();
  EXPECT_EQ(Job(id)["trials_done"], kTrials);
  EXPECT_EQ(ById(Export()).size(), static_cast<size_t>(kTrials));
}

TEST_F(ServerKillTest, JobsSurviveAServerThatDiesBeforeTheyRun) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const std::string first = Submit(6);
  const std::string second = Submit(6);
  server_->Kill(SIGKILL);
  server_->Wait();
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto worker = StartWorker("w0");
  EXPECT_TRUE(WaitForState(first, "done")) << worker->errors();
  EXPECT_TRUE(WaitForState(second, "done")) << worker->errors();
  EXPECT_EQ(ById(Export()).size(), 12u);
}

}  // namespace
}  // namespace tilefarm::testing
