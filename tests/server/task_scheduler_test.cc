// The tasks' times are curves here: the best of t trials of a task is known
// beforehand, so that schedules can be compared.
#include "server/jobs/task_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace tilefarm::jobs {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;

// The best time falls from `start` to `floor`, and has come half of the way
// after `half` trials.
struct Curve {
  double weight = 1;
  double start = 1e-3;
  double floor = 1e-4;
  double half = 20;
  int64_t size = std::numeric_limits<int64_t>::max();  // of the space
  std::string kind = "k";
  double flops = 0;

  double At(int64_t trials) const {
    return floor +
           (start - floor) * half / (half + static_cast<double>(trials - 1));
  }
};

TaskScheduler SchedulerOf(const std::vector<Curve>& curves, int64_t budget) {
  std::vector<ScheduledTask> tasks;
  for (const Curve& curve : curves) {
    tasks.push_back(
        {.weight = curve.weight, .flops = curve.flops, .kind = curve.kind});
  }
  return {std::move(tasks), budget};
}

double SumOf(const std::vector<Curve>& curves,
             const std::vector<int64_t>& trials) {
  double sum = 0;
  for (size_t i = 0; i < curves.size(); ++i) {
    sum += curves[i].weight * curves[i].At(std::max<int64_t>(trials[i], 1));
  }
  return sum;
}

// Uses up the budget in batches of 8 trials; the trials of each task. Results
// arrive `late` batches after their proposal.
std::vector<int64_t> Simulate(TaskScheduler& scheduler,
                              const std::vector<Curve>& curves, int64_t budget,
                              size_t late = 0,
                              std::vector<int>* order = nullptr) {
  std::vector<int64_t> trials(curves.size()), measured(curves.size());
  std::vector<std::pair<int, int64_t>> pending;
  while (budget > 0) {
    const auto grant = scheduler.Next();
    if (!grant.has_value()) break;
    EXPECT_GE(grant->most, 1);
    const auto at = static_cast<size_t>(grant->task);
    const int64_t count = std::min<int64_t>(
        {grant->most, 8, budget, curves[at].size - trials[at]});
    if (order != nullptr) order->push_back(grant->task);
    if (count == 0) {
      scheduler.Exhaust(grant->task);
      continue;
    }
    scheduler.Proposed(grant->task, count);
    trials[at] += count;
    budget -= count;
    pending.emplace_back(grant->task, count);
    while (pending.size() > late) {
      const auto [task, results] = pending.front();
      pending.erase(pending.begin());
      for (int64_t i = 0; i < results; ++i) {
        const auto index = static_cast<size_t>(task);
        scheduler.Measured(task, curves[index].At(++measured[index]));
      }
    }
  }
  return trials;
}

std::vector<int64_t> Simulate(const std::vector<Curve>& curves, int64_t budget,
                              size_t late = 0,
                              std::vector<int>* order = nullptr) {
  TaskScheduler scheduler = SchedulerOf(curves, budget);
  return Simulate(scheduler, curves, budget, late, order);
}

// The least sum of any division of the budget: these curves are convex, so that
// the largest next reduction is always a best choice.
double LeastSum(const std::vector<Curve>& curves, int64_t budget) {
  std::vector<int64_t> trials(curves.size(), 1);
  for (int64_t left = budget - static_cast<int64_t>(curves.size()); left > 0;
       --left) {
    size_t best = 0;
    double largest = -1;
    for (size_t i = 0; i < curves.size(); ++i) {
      const double gain = curves[i].weight * (curves[i].At(trials[i]) -
                                              curves[i].At(trials[i] + 1));
      if (gain > largest) best = i;
      largest = std::max(largest, gain);
    }
    ++trials[best];
  }
  return SumOf(curves, trials);
}

double EvenSum(const std::vector<Curve>& curves, int64_t budget) {
  return SumOf(
      curves, std::vector<int64_t>(
                  curves.size(), budget / static_cast<int64_t>(curves.size())));
}

// A model of a few heavy functions and many light ones.
std::vector<Curve> Model() {
  std::vector<Curve> curves;
  for (int i = 0; i < 20; ++i) {
    Curve curve;
    curve.weight = 1 + i % 3;
    curve.start = i < 4 ? 40e-3 / (1 + i) : 0.2e-3;
    curve.floor = curve.start / (i % 2 == 0 ? 20 : 3);
    curve.half = 5 + 3 * (i % 5);
    curve.kind = "kind " + std::to_string(i % 4);
    curves.push_back(curve);
  }
  return curves;
}

TEST(TaskSchedulerTest, IsNearTheOptimumAndAheadOfEvenShares) {
  for (const int64_t budget : {400, 1000, 2000}) {
    const std::vector<Curve> curves = Model();
    const double sum = SumOf(curves, Simulate(curves, budget));
    const double least = LeastSum(curves, budget);
    const double even = EvenSum(curves, budget);
    // At least two thirds of what a perfect division gains over even shares.
    EXPECT_LT(sum, even - (even - least) * 2 / 3) << budget;
  }
}

TEST(TaskSchedulerTest, LateResultsDoNotChangeMuch) {
  const std::vector<Curve> curves = Model();
  const double prompt = SumOf(curves, Simulate(curves, 1000));
  const double late = SumOf(curves, Simulate(curves, 1000, /*late=*/4));
  EXPECT_LT(late, prompt * 1.1);
}

TEST(TaskSchedulerTest, EveryTaskIsWarmedUpAndKeepsALeastShare) {
  std::vector<Curve> curves = Model();
  EXPECT_THAT(Simulate(curves, 1000), Each(Ge(8)));
  // Half of a small budget is warm-up.
  EXPECT_THAT(Simulate(curves, 80), Each(Ge(2)));
  EXPECT_THAT(Simulate(curves, 20), Each(1));
  // One task has nearly all of the time, and the other still 1 % of it.
  curves = {{.start = 1, .floor = 0.9}, {.start = 1e-2, .floor = 0.9e-2}};
  const std::vector<int64_t> trials = Simulate(curves, 2000);
  EXPECT_GE(trials[1], 90);
  EXPECT_GE(trials[0], 1500);
}

TEST(TaskSchedulerTest, WarmUpGoesAroundInTurns) {
  TaskScheduler scheduler = SchedulerOf({{}, {}, {}}, 1000);
  std::vector<int> tasks;
  for (int64_t sum = 0; sum < 24;) {
    const auto grant = *scheduler.Next();
    EXPECT_LE(grant.most, 4);
    // A proposal may be smaller than the grant; the turn goes on.
    const int64_t count = std::min<int64_t>(grant.most, 3);
    scheduler.Proposed(grant.task, count);
    if (tasks.empty() || tasks.back() != grant.task) {
      tasks.push_back(grant.task);
    }
    sum += count;
  }
  EXPECT_THAT(tasks, ElementsAre(0, 1, 2, 0, 1, 2));
}

TEST(TaskSchedulerTest, WeightsDecideBetweenEqualTasks) {
  const std::vector<int64_t> trials =
      Simulate({{.weight = 10}, {.weight = 1}}, 400);
  EXPECT_EQ(trials[0] + trials[1], 400);
  EXPECT_GT(trials[0], 2 * trials[1]);
  const std::vector<int64_t> even = Simulate({Curve(), Curve()}, 400);
  EXPECT_THAT(even, ElementsAre(200, 200));
}

TEST(TaskSchedulerTest, NegligibleTasksStopAfterTheirWarmUp) {
  std::vector<Curve> curves = {{}, {}, {.start = 1e-8, .floor = 1e-9}};
  TaskScheduler scheduler = SchedulerOf(curves, 400);
  EXPECT_EQ(scheduler.State(2), TaskState::kWaiting);
  EXPECT_EQ(Simulate(scheduler, curves, 400)[2], 8);
  EXPECT_EQ(scheduler.State(2), TaskState::kNegligible);
  EXPECT_EQ(scheduler.State(0), TaskState::kTuning);
  // Unless nothing else can use the trials.
  curves[0].size = curves[1].size = 30;
  EXPECT_THAT(Simulate(curves, 400), ElementsAre(30, 30, 340));
}

TEST(TaskSchedulerTest, ExhaustedTasksAreSkipped) {
  std::vector<Curve> curves = {{.weight = 100, .size = 11}, {}, {.size = 3}};
  TaskScheduler scheduler = SchedulerOf(curves, 200);
  EXPECT_THAT(Simulate(scheduler, curves, 200), ElementsAre(11, 186, 3));
  EXPECT_EQ(scheduler.State(0), TaskState::kExhausted);
  curves[1].size = 20;
  TaskScheduler small = SchedulerOf(curves, 200);
  EXPECT_THAT(Simulate(small, curves, 200), ElementsAre(11, 20, 3));
  EXPECT_FALSE(small.Next().has_value());
}

TEST(TaskSchedulerTest, ATaskBehindSimilarOnesIsTriedFurther) {
  // All have equal times and no gains, but one of them has a hundred times the
  // work of a similar task, and one runs at a hundredth of another's rate.
  std::vector<Curve> curves;
  for (const double flops : {1e6, 1e8, 1e8}) {
    curves.push_back({.start = 1e-3, .floor = 1e-3, .flops = flops});
  }
  curves[2].kind = "other";
  const std::vector<int64_t> trials = Simulate(curves, 1200);
  EXPECT_GT(trials[0], trials[1] * 5 / 4);
  EXPECT_EQ(trials[1] / 16, trials[2] / 16);
}

TEST(TaskSchedulerTest, ASingleTaskGetsEverything) {
  TaskScheduler scheduler = SchedulerOf({{}}, 100);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(scheduler.Next()->task, 0);
    EXPECT_GE(scheduler.Next()->most, 100);
    scheduler.Proposed(0, 30);
  }
  scheduler.Measured(0, 1e-9);
  EXPECT_EQ(scheduler.State(0), TaskState::kTuning);
}

TEST(TaskSchedulerTest, AChoiceDependsOnTheResultsOfEachTaskAlone) {
  const std::vector<Curve> curves = Model();
  std::vector<int> order, again;
  TaskScheduler scheduler = SchedulerOf(curves, 1000);
  const std::vector<int64_t> trials =
      Simulate(scheduler, curves, 600, /*late=*/0, &order);
  Simulate(curves, 600, /*late=*/0, &again);
  EXPECT_EQ(order, again);
  // After a restart, the results are read task by task.
  TaskScheduler restarted = SchedulerOf(curves, 1000);
  for (size_t i = 0; i < curves.size(); ++i) {
    for (int64_t trial = 1; trial <= trials[i]; ++trial) {
      restarted.Restored(static_cast<int>(i), curves[i].At(trial),
                         /*trial=*/true);
    }
  }
  for (int i = 0; i < 20; ++i) {
    const auto one = scheduler.Next(), other = restarted.Next();
    ASSERT_EQ(one->task, other->task);
    EXPECT_EQ(one->most, other->most);
    scheduler.Proposed(one->task, 8);
    restarted.Proposed(one->task, 8);
  }
}

TEST(TaskSchedulerTest, KnownTimesAreNoTrials) {
  TaskScheduler scheduler = SchedulerOf({{}, {}}, 100);
  scheduler.Restored(0, 2e-3, /*trial=*/false);
  scheduler.Restored(0, 3e-3, /*trial=*/false);
  EXPECT_FALSE(scheduler.WeightedSum().has_value());
  scheduler.Restored(1, 1e-3, /*trial=*/false);
  EXPECT_DOUBLE_EQ(*scheduler.WeightedSum(), 3e-3);
  EXPECT_EQ(scheduler.State(0), TaskState::kWaiting);
  EXPECT_EQ(scheduler.Next()->task, 0);
}

TEST(TaskSchedulerTest, ATaskWithoutATimeGetsMoreWarmUpAndNotEverything) {
  TaskScheduler scheduler = SchedulerOf({{}, {}}, 1000);
  std::vector<int64_t> trials(2);
  for (int64_t sum = 0; sum < 1000;) {
    const auto grant = *scheduler.Next();
    const int64_t count = std::min<int64_t>(grant.most, 8);
    scheduler.Proposed(grant.task, count);
    for (int64_t i = 0; i < count; ++i) {
      scheduler.Measured(grant.task, grant.task == 0 ? 0 : 1e-3);
    }
    trials[static_cast<size_t>(grant.task)] += count;
    sum += count;
  }
  EXPECT_GE(trials[0], 32);
  EXPECT_LT(trials[0], 100);
}

TEST(TaskSchedulerTest, PatienceOfOneTaskEndsWithAnyGain) {
  TaskScheduler scheduler = SchedulerOf({{}}, 0);
  scheduler.Proposed(0, 4);
  scheduler.Measured(0, 1e-3);
  EXPECT_EQ(scheduler.TrialsWithoutGain(), 0);
  scheduler.Measured(0, 1e-3);
  scheduler.Measured(0, 0);
  EXPECT_EQ(scheduler.TrialsWithoutGain(), 2);
  scheduler.Measured(0, 0.9999e-3);
  EXPECT_EQ(scheduler.TrialsWithoutGain(), 0);
}

TEST(TaskSchedulerTest, PatienceOfSeveralTasksIsAboutTheWeightedSum) {
  TaskScheduler scheduler = SchedulerOf({{.weight = 10}, {}}, 0);
  for (int i = 0; i < 8; ++i) {
    scheduler.Measured(0, 1e-3);
    scheduler.Measured(1, 1e-3);
  }
  // During the warm-up, nothing counts.
  EXPECT_LE(scheduler.TrialsWithoutGain(), 1);
  const int64_t before = scheduler.TrialsWithoutGain();
  // A gain of 5 % of a task with an eleventh of the time.
  scheduler.Measured(1, 0.95e-3);
  EXPECT_EQ(scheduler.TrialsWithoutGain(), before + 1);
  // Small gains add up.
  scheduler.Measured(1, 0.85e-3);
  EXPECT_EQ(scheduler.TrialsWithoutGain(), 0);
  scheduler.Measured(0, 0);
  EXPECT_EQ(scheduler.TrialsWithoutGain(), 1);
  scheduler.Measured(0, 0.95e-3);
  EXPECT_EQ(scheduler.TrialsWithoutGain(), 0);
}

}  // namespace
}  // namespace tilefarm::jobs
