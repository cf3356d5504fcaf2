// Helper processes, which are started with exec (gRPC does not survive a fork
// alone) and exchange frames with us.
#ifndef TILEFARM_WORKER_PROCESS_H_
#define TILEFARM_WORKER_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "worker/frames.h"

namespace tilefarm::worker {

// A running process and the two pipes to it. One thread reads and writes
// requests; Kill, Stop, Continue and Write are safe from any thread. The
// destructor kills and reaps.
class Process {
 public:
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }

  // DeadlineExceeded; Unavailable: the process has ended.
  absl::Status Write(uint32_t type, std::string_view payload,
                     absl::Duration timeout);
  // Waits for the first byte of a frame, or the end: false on a timeout.
  bool WaitReadable(absl::Duration timeout);
  // DeadlineExceeded, Unavailable as above; DataLoss for a malformed frame.
  // After DeadlineExceeded the next call continues with the same frame; after
  // any other error the process can only be killed.
  absl::StatusOr<Frame> Read(absl::Duration timeout);
  // Whether Read has read part of a frame.
  bool in_frame() const { return reader_.in_frame(); }

  // Sends SIGKILL and reaps, within seconds. Returns how the process ended:
  // "exited with status 1", "crashed with SIGSEGV", "killed", "does not end
  // when it is killed". Idempotent.
  std::string Kill();
  void Stop();
  void Continue();
  // Closes its input; no Write may follow.
  void CloseInput();

 private:
  friend class ProcessStarter;
  Process(pid_t pid, int input_fd, int output_fd)
      : pid_(pid), input_fd_(input_fd), output_fd_(output_fd) {}
  void Signal(int signal);

  const pid_t pid_;
  int input_fd_;         // its standard input; -1 once closed
  const int output_fd_;  // its standard output
  FrameReader reader_;
  Mutex write_mutex_;
  Mutex mutex_;
  bool reaped_ ABSL_GUARDED_BY(mutex_) = false;
  std::string end_ ABSL_GUARDED_BY(mutex_);
};

// Starts processes from one thread that lives as long as this object, because a
// process with PR_SET_PDEATHSIG is killed when the *thread* that started it
// ends. Thread-safe.
class ProcessStarter {
 public:
  ProcessStarter();
  ~ProcessStarter();

  // argv[0] is a path, or a name found on our PATH. The process has its own
  // process group, default signals and this environment ("NAME=VALUE"; see
  // helper_environment.h), and shares our standard error. NotFound,
  // PermissionDenied or Internal: it cannot be started.
  absl::StatusOr<std::unique_ptr<Process>> Start(
      const std::vector<std::string>& argv,
      const std::vector<std::string>& environment);

 private:
  void Loop();
  static absl::StatusOr<std::unique_ptr<Process>> Spawn(
      const std::vector<std::string>& argv,
      const std::vector<std::string>& environment);

  Mutex mutex_;
  CondVar changed_;
  std::function<void()> task_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_PROCESS_H_
