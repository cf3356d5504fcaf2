#include "server/jobs/task_scheduler.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tilefarm::jobs {
namespace {

// Trials of a task before its gain is estimated: the default schedules, which
// are among the first candidates, and some of the search's own. Small budgets
// spend at most half on it.
constexpr int64_t kWarmUp = 8;
// The warm-up goes around the tasks in turns of so many trials: after the first
// turn, each has a schedule that is not far from its best.
constexpr int64_t kWarmUpTurn = 4;
// A task that failed throughout its warm-up keeps getting warm-up trials up to
// this number, because the job fails without a time for it.
constexpr int64_t kMostWithoutTime = 32;
// Trials granted at once to one of several tasks: two generations of the
// search, so that results are used soon.
constexpr int64_t kRound = 16;
// Trials over which the recent gain is taken. Ansor takes three rounds; here a
// round of a task is about eight trials.
constexpr int64_t kWindow = 24;
// Weight of the recent gain, and of similar tasks' times in the bound. Both are
// Ansor's.
constexpr double kRecent = 0.2;
constexpr double kBound = 2;
// Every task gets at least this part of an even share.
constexpr double kLeastShare = 0.1;
// A task is negligible if its part of the weighted sum is below this part of
// 1 / budget, which is the sum's part for which an even trial pays.
constexpr double kNegligible = 0.1;
// The budget where none is given.
constexpr int64_t kUsualBudget = 10'000;
// Reduction of the weighted sum that counts as a gain.
constexpr double kGain = 0.01;

int64_t WarmUpOf(size_t tasks, int64_t budget) {
  if (budget == 0 || tasks == 0) return kWarmUp;
  return std::clamp<int64_t>(budget / (2 * static_cast<int64_t>(tasks)), 1,
                             kWarmUp);
}

}  // namespace

std::string_view TaskStateName(TaskState state) {
  switch (state) {
    case TaskState::kWaiting:
      return "waiting";
    case TaskState::kWarmUp:
      return "warm-up";
    case TaskState::kTuning:
      return "tuning";
    case TaskState::kNegligible:
      return "negligible";
    case TaskState::kExhausted:
      return "exhausted";
  }
  return "";
}

TaskScheduler::TaskScheduler(std::vector<ScheduledTask> tasks, int64_t budget)
    : budget_(budget), warm_up_(WarmUpOf(tasks.size(), budget)) {
  for (ScheduledTask& task : tasks) {
    tasks_.emplace_back().task = std::move(task);
  }
}

void TaskScheduler::Proposed(int task, int64_t count) {
  tasks_[static_cast<size_t>(task)].trials += count;
}

void TaskScheduler::Learn(Progress& progress, double seconds) {
  ++progress.measured;
  if (seconds > 0 && (progress.best == 0 || seconds < progress.best)) {
    progress.best = seconds;
    progress.gained_at = progress.measured;
  }
  if (progress.best == 0) return;
  progress.recent.push_back(progress.best);
  if (static_cast<int64_t>(progress.recent.size()) > kWindow + 1) {
    progress.recent.pop_front();
  }
}

void TaskScheduler::Measured(int task, double seconds) {
  Progress& progress = tasks_[static_cast<size_t>(task)];
  const double before = progress.best;
  Learn(progress, seconds);
  bool gain = before == 0 && progress.best > 0;
  if (tasks_.size() == 1) {
    gain |= progress.best < before;
  } else if (const auto sum = WeightedSum()) {
    // The first sum is what later ones are compared to.
    gain |= gained_sum_ == 0 || *sum <= (1 - kGain) * gained_sum_;
    if (gain) gained_sum_ = *sum;
  }
  without_gain_ = gain || !WarmedUp() ? 0 : without_gain_ + 1;
}

void TaskScheduler::Restored(int task, double seconds, bool trial) {
  Progress& progress = tasks_[static_cast<size_t>(task)];
  if (trial) {
    ++progress.trials;
    Learn(progress, seconds);
  } else if (seconds > 0 && (progress.best == 0 || seconds < progress.best)) {
    progress.best = seconds;
  }
  gained_sum_ = WeightedSum().value_or(0);
}

void TaskScheduler::Exhaust(int task) {
  tasks_[static_cast<size_t>(task)].exhausted = true;
}

bool TaskScheduler::NeedsWarmUp(const Progress& progress) const {
  if (tasks_.size() == 1 || progress.exhausted) return false;
  if (progress.trials < warm_up_) return true;
  return progress.best == 0 && progress.measured >= progress.trials &&
         progress.trials < kMostWithoutTime;
}

bool TaskScheduler::WarmedUp() const {
  return tasks_.size() == 1 ||
         std::all_of(tasks_.begin(), tasks_.end(), [&](const Progress& one) {
           return one.exhausted || one.measured >= warm_up_;
         });
}

std::optional<double> TaskScheduler::WeightedSum() const {
  double sum = 0;
  for (const Progress& one : tasks_) {
    if (one.best == 0) return std::nullopt;
    sum += one.weighted();
  }
  return sum;
}

double TaskScheduler::NegligibleSeconds() const {
  if (tasks_.size() == 1) return 0;
  const double trials =
      static_cast<double>(budget_ > 0 ? budget_ : kUsualBudget);
  return kNegligible / trials * WeightedSum().value_or(0);
}

std::map<std::string, double> TaskScheduler::Rates() const {
  std::map<std::string, double> rates;
  for (const Progress& one : tasks_) {
    if (one.best == 0) continue;
    double& rate = rates[one.task.kind];
    rate = std::max(rate, one.task.flops / one.best);
  }
  return rates;
}

double TaskScheduler::Gain(const Progress& progress, double rate) const {
  const double best = progress.best;
  double recent = 0;
  if (progress.recent.size() > 1) {
    recent = (progress.recent.front() - best) /
             static_cast<double>(progress.recent.size() - 1);
  }
  const double idle = static_cast<double>(progress.idle());
  double future = best / (static_cast<double>(progress.trials) + idle);
  if (rate > 0) {
    const double bound = kBound * progress.task.flops / rate;
    future = std::max(future,
                      (best - bound) / (static_cast<double>(kWindow) + idle));
  }
  return progress.task.weight * (kRecent * recent + (1 - kRecent) * future);
}

const TaskScheduler::Progress* TaskScheduler::Fewest(double seconds) const {
  const Progress* fewest = nullptr;
  for (const Progress& one : tasks_) {
    if (one.exhausted || one.weighted() < seconds) continue;
    if (fewest == nullptr || one.trials < fewest->trials) fewest = &one;
  }
  return fewest;
}

const TaskScheduler::Progress* TaskScheduler::NextToWarmUp() const {
  const auto turns = [](const Progress& one) {
    return one.trials / kWarmUpTurn;
  };
  const Progress* next = nullptr;
  for (const Progress& one : tasks_) {
    if (!NeedsWarmUp(one)) continue;
    if (next == nullptr || turns(one) < turns(*next)) next = &one;
  }
  return next;
}

TaskScheduler::Grant TaskScheduler::GrantFor(const Progress& progress,
                                             int64_t most) const {
  return {static_cast<int>(&progress - tasks_.data()), most};
}

std::optional<TaskScheduler::Grant> TaskScheduler::Next() const {
  int64_t trials = 0, left = 0;
  for (const Progress& one : tasks_) {
    trials += one.trials;
    left += one.exhausted ? 0 : 1;
  }
  if (left == 0) return std::nullopt;
  if (const Progress* next = NextToWarmUp()) {
    const int64_t turn = kWarmUpTurn - next->trials % kWarmUpTurn;
    const int64_t left = warm_up_ - next->trials;
    return GrantFor(*next, left > 0 ? std::min(turn, left) : turn);
  }
  const int64_t most = left > 1 ? kRound : std::numeric_limits<int64_t>::max();
  const double negligible = NegligibleSeconds();
  const Progress* next = Fewest(negligible);
  // Only negligible tasks are left.
  if (next == nullptr) return GrantFor(*Fewest(0), most);
  const double least = kLeastShare * static_cast<double>(trials) /
                       static_cast<double>(tasks_.size());
  if (static_cast<double>(next->trials) < least) return GrantFor(*next, most);
  const std::map<std::string, double> rates = Rates();
  double largest = 0;
  for (const Progress& one : tasks_) {
    if (one.exhausted || one.best == 0 || one.weighted() < negligible) continue;
    const double gain = Gain(one, rates.at(one.task.kind));
    // Of equal gains, the task with fewer trials, and of these the first one.
    if (gain > largest || (gain == largest && one.trials < next->trials)) {
      next = &one;
      largest = gain;
    }
  }
  return GrantFor(*next, most);
}

TaskState TaskScheduler::State(int task) const {
  const Progress& progress = tasks_[static_cast<size_t>(task)];
  if (progress.exhausted) return TaskState::kExhausted;
  if (progress.trials == 0) return TaskState::kWaiting;
  if (NeedsWarmUp(progress)) return TaskState::kWarmUp;
  return progress.weighted() < NegligibleSeconds() ? TaskState::kNegligible
                                                   : TaskState::kTuning;
}

}  // namespace tilefarm::jobs
