// A job's log makes its search replayable: the same seed, database and order of
// results give the same candidates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>

#include "server/jobs/job_log.h"
#include "server/jobs/jobs.h"
#include "server/jobs/search_factory.h"
#include "tests/server/fake_search.h"
#include "tests/server/fake_worker.h"
#include "tests/server/made_up_times.h"

namespace tilefarm::jobs {
namespace {

using Json = nlohmann::json;
using testing::HelloFor;
using testing::MadeUpSeconds;

// Tunes for the targets, each on its own device, and then creates new searches
// and repeats the requests in the order of the log.
void TuneAndReplay(const std::vector<std::string>& targets) {
  auto store =
      *database::Store::Open(":memory:", database::Store::Mode::kReadWrite);
  farm::Farm farm({.fingerprint = testing::kFingerprint});
  const SearchFactory factory = RealSearchFactory();
  JobSpec spec;
  spec.program = testing::kMatmul;
  for (const std::string& key : targets) {
    spec.targets.push_back({key, std::nullopt});
  }
  spec.trials = 60;
  spec.seed = 7;
  std::string id;
  {
    Jobs jobs(
        *store, farm,
        {.fingerprint = testing::kFingerprint, .search_factory = factory});
    ASSERT_TRUE(jobs.Recover().ok());
    jobs.Start();
    std::vector<std::unique_ptr<testing::FakeWorker>> workers;
    for (const std::string& key : targets) {
      workers.push_back(std::make_unique<testing::FakeWorker>(
          farm, HelloFor(key, static_cast<int>(workers.size())),
          [](const farm::Lease& lease) {
            return testing::Measured(MadeUpSeconds(lease.item.scheduled_hash));
          },
          /*slots=*/3));
    }
    id = *jobs.Submit(spec);
    for (int i = 0; i < 20'000 && !Ended(jobs.Get(id)->state); ++i) {
      usleep(5000);
    }
    ASSERT_EQ(jobs.Get(id)->state, JobState::kDone) << jobs.Get(id)->error;
  }

  ASSERT_TRUE(ResolveJob(*store, spec).ok());
  const std::vector<std::string> log = *store->ReadJobLog(id);
  const LogSummary summary = *ReadLog(log);
  std::map<std::string, std::unique_ptr<search::Search>> searches;
  for (const TaskSpec& task : spec.tasks) {
    target::Target target = *target::Parse(task.target);
    // The caches of the device that measured, which the job's own text does not
    // have.
    target.caches = summary.Opened(task.target, /*only=*/false).caches.value();
    const int index = static_cast<int>(searches.size());
    EXPECT_EQ(target.caches, HelloFor(task.target, index).device.caches());
    searches[TaskId(task)] =
        *factory.make_search({.job = spec,
                              .task_id = TaskId(task),
                              .function = *ParseTask(task),
                              .target = target,
                              .fingerprint = testing::kFingerprint,
                              .model = factory.make_model(spec)});
  }
  ASSERT_EQ(searches.size(), targets.size());
  std::map<std::string, std::string> hash_of;
  std::map<std::string, int> replayed;  // by task
  for (const std::string& text : log) {
    const Json line = Json::parse(text);
    if (!line.contains("task")) continue;
    search::Search& search = *searches.at(line["task"]);
    if (line["event"] == "propose") {
      const auto proposals = *search.Propose(line["asked"].get<int>());
      ASSERT_EQ(proposals.size(), line["candidates"].size());
      for (size_t i = 0; i < proposals.size(); ++i) {
        ASSERT_EQ(proposals[i].trace,
                  line["candidates"][i]["trace"].get<std::string>());
        EXPECT_EQ(proposals[i].candidate_id,
                  line["candidates"][i]["id"].get<std::string>());
        hash_of[proposals[i].candidate_id] = proposals[i].scheduled_hash;
        ++replayed[line["task"]];
      }
    } else if (line["event"] == "report") {
      std::vector<search::Outcome> outcomes;
      for (const std::string candidate : line["candidates"]) {
        outcomes.push_back({.candidate_id = candidate,
                            .status = database::Status::kOk,
                            .seconds = MadeUpSeconds(hash_of.at(candidate))});
      }
      ASSERT_TRUE(search.Report(outcomes).ok());
    }
  }
  for (const TaskSpec& task : spec.tasks) {
    EXPECT_EQ(replayed[TaskId(task)], 60 / static_cast<int>(targets.size()));
  }
}

TEST(ReplayTest, TheLogGivesTheSameCandidatesAgain) {
  TuneAndReplay({testing::TestTarget(1).Key()});
}

TEST(ReplayTest, TheLogOfAJobOfTwoTargetsGivesTheSameCandidatesAgain) {
  TuneAndReplay({testing::TestTarget(1).Key(), "aarch64:cortex-a72,cores=1"});
}

}  // namespace
}  // namespace tilefarm::jobs
