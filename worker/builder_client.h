// rpc-worker's side of the protocol with tune-builder.
#ifndef TILEFARM_WORKER_BUILDER_CLIENT_H_
#define TILEFARM_WORKER_BUILDER_CLIENT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "worker/builder_protocol.h"
#include "worker/cpus.h"
#include "worker/process.h"

namespace tilefarm::worker {

// Limits for a builder apart from compiling. Time while it is paused does not
// count.
struct BuilderTimeouts {
  // From its start to its first answer.
  absl::Duration start = absl::Seconds(30);
  // To take a request, and from the first to the last byte of an answer.
  absl::Duration transfer = absl::Seconds(30);
};

// Owns one builder process with an empty environment, and restarts it when it
// crashes, sends an invalid answer or takes too long. Build is called by one
// thread, the other methods by any.
class BuilderClient {
 public:
  BuilderClient(ProcessStarter& starter, std::vector<std::string> command,
                const BuilderTimeouts& timeouts = {})
      : starter_(starter), command_(std::move(command)), timeouts_(timeouts) {}

  ~BuilderClient() { Shutdown(); }

  // DeadlineExceeded: it took longer than `timeout`, without time while paused,
  // or than BuilderTimeouts, and was killed. Aborted: it crashed on this
  // request; the message says how. Unavailable: no builder can be started.
  absl::StatusOr<BuildReply> Build(const BuildRequest& request,
                                   absl::Duration timeout);

  // Keeps the process, and those that replace it, on these cores.
  void RunOn(CpuList cpus);
  // Stops and continues the process, so that it does not use the cores.
  void Pause();
  void Resume();
  // Kills it without a replacement: all later calls fail.
  void Shutdown();

 private:
  absl::StatusOr<std::shared_ptr<Process>> Started();
  // One request and its answer. `timeout` does not count time while paused.
  absl::StatusOr<Frame> Ask(Process& process, BuilderFrame type,
                            const std::string& payload, absl::Duration timeout);
  // Logs once how builders are confined.
  void SayConfinement(const BuilderHelloReply& hello);
  // Forgets the process, and returns how it ended.
  std::string Drop(Process& process);
  // Kills it and removes its files.
  std::string End(Process& process);

  ProcessStarter& starter_;
  const std::vector<std::string> command_;
  const BuilderTimeouts timeouts_;
  bool said_confinement_ = false;  // used by the thread that builds
  Mutex directory_mutex_;
  Mutex mutex_;
  std::shared_ptr<Process> process_ ABSL_GUARDED_BY(mutex_);
  // The directory of that process's files; empty: no files outlive it.
  std::string directory_ ABSL_GUARDED_BY(directory_mutex_);
  CpuList cpus_ ABSL_GUARDED_BY(mutex_);  // empty: as inherited
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_BUILDER_CLIENT_H_
