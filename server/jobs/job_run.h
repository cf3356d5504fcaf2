// One running job: a thread that proposes candidates, keeps enough of them
// ready for the devices, and learns from what comes back.
//
//   Load ---> thread: [ report results -> save model -> propose ]*
//                     -> measure the finalists once more -> end
//
// A job of several targets has a lane for each: a queue in the farm, a cost
// model, searches, and an even share of the trials. Lanes are independent: a
// lane without a device waits, and a lane that has used its share measures its
// finalists and releases its tasks, while the others continue. Trials that a
// lane cannot use, because its space is exhausted, go to the lanes still at
// work.
//
//   waiting (for facts of a device) -> open -> closing (finalists) -> finished
//
// The thread has the idle scheduling class, so that search and training use
// only the time that measurements and builds leave, except while devices are
// about to run out of candidates. Proposals are logged before the farm gets
// them, so that after a restart every candidate that a device may hold is
// known.
#ifndef TILEFARM_SERVER_JOBS_JOB_RUN_H_
#define TILEFARM_SERVER_JOBS_JOB_RUN_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
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
  // Told what became of a job's candidates, on its thread; null: nobody is.
  LivesObserver lives;
  // Shared by all runs. Held while a stored cost model is read, merged and
  // replaced.
  Mutex& model_mutex;
};

// The blob with the cost model of a target.
std::string ModelKey(const std::string& target_key);

// Thread-safe.
class JobRun {
 public:
  // `on_end` is called once, on the run's thread, when the job has ended by
  // itself or by Cancel and its end is stored. It is not called after Stop.
  JobRun(RunEnvironment environment, std::string job_id, JobSpec spec,
         std::function<void()> on_end);
  // Stops and joins.
  ~JobRun();

  // Reads what the database knows of the job. Candidates that were handed out
  // and have no record are added to the farm, which holds them for their
  // results. To be called before Start, and before workers connect.
  absl::Status Load();
  void Start();
  void Cancel();
  // Ends the job as its time limit does; `why` becomes a part of its result.
  void EndEarly(const std::string& why);
  // Ends the thread and leaves the job running in the store.
  void Stop();

  // A result of this job's queue is durable.
  void OnRecorded(const farm::Completion& completion,
                  const database::Record& record, bool added);
  // Results of this job's queue were acknowledged and have left the farm.
  void OnAcknowledged();

  // Whether the task is one of the job's.
  bool HasTask(const std::string& task_id) const;
  // Whether the task is one of the job's that have not ended.
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
    LoggedLife life;
  };

  void Main();
  // Takes a lane to its next state if it can. True: it may take another step at
  // once.
  bool Step(Lane& lane, bool cancelled);
  bool StepOpen(Lane& lane, bool cancelled);
  bool StepClosing(Lane& lane, bool cancelled);
  void Finish(Lane& lane);

  // --- job_run_load.cc ---
  absl::Status LoadLane(size_t index, const LogSummary& log);
  // Its state by the database.
  absl::Status LoadTask(std::unique_ptr<Task> task, Lane& lane);
  void UseRemeasured(std::vector<database::Record>& known) const;
  void HoldFormer(const LogSummary& log);
  // Makes the searches of waiting lanes whose facts are known: the caches of
  // the first device that matches, unless the client or an earlier run gave
  // them, and the libraries whose kernels the job permits.
  void OpenLanes();
  bool LearnDevice(Lane& lane);
  void Open(Lane& lane);
  void RequestBaselines(const Lane& lane);

  void TakeOutcomes(std::vector<Outcome> outcomes);
  // Writes when the candidates passed their stages into the log.
  void LogLives(std::span<const Outcome> outcomes);
  void NoteRecord(Task& task, const database::Record& record, bool of_this_job);
  void NoteFinalist(Task& task, const database::Record& record);
  void NoteRemeasured(Task& task, const database::Record& record);
  // Requests the next round of the race between the fastest candidates
  // (contender.h). Nothing is built beside them. False: the races of all tasks
  // are over.
  bool RequestFinalists(Lane& lane);
  bool RequestFinalist(Task& task, const Contender& contender);
  void ShowBest(const Task& task);
  // Finds the candidate with the task's default schedule, and its record.
  void FindDefault(Task& task);
  // Shows the time of the default schedule if the record has it.
  void NoteDefault(const Task& task, const database::Record& record);
  // Shows the states of the lane's tasks.
  void ShowStates(const Lane& lane);
  // Whether its devices are about to run out of candidates.
  bool RunsLow(const Lane& lane) const;
  // Candidates of a lane to be kept ready for its devices' slots.
  int ReadyWanted(int slots) const;
  // True where something was proposed.
  bool Propose(Lane& lane);
  bool ProposeFrom(Task& task, int count);
  // farm::WorkItem::race: jobs that may use the same schedules share one.
  std::string RaceOf(const Task& task) const;
  // Tells searches of fast schedules of similar tasks: those in the database,
  // and the trace of `from` that is its new best.
  void SuggestRecorded(Lane& lane);
  static void SuggestToSimilar(const Task& from, const std::string& trace);
  farm::WorkItem MakeItem(const Task& task, farm::Purpose purpose) const;
  // Trials that the lane may still propose; very many without a budget.
  int64_t TrialsLeft(const Lane& lane) const;
  // Ends as done, or as failed if nothing was verified.
  void EndByItself();
  void End(JobState state, const std::string& error);
  // Stores the lane's model. If another job has stored one meanwhile, the
  // merger of both is stored. The lane's own model does not change, so that its
  // proposals depend on the job's log alone.
  void SaveModel(Lane& lane, bool now);
  absl::StatusOr<std::string> MergeModels(const std::string& mine,
                                          const std::string& stored) const;
  void SaveModels();
  // Name for people: the function, and the target if the job has several.
  std::string NameOf(const Task& task) const;
  void GiveUp(Task& task, const std::string& why);
  // A line of the log about this job.
  void Warn(const std::string& what) const;
  // Sets the message about lanes that wait for a device.
  void ShowWaits();
  // Lines that cannot be stored now are kept and stored before the next ones.
  absl::Status AppendLog(std::string line);
  absl::Status FlushLog();
  void SetMessage(std::string message);
  void UpdateRate() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the job's time or its user's quota has run out.
  bool HasEnough();

  const RunEnvironment env_;
  const std::string job_id_;
  const JobSpec spec_;
  const std::function<void()> on_end_;

  // Used by the thread alone, and by Load before it starts.
  std::vector<std::unique_ptr<Lane>> lanes_;  // as the spec's targets
  std::vector<std::unique_ptr<Task>> tasks_;  // as the spec's tasks
  // Proposed candidates without a record: candidate id to task.
  std::unordered_map<std::string, Task*> pending_;
  // Candidates that a former process handed out; the search does not know them.
  std::set<std::string> former_;
  int64_t trials_done_ = 0;
  // By the monotonic clock.
  absl::Duration deadline_ = absl::InfiniteDuration();
  std::vector<std::string> unlogged_;
  // When candidates that have no result yet were proposed.
  std::map<std::string, absl::Time> sampled_at_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<Outcome> inbox_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::string ends_early_ ABSL_GUARDED_BY(mutex_);     // why; empty: not
  bool acknowledged_ ABSL_GUARDED_BY(mutex_) = false;  // since the last step
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  JobSnapshot snapshot_ ABSL_GUARDED_BY(mutex_);
  // Why lanes wait; shown in place of any other message.
  std::string waits_ ABSL_GUARDED_BY(mutex_);
  // Tasks of lanes that are not finished.
  std::set<std::string> held_tasks_ ABSL_GUARDED_BY(mutex_);
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<absl::Duration> recorded_at_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_JOB_RUN_H_
