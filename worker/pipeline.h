// What happens to a lease within the worker: several builders compile the
// next candidates while one runner measures.
//
//   Add -> queue -> builders (threads, one process each) -> ready -> runner
//                      |                                               |
//                      +---- failed to build ----> on_result <---------+
//
// Builders keep off the cores of a measurement. While none is ready to be
// measured, those cores are lent to the builders, so that the next one comes
// sooner; another worker that waits for them is served first.
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
#include "worker/build_cache.h"
#include "worker/builder_client.h"
#include "worker/cpus.h"
#include "worker/process.h"
#include "worker/runner_client.h"

namespace tilefarm::worker {

// Thread-safe. Owns its threads and processes. Whatever a candidate does
// comes out as a measurement; nothing here fails.
class Pipeline {
 public:
  struct Options {
    std::vector<std::string> builder_command;
    std::vector<std::string> runner_command;
    BuilderTimeouts builder_timeouts;
    int builders = 1;
    // Leases beyond those in the builders and the runner, built and waiting.
    int ready = 2;
    CpuList cpus;  // all that the worker may use
    // Keep this whole process, too, off the cores of the last measurement.
    bool moves_this_process = false;
    std::string lock_directory;
    uint64_t last_cache_bytes = 0;  // the device's; 0: not known
    std::string fingerprint;
    bool emulated = false;
    // Called from the pipeline's threads, without its lock.
    std::function<void()> on_change;
    // The same for what can wait a little: a lease was taken, is being built,
    // or is built and waits for the cores. Null: on_change.
    std::function<void()> on_progress;
    // The lease stays in Held() until this returns.
    std::function<void(const std::string& database_uuid, v1::Result)> on_result;
    // Where the time went, one line of JSON a lease that has ended; null: not
    // wanted. Seconds of one clock:
    //   {"candidate":ID,"status":S,"added":T,"built":[FROM,TO],
    //    "ran":[FROM,TO],"child":SECONDS}
    // A stage that it did not come to is null.
    std::function<void(const std::string& line)> on_timeline;
  };

  explicit Pipeline(Options options);
  // Kills all processes; leases that are not done have no result.
  ~Pipeline();

  // A lease id that is already held is ignored.
  void Add(const std::string& database_uuid, v1::Lease lease);
  // No result will come, unless it is on its way already.
  void Cancel(const std::string& lease_id);
  // Drops every lease that nobody has begun to build.
  void DropWaiting();

  std::vector<v1::State::Held> Held() const;
  int free_slots() const;
  // Leases wanted at once: one to run, the others building or ready.
  int capacity() const;
  bool empty() const;

 private:
  struct Job;
  struct Reference;
  using JobPtr = std::shared_ptr<Job>;
  using ReferencePtr = std::shared_ptr<const Reference>;

  void BuilderLoop(BuilderClient& builder);
  void RunnerLoop();
  // Fills the job's build, or its measurement and false.
  bool BuildJob(BuilderClient& builder, Job& job);
  // The reference of the job's workload, built where it is not cached.
  absl::StatusOr<ReferencePtr> ReferenceFor(BuilderClient& builder,
                                            const Job& job);
  absl::StatusOr<BuildReply> BuildOnce(BuilderClient& builder,
                                       const BuildRequest& request,
                                       absl::Duration timeout);
  // Waits for the cores, keeps everything else off them, runs.
  void RunJob(Job& job);
  // Lets builders use `cpus` until TakeBack, for a second at most; `lock` is
  // held as long.
  void Lend(CpuLock lock, const CpuList& cpus);
  void TakeBack();
  // The next job to run; null at the end.
  JobPtr NextReady();
  // Moves the builders, and this process, away from `cpus`. False where there
  // is nowhere to go: then the builders must stop.
  bool ClearCpus(const CpuList& cpus);
  RunReply Measure(const Job& job, const CpuList& cpus);
  LoadReply LoadReference(const Job& job, const CpuList& cpus);
  // Hands the measurement over, unless nobody wants it any more.
  void Finish(const JobPtr& job);
  bool IsCancelled(const Job& job) const;
  void Progress() const;

  const Options options_;
  ProcessStarter starter_;
  std::vector<std::unique_ptr<BuilderClient>> builders_;
  RunnerClient runner_;
  BuildCache built_;
  // Workloads that the runner was given; runner thread only.
  std::set<std::string> loaded_;
  // Runner thread only: where the builders are kept, and the cores they may
  // use as well.
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
