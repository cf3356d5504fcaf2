// All jobs: stored before they are acknowledged, run in order of submission,
// resumed after a restart, watched and cancelled.
//
// Jobs run concurrently, except that jobs with a common task (the same workload
// on the same target) run one after the other: the later one starts with the
// earlier one's measurements, and nothing is measured twice. A job of several
// targets releases the tasks of each target when it has used its share there.
#ifndef TILEFARM_SERVER_JOBS_JOBS_H_
#define TILEFARM_SERVER_JOBS_JOBS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/pulse.h"
#include "database/store.h"
#include "server/farm/farm.h"
#include "server/jobs/comparisons.h"
#include "server/jobs/device_administration.h"
#include "server/jobs/job.h"
#include "server/jobs/job_run.h"
#include "server/jobs/quotas.h"
#include "server/jobs/result_writer.h"
#include "server/jobs/search_factory.h"

namespace tilefarm::jobs {

class RecordedTasks;

struct JobsOptions {
  farm::Timeouts timeouts;
  Clock* clock = &Clock::Real();
  std::string fingerprint;
  SearchFactory search_factory;
  ComparisonsOptions comparisons;
  LivesObserver lives;  // null: nobody is told
  // Limits on running jobs, each of which has a thread. Beyond max_running,
  // only users without a running job get one, up to max_running_users.
  int max_running = 16;
  int max_running_users = 64;
  // Limits on jobs that have not ended: of one user, and of all.
  struct JobLimit {
    int jobs = 1000;
    int64_t text_bytes = 64 << 20;  // of their programs and sketches
  };
  JobLimit user_jobs;
  JobLimit all_jobs = {.jobs = 10'000, .text_bytes = 256 << 20};
  Quotas quotas;
};

// Results that were acknowledged since the start.
struct ResultCounts {
  // By database::Status.
  std::array<int64_t, 8> stored = {};
  // The candidate has a record already, or the database refuses the result.
  int64_t not_stored = 0;
};

// The cost of choosing the next job, since the start.
struct SchedulingFigures {
  int64_t choices = 0;   // including those that found no job to start
  int64_t examined = 0;  // jobs examined for them
};

// A program and a schedule to measure by hand.
struct MeasureSpec {
  std::string program;
  std::string trace;   // empty: as written
  std::string target;  // canonical key
  std::string device;  // name; empty: any that fits
  std::string user;
};

// Thread-safe. A thread, the conductor, starts jobs, calls watchers, and ticks
// the farm.
class Jobs : public RecordListener {
 public:
  // Called with one snapshot at once and one after each change; the last one
  // has an ended state. Runs on the conductor's or the caller's thread, and
  // must not block or call Jobs.
  using Watcher = std::function<void(const JobSnapshot&)>;
  using MeasureDone = std::function<void(const database::Record&)>;

  // The farm and the store outlive it.
  Jobs(database::Store& store, farm::Farm& farm, JobsOptions options);
  // Running jobs stop; the store keeps them as running.
  ~Jobs() override;

  // Continues the stored jobs. To be called before workers connect, so that the
  // farm knows the candidates of results in their spools.
  absl::Status Recover();
  // Starts the conductor.
  void Start();

  // Returns the id. A repeated request id of a user returns the same job.
  // InvalidArgument: see ResolveJob. ResourceExhausted: too many jobs that have
  // not ended, or another quota of the user is used up.
  absl::StatusOr<std::string> Submit(JobSpec spec);
  // Returns the state afterwards; an ended job keeps its state. NotFound: no
  // such job.
  absl::StatusOr<JobState> Cancel(const std::string& job_id);
  // Every job that passes, ended ones included, in order of submission.
  absl::StatusOr<std::vector<JobSnapshot>> List(const JobFilter& filter = {});
  absl::StatusOr<JobSnapshot> Get(const std::string& job_id);

  // Returns a subscription, which Unwatch ends. NotFound: no such job.
  absl::StatusOr<int64_t> Watch(const std::string& job_id, Watcher watcher);
  // After it returns, the watcher is not called and not running.
  void Unwatch(int64_t subscription);

  // Measures before the user's queued candidates. `done` is called when the
  // result is stored. Returns a ticket for AbandonMeasure. InvalidArgument and
  // FailedPrecondition: bad program, trace or target; Unavailable: no device.
  // ResourceExhausted: the user's device time is used up.
  absl::StatusOr<std::string> Measure(const MeasureSpec& spec,
                                      MeasureDone done);
  // The result is no longer needed: `done` is not called afterwards.
  void AbandonMeasure(const std::string& ticket);

  void OnRecorded(const farm::Completion& completion,
                  const database::Record& record, bool added) override;
  void OnAcknowledged(const farm::WorkItem& item) override;
  void OnCanary(const farm::Completion& completion) override;
  void OnCompared(const farm::Completion& completion) override;

  DeviceAdministration& devices() { return devices_; }
  Comparisons& comparisons() { return comparisons_; }

  // Jobs in each state; all states are present.
  std::map<std::string, int> CountByState();
  WriterFigures writer_figures() const { return writer_->figures(); }
  ResultCounts result_counts();
  SchedulingFigures scheduling_figures();
  // A text that names the loop (conductor, result writer) that has made no
  // progress for longer than `limit`; empty: none.
  std::string Stuck(absl::Duration limit) const;

 private:
  struct Entry;
  struct Watching;

  void Main();
  // Starts queued jobs that may run, and removes the runs of ended ones.
  void Schedule();
  void Publish();
  // Tasks that running jobs still work on, by id, and the job.
  using HeldTasks = std::unordered_map<std::string, const Entry*>;
  HeldTasks FindHeldTasks() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A running job that still works on one of the entry's tasks; null: none.
  static const Entry* WaitsFor(const Entry& entry, const HeldTasks& held);
  // Enters new elements of `entries_` into the tables below it.
  void Index() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveQueues(const Entry& entry);
  absl::Status CheckRoom(const JobSpec& spec)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // --- Quotas (jobs_quotas.cc) ---
  // Reads what users have used of devices.
  absl::Status LoadDeviceTime() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds what the farm counted since, stores it at times, and ends the running
  // jobs of users who have used up their quota.
  void NoteDeviceTime(bool store_now);
  // Whether the user may have more device time.
  absl::Status CheckUser(const std::string& user)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Keeps the last snapshot of an ended job, and drops its texts.
  void Conclude(Entry& entry, JobSnapshot snapshot)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static bool Passes(const Entry& entry, const JobFilter& filter);
  absl::Status StartRun(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  JobSnapshot SnapshotOf(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same with what several jobs have in common.
  JobSnapshot SnapshotOf(Entry& entry, RecordedTasks& recorded,
                         const HeldTasks& held)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static JobSnapshot FromRecords(const Entry& entry, RecordedTasks& recorded);
  // Examines each job that has not ended once.
  Entry* NextQueued(const HeldTasks& held)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string WhyQueued(const Entry& entry, const HeldTasks& held)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Entry* Find(const std::string& job_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  RunEnvironment Environment();
  void Wake();

  database::Store& store_;
  farm::Farm& farm_;
  const JobsOptions options_;
  DeviceAdministration devices_;
  Comparisons comparisons_;

  Mutex mutex_;
  // In order of submission; it only grows.
  std::vector<std::unique_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);
  // Made by Index: by id, and those that have not ended in order of submission.
  size_t indexed_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string, Entry*> by_id_ ABSL_GUARDED_BY(mutex_);
  std::vector<Entry*> open_ ABSL_GUARDED_BY(mutex_);
  std::vector<Entry*> running_ ABSL_GUARDED_BY(mutex_);  // have a run
  SchedulingFigures scheduling_ ABSL_GUARDED_BY(mutex_);
  // The user's latest start of a job, as a number of the sequence of all
  // starts.
  std::map<std::string, int64_t> started_at_ ABSL_GUARDED_BY(mutex_);
  int64_t starts_ ABSL_GUARDED_BY(mutex_) = 0;
  DeviceTime device_time_ ABSL_GUARDED_BY(mutex_);
  bool device_time_changed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration device_time_stored_ ABSL_GUARDED_BY(mutex_);

  Mutex watch_mutex_ ABSL_ACQUIRED_AFTER(mutex_);
  int64_t next_subscription_ ABSL_GUARDED_BY(watch_mutex_) = 1;
  std::map<int64_t, Watching> watchers_ ABSL_GUARDED_BY(watch_mutex_);

  // For results, which must not wait for mutex_: it is held over slow work.
  Mutex route_mutex_ ABSL_ACQUIRED_AFTER(mutex_);
  std::map<std::string, JobRun*> runs_ ABSL_GUARDED_BY(route_mutex_);
  ResultCounts results_ ABSL_GUARDED_BY(route_mutex_);
  std::map<std::string, MeasureDone> measures_ ABSL_GUARDED_BY(route_mutex_);

  Mutex model_mutex_;  // see RunEnvironment
  Pulse pulse_;        // of the conductor
  Mutex wake_mutex_;
  CondVar woken_;
  bool wake_ ABSL_GUARDED_BY(wake_mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(wake_mutex_) = false;
  std::thread conductor_;
  std::unique_ptr<ResultWriter> writer_;
};

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_JOBS_H_
