// Real processes in tests: spawn, read their output, kill, wait.
//
//   auto server = Process::Spawn({Bin("tune-server"), "--db", db, ...});
//   std::string address = *server->WaitForOutput("listening on ");
//   server->Kill(SIGKILL);
#ifndef TILEFARM_TESTS_SUPPORT_PROCESS_H_
#define TILEFARM_TESTS_SUPPORT_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "base/mutex.h"

namespace tilefarm::testing {

// Leads a process group of its own; the destructor kills the whole group.
class Process {
 public:
  // Null if it cannot be started. `env` adds NAME=VALUE to this process's
  // environment.
  static std::unique_ptr<Process> Spawn(std::vector<std::string> argv,
                                        std::vector<std::string> env = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  // The rest of the first line of standard output that starts with `prefix`;
  // nullopt after a timeout, or if the output ends without such a line.
  std::optional<std::string> WaitForOutput(
      const std::string& prefix, absl::Duration timeout = absl::Seconds(30));
  // Sends the signal to this process only, not to its group.
  void Kill(int signal);
  // Exit code, or minus the signal that ended it; nullopt: still running.
  std::optional<int> Wait(absl::Duration timeout = absl::Seconds(60));

  // The whole output so far.
  std::string output();
  std::string errors();

 private:
  // The text of one of its output streams.
  struct Stream {
    const int fd;  // the reading end, which does not block; its reader's
    std::string text;
    bool ended = false;
  };

  Process(pid_t pid, int out, int err);
  // Reads until the stream ends.
  void Read(Stream& stream);
  // Reads the available bytes.
  void Drain(Stream& stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Reap(bool block);

  const pid_t pid_;
  std::optional<int> status_;
  Mutex mutex_;
  CondVar changed_;
  Stream output_ ABSL_GUARDED_BY(mutex_);
  Stream errors_ ABSL_GUARDED_BY(mutex_);
  std::thread out_reader_, err_reader_;
};

struct CommandResult {
  int exit_code = -1000;  // -1000: it did not end in time
  std::string output;
  std::string errors;
};
CommandResult RunCommand(std::vector<std::string> argv,
                         std::vector<std::string> env = {},
                         absl::Duration timeout = absl::Minutes(4));

// A new empty directory, removed with everything in it by the destructor.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  // Writes a file into it and returns its path.
  std::string Write(const std::string& name, const std::string& text) const;

 private:
  std::string path_;
};

std::string ReadFile(const std::string& path);

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_SUPPORT_PROCESS_H_
