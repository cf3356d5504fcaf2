#include "server/cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"

namespace tilefarm::cli {
namespace {

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
  return absl::StrCat("was ended by SIG", name == nullptr ? "?" : name);
}

// In the child, between fork and exec: calls nothing that allocates or locks.
[[noreturn]] void Become(char* const* argv, char* const* environment,
                         int output_fd, int log_fd, int null_fd, pid_t parent) {
  setpgid(0, 0);
  // Otherwise a killed `tune` would leave a server behind.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  dup2(null_fd, 0);
  dup2(output_fd, 1);
  dup2(log_fd, 2);
  execve(argv[0], argv, environment);
  const char message[] = "cannot be executed\n";
  [[maybe_unused]] const ssize_t n = write(2, message, sizeof message - 1);
  _exit(127);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Child>> Child::Start(
    const std::vector<std::string>& argv,
    const std::vector<std::string>& environment, const std::string& log) {
  const int log_fd = open(
      log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  if (log_fd < 0) return absl::ErrnoToStatus(errno, log);
  const int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  int output[2] = {-1, -1};
  pid_t pid = -1;
  int error = 0;
  if (null_fd < 0 || pipe2(output, O_CLOEXEC) != 0) {
    error = errno;
  } else {
    const std::vector<char*> arguments = Pointers(argv);
    const std::vector<char*> variables = Pointers(environment);
    const pid_t parent = getpid();
    pid = fork();
    if (pid == 0) {
      Become(arguments.data(), variables.data(), output[1], log_fd, null_fd,
             parent);
    }
    if (pid < 0) error = errno;
    close(output[1]);
  }
  close(log_fd);
  if (null_fd >= 0) close(null_fd);
  if (pid < 0) {
    if (output[0] >= 0) close(output[0]);
    return absl::ErrnoToStatus(error, argv[0]);
  }
  return std::unique_ptr<Child>(new Child(pid, output[0]));
}

Child::Child(pid_t pid, int output_fd)
    : pid_(pid), output_fd_(output_fd), waiter_([this] { Wait(); }) {}

Child::~Child() {
  Stop();
  waiter_.join();
  close(output_fd_);
}

void Child::Wait() {
  // The process stays a zombie until `ended_` is set, so that Stop never sends
  // a signal to another process of the same id.
  siginfo_t info;
  while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) !=
             0 &&
         errno == EINTR) {
  }
  std::function<void(const std::string&)> tell;
  std::string end;
  {
    MutexLock lock(mutex_);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    ended_ = true;
    end = end_ = DescribeEnd(status);
    if (!stopping_) tell = on_end_;
    changed_.NotifyAll();
  }
  if (tell) tell(end);
}

absl::StatusOr<std::string> Child::WaitForLine(const std::string& prefix) {
  std::string text;
  size_t start = 0;  // of the line that is not complete
  char buffer[512];
  while (true) {
    const ssize_t n = read(output_fd_, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(buffer, static_cast<size_t>(n));
    for (size_t end; (end = text.find('\n', start)) != std::string::npos;
         start = end + 1) {
      const std::string line = text.substr(start, end - start);
      if (absl::StartsWith(line, prefix)) return line.substr(prefix.size());
    }
  }
  MutexLock lock(mutex_);
  while (!ended_) changed_.Wait(mutex_);
  return absl::UnavailableError(end_);
}

void Child::OnEnd(std::function<void(const std::string&)> ended) {
  std::string end;
  {
    MutexLock lock(mutex_);
    if (!ended_) {
      on_end_ = std::move(ended);
      return;
    }
    if (stopping_) return;
    end = end_;
  }
  ended(end);
}

void Child::Stop(absl::Duration patience) {
  MutexLock lock(mutex_);
  stopping_ = true;
  if (!ended_) kill(pid_, SIGTERM);
  Clock& clock = Clock::Real();
  const absl::Duration until = clock.Monotonic() + patience;
  while (!ended_) {
    const absl::Duration left = until - clock.Monotonic();
    if (left > absl::ZeroDuration()) {
      changed_.WaitFor(mutex_, left);
    } else {
      kill(-pid_, SIGKILL);
      changed_.Wait(mutex_);
    }
  }
}

absl::StatusOr<std::string> SiblingProgram(const std::string& name) {
  std::error_code error;
  const std::filesystem::path self =
      std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string path = (self.parent_path() / name).string();
  if (error || access(path.c_str(), X_OK) != 0) {
    return absl::NotFoundError(
        absl::StrCat("no program ", path, "; it must be beside tune"));
  }
  return path;
}

std::string LastLines(const std::string& path, int lines) {
  std::ifstream file(path);
  std::deque<std::string> last;
  for (std::string line; std::getline(file, line);) {
    last.push_back(line);
    if (static_cast<int>(last.size()) > lines) last.pop_front();
  }
  return absl::StrJoin(last, "\n");
}

}  // namespace tilefarm::cli
