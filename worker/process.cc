#include "worker/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace tilefarm::worker {
namespace {

constexpr absl::Duration kReapTimeout = absl::Seconds(10);

int64_t Milliseconds(absl::Duration timeout) {
  if (timeout == absl::InfiniteDuration()) return -1;
  return std::max<int64_t>(0, absl::ToInt64Milliseconds(timeout));
}

absl::Status FrameError(FrameStatus status) {
  switch (status) {
    case FrameStatus::kOk:
      return absl::OkStatus();
    case FrameStatus::kTimeout:
      return absl::DeadlineExceededError("no answer in time");
    case FrameStatus::kMalformed:
      return absl::DataLossError("malformed frame");
    default:
      return absl::UnavailableError("the process is gone");
  }
}

absl::Status ErrnoError(const char* what, int error) {
  return absl::ErrnoToStatus(error, what);
}

// The strings in the form of exec; valid as long as they are.
std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& one : strings) {
    pointers.push_back(const_cast<char*>(one.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

std::string DescribeEnd(int status) {
  if (WIFEXITED(status)) {
    return absl::StrCat("exited with status ", WEXITSTATUS(status));
  }
  const char* name = sigabbrev_np(WTERMSIG(status));
  return absl::StrCat("crashed with SIG", name == nullptr ? "?" : name);
}

}  // namespace

Process::~Process() {
  Kill();
  CloseInput();
  close(output_fd_);
}

absl::Status Process::Write(uint32_t type, std::string_view payload,
                            absl::Duration timeout) {
  MutexLock lock(write_mutex_);
  return FrameError(
      WriteFrame(input_fd_, Milliseconds(timeout), type, payload));
}

bool Process::WaitReadable(absl::Duration timeout) {
  pollfd p{output_fd_, POLLIN, 0};
  return poll(&p, 1, static_cast<int>(Milliseconds(timeout))) != 0;
}

absl::StatusOr<Frame> Process::Read(absl::Duration timeout) {
  Frame frame;
  const absl::Status status =
      FrameError(reader_.Read(output_fd_, Milliseconds(timeout), &frame));
  if (!status.ok()) return status;
  return frame;
}

std::string Process::Kill() {
  MutexLock lock(mutex_);
  if (reaped_) return end_;
  int status = 0;
  const bool had_ended = waitpid(pid_, &status, WNOHANG) == pid_;
  if (!had_ended) {
    kill(-pid_, SIGKILL);
    kill(pid_, SIGKILL);
    // A process that hangs in the kernel is not waited for any longer.
    const absl::Time deadline = absl::Now() + kReapTimeout;
    pid_t ended = 0;
    while ((ended = waitpid(pid_, &status, WNOHANG)) != pid_) {
      if (ended < 0 && errno != EINTR) break;
      if (absl::Now() > deadline) {
        reaped_ = true;
        return end_ = "does not end when it is killed";
      }
      absl::SleepFor(absl::Milliseconds(1));
    }
  }
  reaped_ = true;
  // A process that crashed may have closed its pipes before it can be reaped;
  // it has ended by itself.
  const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  end_ = killed ? "killed" : DescribeEnd(status);
  return end_;
}

void Process::Stop() { Signal(SIGSTOP); }
void Process::Continue() { Signal(SIGCONT); }

void Process::CloseInput() {
  MutexLock lock(write_mutex_);
  if (input_fd_ >= 0) close(input_fd_);
  input_fd_ = -1;
}

void Process::Signal(int signal) {
  MutexLock lock(mutex_);
  if (!reaped_) kill(pid_, signal);
}

ProcessStarter::ProcessStarter() : thread_([this] { Loop(); }) {}

ProcessStarter::~ProcessStarter() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void ProcessStarter::Loop() {
  MutexLock lock(mutex_);
  while (!ending_) {
    if (task_ == nullptr) {
      changed_.Wait(mutex_);
      continue;
    }
    task_();
    task_ = nullptr;
    changed_.NotifyAll();
  }
}

absl::StatusOr<std::unique_ptr<Process>> ProcessStarter::Start(
    const std::vector<std::string>& argv,
    const std::vector<std::string>& environment) {
  absl::StatusOr<std::unique_ptr<Process>> result =
      absl::InternalError("not started");
  MutexLock lock(mutex_);
  while (task_ != nullptr) changed_.Wait(mutex_);
  bool done = false;
  task_ = [&] {
    result = Spawn(argv, environment);
    done = true;
  };
  changed_.NotifyAll();
  while (!done) changed_.Wait(mutex_);
  return result;
}

absl::StatusOr<std::unique_ptr<Process>> ProcessStarter::Spawn(
    const std::vector<std::string>& argv,
    const std::vector<std::string>& environment) {
  // Close-on-exec: if another helper process inherited an end of the pipe, this
  // one would never see the end of its input.
  int to_child[2], from_child[2];
  if (pipe2(to_child, O_CLOEXEC) != 0) return ErrnoError("pipe", errno);
  if (pipe2(from_child, O_CLOEXEC) != 0) {
    const int error = errno;
    close(to_child[0]);
    close(to_child[1]);
    return ErrnoError("pipe", error);
  }
  fcntl(to_child[1], F_SETFL, O_NONBLOCK);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to_child[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from_child[1], STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP |
                                            POSIX_SPAWN_SETSIGDEF |
                                            POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  for (int signal : {SIGINT, SIGTERM, SIGPIPE, SIGHUP, SIGCHLD}) {
    sigaddset(&signals, signal);
  }
  posix_spawnattr_setsigdefault(&attributes, &signals);

  const std::vector<char*> arguments = Pointers(argv);
  const std::vector<char*> variables = Pointers(environment);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, arguments[0], &actions, &attributes,
                                 arguments.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(to_child[0]);
  close(from_child[1]);
  if (error != 0) {
    close(to_child[1]);
    close(from_child[0]);
    return ErrnoError(absl::StrCat("cannot start ", argv[0]).c_str(), error);
  }
  return std::unique_ptr<Process>(new Process(pid, to_child[1], from_child[0]));
}

}  // namespace tilefarm::worker
