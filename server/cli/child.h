// A daemon of ours as a child of `tune`.
#ifndef TILEFARM_SERVER_CLI_CHILD_H_
#define TILEFARM_SERVER_CLI_CHILD_H_

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"

namespace tilefarm::cli {

// Its standard error goes to a file. It has a process group of its own, so that
// Ctrl-C does not reach it, and gets SIGTERM when the thread that started it
// ends: start it from the main thread. Thread-safe.
class Child {
 public:
  // argv[0] is a path. `log` is overwritten. `environment` has NAME=VALUE. An
  // error: it cannot be started.
  static absl::StatusOr<std::unique_ptr<Child>> Start(
      const std::vector<std::string>& argv,
      const std::vector<std::string>& environment, const std::string& log);
  // Stops it.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The rest of the first line on its standard output that starts with
  // `prefix`. Unavailable: it ended before. One thread at a time.
  absl::StatusOr<std::string> WaitForLine(const std::string& prefix);

  // Calls `ended` from another thread when the child ends before Stop, with how
  // it ended: "exited with status 1".
  void OnEnd(std::function<void(const std::string&)> ended);

  // Sends SIGTERM, and SIGKILL if it has not ended within `patience`. Returns
  // when it has ended. Idempotent.
  void Stop(absl::Duration patience = absl::Seconds(15));

 private:
  Child(pid_t pid, int output_fd);
  void Wait();

  const pid_t pid_;
  const int output_fd_;  // its standard output
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::string end_ ABSL_GUARDED_BY(mutex_);
  std::function<void(const std::string&)> on_end_ ABSL_GUARDED_BY(mutex_);
  std::thread waiter_;
};

// The path of a program in the folder of this one. NotFound.
absl::StatusOr<std::string> SiblingProgram(const std::string& name);

// The end of a text file for an error message: the last `lines` lines.
std::string LastLines(const std::string& path, int lines);

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_CHILD_H_
