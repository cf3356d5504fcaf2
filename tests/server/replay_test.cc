// The log of a job makes its search replayable (DESIGN 3.4): the same seed,
// database and order of results give the same candidates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "server/jobs/job_log.h"
#include "server/jobs/jobs.h"
#include "server/jobs/search_factory.h"
#include "tests/server/fake_search.h"
#include "tests/server/fake_worker.h"

namespace tilefarm::jobs {
namespace {

using Json = nlohmann::json;

// A made-up time that depends on the schedule alone.
double MadeUpSeconds(const std::string& scheduled_hash) {
  return 1e-3 * (1 + static_cast<double>(Sha256Prefix(scheduled_hash) % 1000));
}

TEST(ReplayTest, TheLogGivesTheSameCandidatesAgain) {
  auto store =
      *database::Store::Open(":memory:", database::Store::Mode::kReadWrite);
  farm::Farm farm({.fingerprint = testing::kFingerprint});
  const SearchFactory factory = RealSearchFactory();
  JobSpec spec;
  spec.program = testing::kMatmul;
  spec.target = testing::TestTarget(1).Key();
  spec.trials = 60;
  spec.seed = 7;
  std::string id;
  {
    Jobs jobs(
        *store, farm,
        {.fingerprint = testing::kFingerprint, .search_factory = factory});
    ASSERT_TRUE(jobs.Recover().ok());
    jobs.Start();
    testing::FakeWorker worker(
        farm, "w",
        [](const farm::Lease& lease) {
          return testing::Measured(MadeUpSeconds(lease.item.scheduled_hash));
        },
        /*slots=*/3);
    id = *jobs.Submit(spec);
    for (int i = 0; i < 20'000 && !Ended(jobs.Get(id)->state); ++i) {
      usleep(5000);
    }
    ASSERT_EQ(jobs.Get(id)->state, JobState::kDone) << jobs.Get(id)->error;
  }

  ASSERT_TRUE(ResolveJob(*store, spec).ok());
  const TaskSpec task = spec.tasks.front();
  const std::vector<std::string> log = *store->ReadJobLog(id);
  target::Target target = *target::Parse(spec.target);
  // Of the device that measured, which the job's own text does not name.
  target.caches = ReadLog(log)->caches.value();
  EXPECT_EQ(target.caches, testing::TestHello("w").device.caches());
  const std::shared_ptr<cost_model::CostModel> model = factory.make_model(spec);
  auto search = *factory.make_search(
      {.job = spec,
       .task_id = search::TaskId(task.workload_hash, spec.target),
       .function = *ParseTask(task),
       .target = target,
       .fingerprint = testing::kFingerprint,
       .model = model});
  std::map<std::string, std::string> hash_of;
  int replayed = 0;
  for (const std::string& text : log) {
    const Json line = Json::parse(text);
    if (line["event"] == "propose") {
      const auto proposals = *search->Propose(line["asked"].get<int>());
      ASSERT_EQ(proposals.size(), line["candidates"].size());
      for (size_t i = 0; i < proposals.size(); ++i, ++replayed) {
        ASSERT_EQ(proposals[i].trace, line["candidates"][i]["trace"]);
        EXPECT_EQ(proposals[i].candidate_id, line["candidates"][i]["id"]);
        hash_of[proposals[i].candidate_id] = proposals[i].scheduled_hash;
      }
    } else if (line["event"] == "report") {
      std::vector<search::Outcome> outcomes;
      for (const std::string candidate : line["candidates"]) {
        outcomes.push_back({.candidate_id = candidate,
                            .status = database::Status::kOk,
                            .seconds = MadeUpSeconds(hash_of.at(candidate))});
      }
      ASSERT_TRUE(search->Report(outcomes).ok());
    }
  }
  EXPECT_EQ(replayed, 60);
}

}  // namespace
}  // namespace tilefarm::jobs
