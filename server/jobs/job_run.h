// One running job: a thread that proposes candidates, keeps enough of them
// ready for the devices, and learns from what comes back.
//
//   Load ---> thread: [ report results -> save model -> propose ]*
//                     -> measure the finalists once more -> end
//
// A job of several targets has a lane for each: a queue in the farm, a cost
// model, searches, an even share of the trials. Lanes go their own ways: one
// whose device is not there waits, and one that has done its share measures its
// finalists and lets go of its tasks, while the others go on. What a lane
// leaves of its share (its space is exhausted) goes to those still at work.
//
//   waiting (for a device's facts) -> open -> closing (finalists) -> finished
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
#include <unordered_map>
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
  // Of all runs: held while a stored cost model is read, merged and replaced.
  Mutex& model_mutex;
};

// The blob with the cost model of a target.
std::string ModelKey(const std::string& target_key);

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
  // The farm has let go of results of this job's queue.
  void OnAcknowledged();

  // Whether one of the job's tasks is this one.
  bool HasTask(const std::string& task_id) const;
  // ... and is still worked on.
  bool HoldsTask(const std::string& task_id) const;

  JobSnapshot Snapshot() const;
  // Grows with every change to the snapshot.
  int64_t version() const;

 private:
  struct Task;
  struct Lane;
  struct Outcome {
    std::string task_id;
    database::Record record;
    farm::Purpose purpose;
    bool added;
  };

  void Main();
  // One step of a lane's way. True where it may take another at once.
  bool Step(Lane& lane, bool cancelled);
  bool StepOpen(Lane& lane, bool cancelled);
  bool StepClosing(Lane& lane, bool cancelled);
  void Finish(Lane& lane);

  // --- job_run_load.cc ---
  absl::Status LoadLane(size_t index, const LogSummary& log);
  absl::Status LoadTask(const TaskSpec& spec, Lane& lane);
  void UseRemeasured(std::vector<database::Record>& known) const;
  void HoldFormer(const LogSummary& log);
  // Makes the searches of lanes that wait once what they need is known: the
  // caches of the first device that matches, where neither the client nor an
  // earlier run said which they are, and the libraries whose kernels the job
  // permits. Nothing can be measured before.
  void OpenLanes();
  bool LearnDevice(Lane& lane);
  void Open(Lane& lane);
  void RequestBaselines(const Lane& lane);

  void TakeOutcomes(std::vector<Outcome> outcomes);
  void NoteRecord(Task& task, const database::Record& record, bool of_this_job);
  void NoteFinalist(Task& task, const database::Record& record);
  void NoteRemeasured(Task& task, const database::Record& record);
  // Has the next round of the race between the fastest candidates measured
  // (contender.h), now that nothing is built beside them. False where every
  // task's race is over.
  bool RequestFinalists(Lane& lane);
  bool RequestFinalist(Task& task, const Contender& contender);
  void ShowBest(const Task& task);
  // Whether its devices have soon nothing to do.
  bool RunsLow(const Lane& lane) const;
  // Candidates of a lane to be kept ready for its devices' slots.
  int ReadyWanted(int slots) const;
  // True where something was proposed.
  bool Propose(Lane& lane);
  bool ProposeFrom(Task& task, int count);
  farm::WorkItem MakeItem(const Task& task, farm::Purpose purpose) const;
  // Trials that the lane may still propose; without a budget very many.
  int64_t TrialsLeft(const Lane& lane) const;
  // Ends as done, or as failed where nothing was verified.
  void EndByItself();
  void End(JobState state, const std::string& error);
  // What another job stored meanwhile is kept: the stored model is then made of
  // both. The lane's own stays as it is, so that what it proposes depends on
  // nothing but the job's log.
  void SaveModel(Lane& lane, bool now);
  absl::StatusOr<std::string> MergeModels(const std::string& mine,
                                          const std::string& stored) const;
  void SaveModels();
  // For people: its function, and its target where the job has several.
  std::string NameOf(const Task& task) const;
  void GiveUp(Task& task, const std::string& why);
  // A line of the log about this job.
  void Warn(const std::string& what) const;
  // Tells which lanes wait for a device.
  void ShowWaits();
  // Lines that cannot be stored now are kept, and go before the next.
  absl::Status AppendLog(std::string line);
  absl::Status FlushLog();
  void SetMessage(std::string message);
  void UpdateRate() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const RunEnvironment env_;
  const std::string job_id_;
  const JobSpec spec_;
  const std::function<void()> on_end_;

  // Of the thread alone (and of Load before it starts).
  std::vector<std::unique_ptr<Lane>> lanes_;  // as the spec's targets
  std::vector<std::unique_ptr<Task>> tasks_;  // as the spec's tasks
  // Proposed and without a record: candidate id to task.
  std::unordered_map<std::string, Task*> pending_;
  // Handed out by a former process; the search does not know them.
  std::set<std::string> former_;
  int64_t trials_done_ = 0;
  // By the monotonic clock.
  absl::Duration deadline_ = absl::InfiniteDuration();
  std::vector<std::string> unlogged_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<Outcome> inbox_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool acknowledged_ ABSL_GUARDED_BY(mutex_) = false;  // since the last step
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  JobSnapshot snapshot_ ABSL_GUARDED_BY(mutex_);
  // Why lanes wait; goes before any other message.
  std::string waits_ ABSL_GUARDED_BY(mutex_);
  // Tasks of lanes that are not finished.
  std::set<std::string> held_tasks_ ABSL_GUARDED_BY(mutex_);
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<absl::Duration> recorded_at_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_JOB_RUN_H_
