// One running job: a thread that proposes candidates, keeps enough of them
// ready for the devices, and learns from what comes back.
//
//   Load ---> thread: [ report results -> save model -> propose ]*
//                     -> measure the finalists once more -> end
//
// The thread has the idle scheduling class, so that search and training take
// only what measurements and builds leave, except while devices are about to
// run out of candidates. Proposals are logged before the farm sees
// them: a candidate that a device may hold is always known after a restart.
#ifndef TILEFARM_SERVER_JOBS_JOB_RUN_H_
#define TILEFARM_SERVER_JOBS_JOB_RUN_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "database/store.h"
#include "server/farm/farm.h"
#include "server/jobs/job.h"
#include "server/jobs/job_log.h"
#include "server/jobs/search_factory.h"

namespace tilefarm::jobs {

struct Contender;

// What a run works with; all outlive it.
struct RunEnvironment {
  database::Store& store;
  farm::Farm& farm;
  const SearchFactory& search_factory;
  Clock& clock;
  farm::Timeouts timeouts;
  std::string fingerprint;
};

// Thread-safe.
class JobRun {
 public:
  // `on_end` is called once, on the run's thread, when the job has ended by
  // itself or by Cancel and the store says so; not after Stop.
  JobRun(RunEnvironment environment, std::string job_id, JobSpec spec,
         std::function<void()> on_end);
  // Stops and joins.
  ~JobRun();

  // Reads what the database knows of the job. Candidates that were handed out
  // and have no record go to the farm, held for their results. Before Start,
  // and before workers connect.
  absl::Status Load();
  void Start();
  void Cancel();
  // Ends the thread and leaves the job running in the store.
  void Stop();

  // A result of this job's queue is durable.
  void OnRecorded(const farm::WorkItem& item, const database::Record& record,
                  bool added);

  // Whether one of the job's tasks is this one.
  bool HasTask(const std::string& task_id) const;

  JobSnapshot Snapshot() const;
  // Grows with every change to the snapshot.
  int64_t version() const;

 private:
  struct Task;
  struct Outcome {
    std::string task_id;
    database::Record record;
    farm::Purpose purpose;
    bool added;
  };

  void Main();
  absl::Status LoadTask(const TaskSpec& spec);
  // Waits for the first device that matches, where neither the client nor an
  // earlier run said which caches the search is made for, or which libraries a
  // device has whose kernels the job permits: nothing can be measured before.
  // False: the run is to end, or to go no further.
  bool LearnDevice();
  absl::Status Prepare();
  void RequestBaselines();
  void TakeOutcomes(std::vector<Outcome> outcomes);
  void NoteRecord(Task& task, const database::Record& record, bool of_this_job);
  void NoteFinalist(Task& task, const database::Record& record);
  void NoteRemeasured(Task& task, const database::Record& record);
  // Has the next round of the race between the fastest candidates measured
  // (contender.h), now that nothing is built beside them. False where every
  // task's race is over.
  bool RequestFinalists();
  bool RequestFinalist(Task& task, const Contender& contender);
  void ShowBest(const Task& task);
  // True where something was proposed.
  bool Propose();
  bool ProposeFrom(Task& task, int count);
  Task* NextTask();
  farm::WorkItem MakeItem(const Task& task, farm::Purpose purpose) const;
  // Why no more is to be proposed; empty: go on.
  std::string WhyEnough() const;
  bool AllExhausted() const;
  // Cancelled, out of time or stopped before the search was made.
  void EndUnstarted();
  // Ends as done, or as failed where nothing was verified.
  void EndByItself();
  void End(JobState state, const std::string& error);
  void SaveModel(bool now);
  // Lines that cannot be stored now are kept, and go before the next.
  absl::Status AppendLog(std::string line);
  absl::Status FlushLog();
  void SetMessage(std::string message);
  void UpdateRate() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const RunEnvironment env_;
  const std::string job_id_;
  const JobSpec spec_;
  const std::function<void()> on_end_;
  farm::QueueTerms terms_;  // set by Load

  // Of the thread alone (and of Load before it starts).
  std::vector<std::unique_ptr<Task>> tasks_;
  std::shared_ptr<cost_model::CostModel> model_;
  target::Target target_;  // with the caches that the search is made for
  // Whose kernels are candidates; nullopt: not learnt yet.
  std::optional<std::vector<std::string>> libraries_;
  // Proposed and without a record: candidate id to task.
  std::map<std::string, Task*> pending_;
  // Handed out by a former process; the search does not know them.
  std::set<std::string> former_;
  int64_t trials_done_ = 0;
  int64_t trials_since_gain_ = 0;
  // By the monotonic clock.
  absl::Duration deadline_ = absl::InfiniteDuration();
  absl::Duration model_saved_at_ = -absl::InfiniteDuration();
  bool model_changed_ = false;
  // When waiting for finalists ends; none requested yet: infinite.
  absl::Duration finalists_until_ = absl::InfiniteDuration();
  std::vector<std::string> unlogged_;
  std::string last_failure_;  // of a task that cannot be searched

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<Outcome> inbox_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  JobSnapshot snapshot_ ABSL_GUARDED_BY(mutex_);
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<absl::Duration> recorded_at_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_JOB_RUN_H_
