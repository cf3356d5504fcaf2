// The path of a lease through the worker: several builders compile the next
// candidates while one runner measures.
//
//   Add -> queue -> builders (threads, one process each) -> ready -> runner
//                      |                                               |
//                      +---- failed to build ----> on_result <---------+
//
// Builders do not run on the cores of a measurement. While no candidate is
// ready, the builders may use these cores as well, so that the next candidate
// is ready sooner; another worker that waits for the cores is served first.
#ifndef TILEFARM_WORKER_PIPELINE_H_
#define TILEFARM_WORKER_PIPELINE_H_

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "proto/tilefarm/v1/farm.pb.h"
#include "worker/artifact_cache.h"
#include "worker/build_cache.h"
#include "worker/builder_client.h"
#include "worker/cpus.h"
#include "worker/process.h"
#include "worker/runner_client.h"

namespace tilefarm::worker {

// Thread-safe. Owns its threads and processes. Everything that a candidate does
// becomes a measurement; no method fails.
class Pipeline {
 public:
  struct Options {
    std::vector<std::string> builder_command;
    std::vector<std::string> runner_command;
    BuilderTimeouts builder_timeouts;
    int builders = 1;
    // Built leases that wait, in addition to those in builders and runner.
    int ready = 2;
    CpuList cpus;  // all that the worker may use
    // Keeps this whole process off the cores of the last measurement as well.
    bool moves_this_process = false;
    std::string lock_directory;
    uint64_t last_cache_bytes = 0;  // the device's; 0: not known
    std::string fingerprint;
    bool emulated = false;
    // Gets an artifact of a comparison's lease within the limit. Called by
    // several threads. Null: this worker takes no artifacts.
    std::function<absl::StatusOr<std::string>(
        const v1::Lease& lease, const v1::ComparedArtifact& artifact,
        absl::Duration limit)>
        fetch_artifact;
    std::string artifact_directory;  // where they are kept; empty: nowhere
    // Called from the pipeline's threads, without its lock.
    std::function<void()> on_change;
    // The same for changes that are not urgent: a lease was taken, is being
    // built, or is built and waits for the cores. Null: on_change is called.
    std::function<void()> on_progress;
    // Called with a result. The lease stays in Held() until this returns.
    std::function<void(const std::string& database_uuid, v1::Result)> on_result;
    // Called with one line of JSON for each ended lease, which says how long
    // its stages took; null: not wanted. Seconds of one clock:
    //   {"candidate":ID,"status":S,"added":T,"built":[FROM,TO],
    //    "ran":[FROM,TO],"child":SECONDS}
    // A stage that was not reached is null.
    std::function<void(const std::string& line)> on_timeline;
  };

  explicit Pipeline(Options options);
  // Kills all processes; unfinished leases get no result.
  ~Pipeline();

  // Ignored if the lease id is held already.
  void Add(const std::string& database_uuid, v1::Lease lease);
  // Drops the lease. No result follows, unless it is being delivered already.
  void Cancel(const std::string& lease_id);
  // Drops every lease whose build has not begun.
  void DropWaiting();

  std::vector<v1::State::Held> Held() const;
  int free_slots() const;
  // Leases that the worker wants to hold: one to run, the others building or
  // ready.
  int capacity() const;
  bool empty() const;

 private:
  struct Job;
  struct Reference;
  using JobPtr = std::shared_ptr<Job>;
  using ReferencePtr = std::shared_ptr<const Reference>;

  void BuilderLoop(BuilderClient& builder);
  void RunnerLoop();
  // Fills in the job's build. False: it failed, and the measurement is filled
  // in.
  bool BuildJob(BuilderClient& builder, Job& job);
  // The same of a comparison: fetches its artifacts.
  bool FetchArtifacts(Job& job);
  // The reference of the job's workload, built unless it is cached.
  absl::StatusOr<ReferencePtr> ReferenceFor(BuilderClient& builder,
                                            const Job& job);
  // What stands for the reference in a comparison of models.
  static absl::StatusOr<ReferencePtr> ModelReference(const v1::Lease& lease);
  absl::StatusOr<BuildReply> BuildOnce(BuilderClient& builder,
                                       const BuildRequest& request,
                                       absl::Duration timeout);
  // Waits for the cores, moves everything else away from them, and runs.
  void RunJob(Job& job);
  // Lets builders use `cpus` until TakeBack, for a second at most, while `lock`
  // is held.
  void Lend(CpuLock lock, const CpuList& cpus);
  void TakeBack();
  // The next job to run; null at the end.
  JobPtr NextReady();
  // Moves the builders and this process away from `cpus`. False: there are no
  // other cores, so the builders must stop.
  bool ClearCpus(const CpuList& cpus);
  RunReply Measure(const Job& job, const CpuList& cpus);
  // Measures a comparison, and fills in its pairs.
  RunReply Compare(Job& job, const CpuList& cpus);
  // Calls `run` with a runner that has loaded the job's reference.
  template <typename Reply>
  Reply WithReference(const Job& job, const CpuList& cpus,
                      const std::function<absl::StatusOr<Reply>()>& run);
  LoadReply LoadReference(const Job& job, const CpuList& cpus);
  // Delivers the measurement, unless the lease was dropped.
  void Finish(const JobPtr& job);
  bool IsCancelled(const Job& job) const;
  void Progress() const;

  const Options options_;
  ProcessStarter starter_;
  std::vector<std::unique_ptr<BuilderClient>> builders_;
  RunnerClient runner_;
  BuildCache built_;
  ArtifactCache artifacts_;
  // Workloads that the runner has loaded. Used by the runner thread only.
  std::set<std::string> loaded_;
  // Used by the runner thread only: the cores of the builders, and the cores
  // that are lent to them.
  CpuList builder_cpus_;
  CpuList lent_cpus_;
  std::optional<CpuLock> lent_lock_;
  absl::Duration lent_until_;  // by the monotonic clock

  mutable Mutex mutex_;
  CondVar changed_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t next_run_id_ ABSL_GUARDED_BY(mutex_) = 1;
  bool builders_paused_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, JobPtr> held_ ABSL_GUARDED_BY(mutex_);  // by lease id
  std::deque<JobPtr> queue_ ABSL_GUARDED_BY(mutex_);
  std::deque<JobPtr> ready_ ABSL_GUARDED_BY(mutex_);
  JobPtr running_ ABSL_GUARDED_BY(mutex_);
  // Most recently used first.
  std::list<ReferencePtr> references_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_PIPELINE_H_
