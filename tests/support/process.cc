#include "tests/support/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

extern char** environ;

namespace tilefarm::testing {

std::unique_ptr<Process> Process::Spawn(std::vector<std::string> argv,
                                        std::vector<std::string> env) {
  int out[2], err[2];
  TF_CHECK(pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  // If this process is killed, its children must not keep its descriptors open,
  // such as those of locks.
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);

  std::vector<char*> args;
  for (std::string& arg : argv) args.push_back(arg.data());
  args.push_back(nullptr);
  std::vector<char*> environment;
  for (std::string& one : env) environment.push_back(one.data());
  for (char** one = environ; *one != nullptr; ++one) {
    environment.push_back(*one);
  }
  environment.push_back(nullptr);

  pid_t pid = 0;
  const int failed = posix_spawn(&pid, args[0], &actions, &attributes,
                                 args.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(out[1]);
  close(err[1]);
  // The child's ends block.
  fcntl(out[0], F_SETFL, O_NONBLOCK);
  fcntl(err[0], F_SETFL, O_NONBLOCK);
  if (failed != 0) {
    close(out[0]);
    close(err[0]);
    return nullptr;
  }
  return std::unique_ptr<Process>(new Process(pid, out[0], err[0]));
}

Process::Process(pid_t pid, int out, int err)
    : pid_(pid),
      output_{.fd = out},
      errors_{.fd = err},
      out_reader_([this] { Read(output_); }),
      err_reader_([this] { Read(errors_); }) {}

Process::~Process() {
  kill(-pid_, SIGKILL);
  if (!status_.has_value()) Reap(/*block=*/true);
  // Kill the group again: helpers that outlived their parent hold the pipes.
  kill(-pid_, SIGKILL);
  out_reader_.join();
  err_reader_.join();
}

void Process::Read(Stream& stream) {
  for (bool ended = false; !ended;) {
    pollfd p{stream.fd, POLLIN, 0};
    poll(&p, 1, -1);
    MutexLock lock(mutex_);
    Drain(stream);
    ended = stream.ended;
    changed_.NotifyAll();
  }
  close(stream.fd);
}

void Process::Drain(Stream& stream) {
  char buffer[4096];
  while (!stream.ended) {
    const ssize_t size = read(stream.fd, buffer, sizeof(buffer));
    if (size > 0) {
      stream.text.append(buffer, size);
    } else if (size < 0 && errno == EAGAIN) {
      return;
    } else {
      stream.ended = size == 0 || errno != EINTR;
    }
  }
}

std::optional<std::string> Process::WaitForOutput(const std::string& prefix,
                                                  absl::Duration timeout) {
  const absl::Duration deadline = Clock::Real().Monotonic() + timeout;
  MutexLock lock(mutex_);
  while (true) {
    size_t start = 0;
    const std::string& text = output_.text;
    for (size_t end; (end = text.find('\n', start)) != std::string::npos;
         start = end + 1) {
      if (text.compare(start, prefix.size(), prefix) == 0) {
        return text.substr(start + prefix.size(), end - start - prefix.size());
      }
    }
    const absl::Duration left = deadline - Clock::Real().Monotonic();
    const bool ended = output_.ended && errors_.ended;
    if (ended || left <= absl::ZeroDuration()) return std::nullopt;
    changed_.WaitFor(mutex_, left);
  }
}

void Process::Kill(int signal) {
  if (!status_.has_value()) kill(pid_, signal);
}

bool Process::Reap(bool block) {
  int status = 0;
  if (waitpid(pid_, &status, block ? 0 : WNOHANG) != pid_) return false;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return true;
}

std::optional<int> Process::Wait(absl::Duration timeout) {
  const absl::Duration deadline = Clock::Real().Monotonic() + timeout;
  while (!status_.has_value() && !Reap(/*block=*/false)) {
    if (Clock::Real().Monotonic() >= deadline) return std::nullopt;
    usleep(5000);
  }
  return status_;
}

std::string Process::output() {
  MutexLock lock(mutex_);
  Drain(output_);
  return output_.text;
}

std::string Process::errors() {
  MutexLock lock(mutex_);
  Drain(errors_);
  return errors_.text;
}

CommandResult RunCommand(std::vector<std::string> argv,
                         std::vector<std::string> env, absl::Duration timeout) {
  CommandResult result;
  auto process = Process::Spawn(std::move(argv), std::move(env));
  if (process == nullptr) {
    result.errors = "cannot be started";
    return result;
  }
  const auto code = process->Wait(timeout);
  if (code.has_value()) {
    result.exit_code = *code;
    // Processes that it left behind may also have written something.
    process->WaitForOutput(std::string(1, '\0'), absl::Seconds(2));
  }
  result.output = process->output();
  result.errors = process->errors();
  return result;
}

TempDir::TempDir() {
  const char* base = getenv("TMPDIR");
  path_ = std::string(base == nullptr ? "/tmp" : base) + "/tilefarm-XXXXXX";
  TF_CHECK(mkdtemp(path_.data()) != nullptr);
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::Write(const std::string& name,
                           const std::string& text) const {
  std::ofstream(File(name), std::ios::binary) << text;
  return File(name);
}

std::string ReadFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace tilefarm::testing
