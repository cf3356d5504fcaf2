// Which task of a job gets the next trials on one target.
//
// The job minimises the weighted sum of its tasks' best times. The next trials
// go to the task with the largest expected reduction of that sum per trial, as
// in Ansor's task scheduler (Zheng et al., OSDI 2020, section 6):
//
//   gain_i = weight_i * (kRecent * recent_i + (1 - kRecent) * future_i)
//
//   recent_i   how much best_i fell per trial, over the last kWindow trials
//   future_i   the larger of
//                best_i / (trials_i + idle_i), diminishing returns
//                (best_i - bound_i) / (kWindow + idle_i), where bound_i is
//                twice the time that the task would have at the rate (FLOPs per
//                second) of the best similar task
//   trials_i   trials proposed so far
//   idle_i     those of them without a gain since the last gain
//
// Around this choice:
//   1. Every task first gets a few warm-up trials, in turns.
//   2. Every task keeps a least share of the trials, so that a wrong estimate
//      never starves it.
//   3. A task whose whole time is far less than an even trial's part of the sum
//      cannot repay a trial. It is negligible, and gets no more than its
//      warm-up while another task can use the trials.
//
// Example:
//   TaskScheduler scheduler({{.weight = 9, .flops = 1e9, .kind = "matmul"},
//                            {.weight = 1, .flops = 1e6, .kind = "relu"}},
//                           /*budget=*/500);
//   while (auto grant = scheduler.Next()) {
//     scheduler.Proposed(grant->task, Propose(grant->task, grant->most));
//     ...
//     scheduler.Measured(task, seconds);
//   }
//
// A pure function of the calls, of which only the order within each task
// matters: after a restart the records of each task give the same state. Not
// thread-safe. Devices, other targets and the job's remaining trials are the
// caller's.
#ifndef TILEFARM_SERVER_JOBS_TASK_SCHEDULER_H_
#define TILEFARM_SERVER_JOBS_TASK_SCHEDULER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilefarm::jobs {

struct ScheduledTask {
  double weight = 1;  // positive
  double flops = 0;   // of one run; 0: not known
  // Tasks of equal kind are similar: the same program with other extents.
  std::string kind;
};

enum class TaskState { kWaiting, kWarmUp, kTuning, kNegligible, kExhausted };
// "waiting", "warm-up", ...
std::string_view TaskStateName(TaskState state);

class TaskScheduler {
 public:
  struct Grant {
    int task = 0;
    int64_t most = 0;  // trials; at least 1
  };

  // `budget`: trials in all; 0: not limited.
  TaskScheduler(std::vector<ScheduledTask> tasks, int64_t budget);

  // The next task, and how many of its candidates may be proposed before the
  // next question. Nullopt: all tasks are exhausted.
  std::optional<Grant> Next() const;

  // The task proposed so many candidates.
  void Proposed(int task, int64_t count);
  // One of them was measured. `seconds` 0: it failed, or does not count.
  void Measured(int task, double seconds);
  // What earlier jobs, or this one before a restart, measured. It is no gain,
  // and with `trial` it is one of the task's trials.
  void Restored(int task, double seconds, bool trial);
  // The task has nothing more to propose.
  void Exhaust(int task);

  TaskState State(int task) const;
  // The sum of weight * best; nullopt until every task has a time.
  std::optional<double> WeightedSum() const;
  // Measured trials since the last gain. A single task gains by any better
  // time. With several tasks a gain is kGain of the weighted sum, or a task's
  // first time. Trials before the end of the warm-up do not count.
  int64_t TrialsWithoutGain() const { return without_gain_; }

 private:
  struct Progress {
    ScheduledTask task;
    int64_t trials = 0;         // proposed
    int64_t measured = 0;       // of these
    int64_t gained_at = 0;      // `measured` at the last gain
    double best = 0;            // 0: none
    std::deque<double> recent;  // best after each of the last trials
    bool exhausted = false;

    double weighted() const { return task.weight * best; }
    int64_t idle() const { return trials - gained_at; }
  };

  void Learn(Progress& progress, double seconds);
  bool NeedsWarmUp(const Progress& progress) const;
  // The first of those with the fewest turns. Null: none needs it.
  const Progress* NextToWarmUp() const;
  bool WarmedUp() const;
  // Tasks whose weighted time is below this are negligible; 0: none is.
  double NegligibleSeconds() const;
  // Expected reduction of the weighted sum by the next trial. `rate`: that of
  // the best similar task.
  double Gain(const Progress& progress, double rate) const;
  // Best FLOPs per second by kind.
  std::map<std::string, double> Rates() const;
  // The task with the fewest trials of those whose weighted time is not below
  // `seconds`. Null: none.
  const Progress* Fewest(double seconds) const;
  Grant GrantFor(const Progress& progress, int64_t most) const;

  std::vector<Progress> tasks_;
  const int64_t budget_;
  const int64_t warm_up_;  // trials of each task
  double gained_sum_ = 0;  // the weighted sum at the last gain; 0: none
  int64_t without_gain_ = 0;
};

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_TASK_SCHEDULER_H_
