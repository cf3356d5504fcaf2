// All jobs: stored before they are acknowledged, run in order of submission,
// resumed after a restart, watched and cancelled.
//
// Jobs run side by side, except that jobs with a task in common (the same
// workload on the same target) take turns: the later one starts from what the
// earlier one measured, and nothing is measured twice. A job of several targets
// lets go of each one's tasks as soon as it has done its share there.
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
#include "server/jobs/device_desk.h"
#include "server/jobs/job.h"
#include "server/jobs/job_run.h"
#include "server/jobs/result_writer.h"
#include "server/jobs/search_factory.h"

namespace tilefarm::jobs {

class RecordedTasks;

struct JobsOptions {
  farm::Timeouts timeouts;
  Clock* clock = &Clock::Real();
  std::string fingerprint;
  SearchFactory search_factory;
  // Each has a thread. Beyond it a user who has none running gets one.
  int max_running = 16;
  int max_running_users = 64;
  // Jobs that have not ended: of one user, and of all.
  struct Most {
    int jobs = 1000;
    int64_t text_bytes = 64 << 20;  // of their programs and sketches
  };
  Most user_jobs;
  Most all_jobs = {.jobs = 10'000, .text_bytes = 256 << 20};
};

// Results that were acknowledged since the start.
struct ResultCounts {
  // By database::Status.
  std::array<int64_t, 8> stored = {};
  // Their candidate has a record, or the database refuses them.
  int64_t not_stored = 0;
};

// What choosing the next job costs, since the start.
struct SchedulingFigures {
  int64_t choices = 0;   // of a job to start, or of none
  int64_t examined = 0;  // jobs looked at for them
};

// A program and a schedule to measure by hand.
struct MeasureSpec {
  std::string program;
  std::string trace;   // empty: as written
  std::string target;  // canonical key
  std::string device;  // name; empty: any that fits
  std::string user;
};

// Thread-safe. A conductor thread starts jobs, tells watchers, and ticks the
// farm.
class Jobs : public RecordListener {
 public:
  // Called with one snapshot now and one per change; the last one has an ended
  // state. Runs on the conductor's or the caller's thread and must not block
  // or call Jobs.
  using Watcher = std::function<void(const JobSnapshot&)>;
  using MeasureDone = std::function<void(const database::Record&)>;

  // The farm and the store outlive it.
  Jobs(database::Store& store, farm::Farm& farm, JobsOptions options);
  // Running jobs stop and stay running in the store.
  ~Jobs() override;

  // Takes up the stored jobs. Before workers connect, so that results from
  // their spools find their candidates.
  absl::Status Recover();
  // Starts the conductor.
  void Start();

  // The id. A request id that the user gave before returns its job.
  // InvalidArgument: see ResolveJob. ResourceExhausted: too many jobs that have
  // not ended.
  absl::StatusOr<std::string> Submit(JobSpec spec);
  // The state after; an ended job stays as it is. NotFound.
  absl::StatusOr<JobState> Cancel(const std::string& job_id);
  // Every job, ended ones included, in order of submission.
  absl::StatusOr<std::vector<JobSnapshot>> List();
  absl::StatusOr<JobSnapshot> Get(const std::string& job_id);

  // NotFound; otherwise a subscription to end with Unwatch.
  absl::StatusOr<int64_t> Watch(const std::string& job_id, Watcher watcher);
  // No call of the watcher is running or comes after.
  void Unwatch(int64_t subscription);

  // Measures now, before what waits; `done` is called once the result is
  // stored. Returns a ticket for AbandonMeasure. InvalidArgument and
  // FailedPrecondition: bad program, trace or target; Unavailable: no device.
  absl::StatusOr<std::string> Measure(const MeasureSpec& spec,
                                      MeasureDone done);
  // The result is not wanted any more: `done` is not called after.
  void AbandonMeasure(const std::string& ticket);

  void OnRecorded(const farm::WorkItem& item, const database::Record& record,
                  bool added) override;
  void OnAcknowledged(const farm::WorkItem& item) override;
  void OnCanary(const farm::Completion& completion) override;

  DeviceDesk& devices() { return devices_; }

  // Jobs in each state; every state is there.
  std::map<std::string, int> CountByState();
  WriterFigures writer_figures() const { return writer_->figures(); }
  ResultCounts result_counts();
  SchedulingFigures scheduling_figures();
  // Which loop (conductor, result writer) has not moved for longer than
  // `limit`, in words; empty: none.
  std::string Stuck(absl::Duration limit) const;

 private:
  struct Entry;
  struct Watching;

  void Main();
  // Starts what may start, ends what has ended.
  void Schedule();
  void Publish();
  // Tasks by id that running jobs still work on, and which.
  using HeldTasks = std::unordered_map<std::string, const Entry*>;
  HeldTasks FindHeldTasks() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A running job that still works on one of its tasks; null: none.
  static const Entry* WaitsFor(const Entry& entry, const HeldTasks& held);
  // Takes what `entries_` has gained into the tables below it.
  void Index() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveQueues(const Entry& entry);
  absl::Status CheckRoom(const JobSpec& spec)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What is known of an ended job for good, without its texts.
  void Conclude(Entry& entry, JobSnapshot snapshot)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status StartRun(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  JobSnapshot SnapshotOf(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same with what several jobs have in common.
  JobSnapshot SnapshotOf(Entry& entry, RecordedTasks& recorded,
                         const HeldTasks& held)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static JobSnapshot FromRecords(const Entry& entry, RecordedTasks& recorded);
  // Looks at each job that has not ended once.
  Entry* NextQueued(const HeldTasks& held)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static std::string WhyQueued(const Entry& entry, const HeldTasks& held);
  Entry* Find(const std::string& job_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  RunEnvironment Environment();
  void Wake();

  database::Store& store_;
  farm::Farm& farm_;
  const JobsOptions options_;
  DeviceDesk devices_;

  Mutex mutex_;
  // In order of submission; it only grows.
  std::vector<std::unique_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);
  // See Index: by id, and those that have not ended, in order of submission.
  size_t indexed_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string, Entry*> by_id_ ABSL_GUARDED_BY(mutex_);
  std::vector<Entry*> open_ ABSL_GUARDED_BY(mutex_);
  std::vector<Entry*> running_ ABSL_GUARDED_BY(mutex_);  // have a run
  SchedulingFigures scheduling_ ABSL_GUARDED_BY(mutex_);
  // Counted in starts of jobs: when the user's latest one was.
  std::map<std::string, int64_t> started_at_ ABSL_GUARDED_BY(mutex_);
  int64_t starts_ ABSL_GUARDED_BY(mutex_) = 0;

  Mutex watch_mutex_ ABSL_ACQUIRED_AFTER(mutex_);
  int64_t next_subscription_ ABSL_GUARDED_BY(watch_mutex_) = 1;
  std::map<int64_t, Watching> watchers_ ABSL_GUARDED_BY(watch_mutex_);

  // Results are routed here without mutex_, which may be held over slow work.
  Mutex route_mutex_ ABSL_ACQUIRED_AFTER(mutex_);
  std::map<std::string, JobRun*> runs_ ABSL_GUARDED_BY(route_mutex_);
  ResultCounts results_ ABSL_GUARDED_BY(route_mutex_);
  std::map<std::string, MeasureDone> measures_ ABSL_GUARDED_BY(route_mutex_);

  Mutex model_mutex_;  // see RunEnvironment
  Pulse pulse_;        // the conductor's
  Mutex wake_mutex_;
  CondVar woken_;
  bool wake_ ABSL_GUARDED_BY(wake_mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(wake_mutex_) = false;
  std::thread conductor_;
  std::unique_ptr<ResultWriter> writer_;
};

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_JOBS_H_
