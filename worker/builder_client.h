// rpc-worker's side of the conversation with tune-builder.
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

// What a builder may take beside compiling; time while paused is not counted.
struct BuilderTimeouts {
  // From its start to its first answer.
  absl::Duration start = absl::Seconds(30);
  // To take a request, and from the first to the last byte of an answer.
  absl::Duration transfer = absl::Seconds(30);
};

// Keeps one builder process, with an empty environment, restarted whenever it
// crashes, answers nonsense or takes too long. Build is called by one thread;
// the others by any.
class BuilderClient {
 public:
  BuilderClient(ProcessStarter& starter, std::vector<std::string> command,
                const BuilderTimeouts& timeouts = {})
      : starter_(starter), command_(std::move(command)), timeouts_(timeouts) {}

  ~BuilderClient() { Shutdown(); }

  // DeadlineExceeded: it took longer than `timeout`, time while paused not
  // counted, or than BuilderTimeouts, and was killed. Aborted: it crashed on
  // this request, the message says how. Unavailable: no builder can be started.
  absl::StatusOr<BuildReply> Build(const BuildRequest& request,
                                   absl::Duration timeout);

  // Keeps the process, and those that replace it, on these cores.
  void RunOn(CpuList cpus);
  // Stops and continues the process, so that it leaves the cores alone.
  void Pause();
  void Resume();
  // Kills it for good: calls fail from now on.
  void Shutdown();

 private:
  absl::StatusOr<std::shared_ptr<Process>> Started();
  // One request and its answer; `timeout` without the time while paused.
  absl::StatusOr<Frame> Ask(Process& process, BuilderFrame type,
                            const std::string& payload, absl::Duration timeout);
  // Tells people once how builders are confined.
  void SayConfinement(const BuilderHelloReply& hello);
  // Forgets the process; how it ended.
  std::string Drop(Process& process);
  // Kills it and removes what it leaves.
  std::string End(Process& process);

  ProcessStarter& starter_;
  const std::vector<std::string> command_;
  const BuilderTimeouts timeouts_;
  bool said_confinement_ = false;  // of the thread that builds
  Mutex directory_mutex_;
  Mutex mutex_;
  std::shared_ptr<Process> process_ ABSL_GUARDED_BY(mutex_);
  // Of that process: where its files are; empty: nowhere that outlives it.
  std::string directory_ ABSL_GUARDED_BY(directory_mutex_);
  CpuList cpus_ ABSL_GUARDED_BY(mutex_);  // empty: as inherited
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_BUILDER_CLIENT_H_
