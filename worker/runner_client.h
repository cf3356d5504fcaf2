// rpc-worker's side of the protocol with tune-runner.
#ifndef TILEFARM_WORKER_RUNNER_CLIENT_H_
#define TILEFARM_WORKER_RUNNER_CLIENT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "worker/process.h"
#include "worker/runner_protocol.h"

namespace tilefarm::worker {

// Owns one runner process, and restarts it when it ends or does not answer.
// Load, Run and Compare are called by one thread, Cancel and Shutdown by any.
class RunnerClient {
 public:
  // `command` starts a runner: its path, or a prefix such as ssh and a path.
  RunnerClient(ProcessStarter& starter, std::vector<std::string> command)
      : starter_(starter), command_(std::move(command)) {}

  // All start a runner if there is none. Unavailable: it cannot be started,
  // has ended or did not answer. The next call then restarts it, without a
  // loaded workload. Cancelled: a Load that was cancelled before it began.
  absl::StatusOr<LoadReply> Load(const LoadWorkload& request);
  absl::StatusOr<RunReply> Run(const RunRequest& request);
  absl::StatusOr<CompareReply> Compare(const CompareRequest& request);

  // Ends the Run, Compare or Load of that run_id early, or as soon as it
  // begins.
  void Cancel(uint64_t run_id);
  // Kills the runner without a replacement: all later calls fail.
  void Shutdown();

  // The strongest isolation of its candidates (isolation.h); empty before a
  // runner has answered.
  std::string isolation();

 private:
  absl::StatusOr<std::shared_ptr<Process>> Started();
  // Cancelled: run_id was cancelled before it was requested.
  absl::StatusOr<Frame> Exchange(RunnerFrame type, uint64_t run_id,
                                 const std::string& payload,
                                 RunnerFrame expected, absl::Duration timeout);

  ProcessStarter& starter_;
  const std::vector<std::string> command_;
  Mutex mutex_;
  std::shared_ptr<Process> process_ ABSL_GUARDED_BY(mutex_);
  std::string isolation_ ABSL_GUARDED_BY(mutex_);
  uint64_t cancelled_run_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_CLIENT_H_
