// Jobs of several functions, which have weights and share trials by their gain.
#include <gmock/gmock.h>

#include <atomic>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "server/jobs/similar_tasks.h"
#include "server/jobs/task_scheduler.h"
#include "tests/server/jobs_fixture.h"

namespace tilefarm::jobs {
namespace {

using ::testing::ElementsAre;
using testing::FakeSearchFactory;
using testing::FakeWorker;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// The tasks of kAddRelu.
constexpr int kAdd = 0, kRelu = 1;

class JobTasksTest : public JobsTest {
 protected:
  JobSpec TwoTasks(int64_t trials) {
    JobSpec spec = Spec(trials);
    spec.program = testing::kAddRelu;
    return spec;
  }
  absl::Status Refusal(const std::string& function, double weight) {
    JobSpec spec = TwoTasks(10);
    spec.weights[function] = weight;
    return ResolveJob(*store_, spec);
  }
};

// Every tenth trial of a task gains, by less and less.
double CurveSeconds(int64_t sequence) {
  return 1e-3 * (1 + 10.0 / static_cast<double>(1 + sequence / 10));
}
std::optional<farm::Measurement> Curve(const farm::Lease& lease) {
  return testing::Measured(CurveSeconds(lease.item.sequence));
}

TEST_F(JobTasksTest, WeightsAreOneUnlessGivenAndEqualFunctionsAddTheirs) {
  JobSpec spec = TwoTasks(10);
  ASSERT_TRUE(ResolveJob(*store_, spec).ok());
  ASSERT_THAT(spec.tasks, SizeIs(2));
  EXPECT_EQ(spec.tasks[kAdd].weight, 1);
  EXPECT_EQ(spec.tasks[kRelu].weight, 2);  // relu and relu_again
  EXPECT_EQ(spec.tasks[kRelu].shape, "64 float32");
  spec = TwoTasks(10);
  spec.weights = {{"add", 7}, {"relu_again", 2.5}};
  ASSERT_TRUE(ResolveJob(*store_, spec).ok());
  EXPECT_EQ(spec.tasks[kAdd].weight, 7);
  EXPECT_EQ(spec.tasks[kRelu].weight, 3.5);
}

TEST_F(JobTasksTest, RefusesBadWeights) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double weight : {0.0, -1.0, 2e9, kInfinity, -kInfinity,
                              std::numeric_limits<double>::quiet_NaN()}) {
    const absl::Status status = Refusal("add", weight);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << weight;
    EXPECT_THAT(std::string(status.message()), HasSubstr("of function add"));
  }
  const absl::Status status = Refusal("sub", 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "weights: the program has no function 'sub'");
  EXPECT_TRUE(Refusal("add", 1e9).ok());
  EXPECT_TRUE(Refusal("add", 1e-9).ok());
}

TEST_F(JobTasksTest, StoredJobsKeepTheirWeightsAndOldOnesHaveNone) {
  JobSpec spec = TwoTasks(10);
  spec.weights["add"] = 12;
  ASSERT_TRUE(ResolveJob(*store_, spec).ok());
  database::JobRow row = JobToRow("job-1", spec);
  const JobSpec read = *JobFromRow(row);
  EXPECT_EQ(read.tasks[kAdd].weight, 12);
  EXPECT_EQ(read.tasks[kRelu].weight, 2);
  EXPECT_EQ(read.tasks[kRelu].shape, "64 float32");
  auto json = nlohmann::json::parse(row.spec_json);
  for (auto& task : json["tasks"]) {
    task.erase("weight");
    task.erase("shape");
  }
  row.spec_json = json.dump();
  EXPECT_EQ(JobFromRow(row)->tasks[kAdd].weight, 1);
  EXPECT_EQ(JobFromRow(row)->tasks[kAdd].shape, "");
  json["tasks"][0]["weight"] = "heavy";
  row.spec_json = json.dump();
  EXPECT_EQ(JobFromRow(row).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(JobTasksTest, TheHeavierTaskGetsMoreTrialsAndAllAreUsed) {
  std::optional<FakeWorker> worker(std::in_place, *farm_, "w", Curve);
  JobSpec spec = TwoTasks(800);
  spec.weights = {{"add", 20}, {"relu", 0.5}, {"relu_again", 0.5}};
  const std::string id = *jobs_->Submit(spec);
  const JobSnapshot end = WaitForEnd(id);
  EXPECT_EQ(end.state, JobState::kDone);
  EXPECT_EQ(end.trials_done, 800);
  EXPECT_GT(end.tasks[kAdd].trials_done, 2 * end.tasks[kRelu].trials_done);
  EXPECT_GE(end.tasks[kRelu].trials_done, 8);
  EXPECT_EQ(end.tasks[kAdd].weight, 20);
  EXPECT_EQ(end.tasks[kAdd].shape, "64 float32");
  EXPECT_EQ(end.tasks[kAdd].state, "ended");
  // The time of the first candidate, the default one.
  EXPECT_DOUBLE_EQ(end.tasks[kAdd].default_seconds, CurveSeconds(1));
  // After a restart, what the database and the job's row have.
  worker.reset();
  Restart(FakeSearchFactory());
  const JobSnapshot stored = *jobs_->Get(id);
  EXPECT_EQ(stored.tasks[kAdd].weight, 20);
  EXPECT_DOUBLE_EQ(stored.tasks[kAdd].default_seconds, CurveSeconds(1));
  EXPECT_EQ(stored.tasks[kRelu].weight, 1);
  EXPECT_EQ(stored.tasks[kAdd].shape, "64 float32");
  EXPECT_EQ(stored.tasks[kAdd].state, "ended");
}

TEST_F(JobTasksTest, ATaskOfHardlyAnyTimeIsNegligible) {
  FakeWorker worker(*farm_, "w", Curve);
  JobSpec spec = TwoTasks(2000);
  spec.weights = {{"add", 1e6}, {"relu", 1e-3}, {"relu_again", 1e-3}};
  const JobSnapshot end = WaitForEnd(*jobs_->Submit(spec));
  // Until the first results are in, nothing is known of its time; how many
  // trials that are depends on the machine's load.
  EXPECT_GE(end.tasks[kRelu].trials_done, 8);
  EXPECT_LT(end.tasks[kRelu].trials_done, 500);
  EXPECT_EQ(end.tasks[kRelu].state, "negligible");
  EXPECT_EQ(end.trials_done, 2000);
}

TEST_F(JobTasksTest, AnExhaustedTaskLeavesItsTrialsToTheOthers) {
  SearchFactory factory = FakeSearchFactory();
  factory.make_search = [](const SearchRequest& request) {
    const bool add = request.task_id == TaskId(request.job.tasks[kAdd]);
    const int size = add ? 11 : 1'000'000;
    return std::make_unique<testing::FakeSearch>(request, size);
  };
  Restart(std::move(factory));
  FakeWorker worker(*farm_, "w", Curve);
  JobSpec spec = TwoTasks(100);
  spec.weights["add"] = 100;
  const JobSnapshot end = WaitForEnd(*jobs_->Submit(spec));
  EXPECT_EQ(end.trials_done, 100);
  EXPECT_EQ(end.tasks[kAdd].trials_done, 11);
  EXPECT_EQ(end.tasks[kAdd].state, "exhausted");
}

// The tasks that proposed, by the log, are those that the scheduler chooses
// from what the log has before each proposal.
TEST_F(JobTasksTest, TheLogDeterminesWhichTaskProposes) {
  FakeWorker worker(*farm_, "w", Curve);
  JobSpec spec = TwoTasks(300);
  spec.weights["add"] = 5;
  const std::string id = *jobs_->Submit(spec);
  ASSERT_EQ(WaitForEnd(id).state, JobState::kDone);
  std::map<std::string, double> seconds;
  for (const database::Record& record : Records()) {
    seconds[record.candidate_id] = record.median_seconds;
  }
  ASSERT_TRUE(ResolveJob(*store_, spec).ok());
  std::vector<ScheduledTask> tasks;
  for (const TaskSpec& task : spec.tasks) {
    tasks.push_back({.weight = task.weight,
                     .flops = task.flops,
                     .kind = KindOf(**ParseTask(task)).text});
  }
  TaskScheduler scheduler(tasks, spec.trials);
  int proposals = 0;
  const std::vector<std::string> log = *store_->ReadJobLog(id);
  for (const std::string& text : log) {
    const auto line = nlohmann::json::parse(text);
    if (!line.contains("task")) continue;
    const int task = line["task"] == TaskId(spec.tasks[kAdd]) ? kAdd : kRelu;
    if (line["event"] == "propose") {
      const auto grant = scheduler.Next();
      ASSERT_TRUE(grant.has_value());
      ASSERT_EQ(grant->task, task) << "proposal " << proposals;
      EXPECT_LE(line["asked"].get<int64_t>(), grant->most);
      scheduler.Proposed(task, static_cast<int64_t>(line["candidates"].size()));
      ++proposals;
    } else if (line["event"] == "report") {
      for (const std::string candidate : line["candidates"]) {
        scheduler.Measured(task, seconds.at(candidate));
      }
    }
  }
  EXPECT_GE(proposals, 300 / 16);
}

TEST_F(JobTasksTest, ResumesWithTheResultsOfBothTasks) {
  JobSpec spec = TwoTasks(400);
  spec.weights = {{"add", 20}, {"relu", 0.5}, {"relu_again", 0.5}};
  const std::string id = *jobs_->Submit(spec);
  {
    // It returns some results and withholds the others.
    std::atomic<int> leases = 0;
    FakeWorker worker(*farm_, "w", [&](const farm::Lease& lease) {
      return ++leases > 62 ? std::nullopt : Curve(lease);
    });
    WaitFor(id, [](const JobSnapshot& s) { return s.trials_done == 60; });
  }
  Restart(FakeSearchFactory());
  const JobSnapshot resumed = *jobs_->Get(id);
  EXPECT_GE(resumed.tasks[kAdd].trials_done, 8);
  EXPECT_GE(resumed.tasks[kRelu].trials_done, 8);
  FakeWorker worker(*farm_, "w", Curve);
  const JobSnapshot end = WaitForEnd(id);
  EXPECT_EQ(end.trials_done, 400);
  EXPECT_GT(end.tasks[kAdd].trials_done, 2 * end.tasks[kRelu].trials_done);
  EXPECT_DOUBLE_EQ(end.tasks[kAdd].default_seconds, CurveSeconds(1));
}

TEST_F(JobTasksTest, PatienceIsAboutTheWeightedSum) {
  // The light task gains with every trial, the heavy one never. If every gain
  // counted, the job would not end.
  FakeWorker worker(*farm_, "w", [](const farm::Lease& lease) {
    const bool heavy = lease.item.program.find("T.max") == std::string::npos;
    return testing::Measured(
        heavy ? 1e-3 : 1e-3 / static_cast<double>(1 + lease.item.sequence));
  });
  JobSpec spec = TwoTasks(0);
  spec.patience = 40;
  spec.weights["add"] = 20;
  const JobSnapshot end = WaitForEnd(*jobs_->Submit(spec));
  EXPECT_EQ(end.state, JobState::kDone);
  EXPECT_GE(end.trials_done, 40);
}

}  // namespace
}  // namespace tilefarm::jobs
