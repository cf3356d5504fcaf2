#include "server/cli/run_program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"

extern char** environ;

namespace tilefarm::cli {
namespace {

constexpr size_t kMostOutput = size_t{64} << 20;
constexpr absl::Duration kPoll = absl::Milliseconds(20);

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// The child that runs now. Ctrl-C reaches this process alone, since the child
// has a process group of its own.
volatile sig_atomic_t running_child = 0;

void EndWithChild(int signal_number) {
  if (running_child > 0) kill(-running_child, SIGKILL);
  _exit(128 + signal_number);
}

// Ends the child if this process is asked to end meanwhile.
class ChildGuard {
 public:
  explicit ChildGuard(pid_t child) {
    running_child = child;
    struct sigaction action = {};
    action.sa_handler = EndWithChild;
    sigaction(SIGINT, &action, &interrupt_);
    sigaction(SIGTERM, &action, &terminate_);
  }
  ~ChildGuard() {
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGTERM, &terminate_, nullptr);
    running_child = 0;
  }

 private:
  struct sigaction interrupt_ = {}, terminate_ = {};
};

// The process, or an errno below 0.
pid_t Spawn(const ProgramRun& run, int output) {
  std::vector<std::string> argv = run.argv;
  std::vector<std::string> environment = run.environment;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string text = *one;
    const std::string name = text.substr(0, text.find('=') + 1);
    const bool replaced =
        std::any_of(run.environment.begin(), run.environment.end(),
                    [&](const std::string& own) {
                      return own.compare(0, name.size(), name) == 0;
                    });
    if (!replaced) environment.push_back(text);
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  if (output >= 0) posix_spawn_file_actions_adddup2(&actions, output, 1);
  if (!run.folder.empty()) {
    posix_spawn_file_actions_addchdir_np(&actions, run.folder.c_str());
  }
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP |
                                            POSIX_SPAWN_SETSIGMASK |
                                            POSIX_SPAWN_SETSIGDEF);
  pid_t child = -1;
  const int error =
      posix_spawnp(&child, argv[0].c_str(), &actions, &attributes,
                   Pointers(argv).data(), Pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? child : -error;
}

}  // namespace

absl::StatusOr<std::string> RunProgram(const ProgramRun& run) {
  if (run.argv.empty()) return absl::InvalidArgumentError("no program to run");
  const std::string& name = run.argv[0];
  int pipe_fds[2] = {-1, -1};
  if (run.takes_output && pipe2(pipe_fds, O_CLOEXEC) != 0) {
    return absl::ErrnoToStatus(errno, "cannot make a pipe");
  }
  const pid_t child = Spawn(run, pipe_fds[1]);
  if (pipe_fds[1] >= 0) close(pipe_fds[1]);
  if (child < 0) {
    if (pipe_fds[0] >= 0) close(pipe_fds[0]);
    return absl::NotFoundError(
        absl::StrCat("cannot run ", name, ": ", strerror(-child)));
  }
  const ChildGuard guard(child);
  const absl::Duration end = Clock::Real().Monotonic() + run.limit;
  std::string output;
  bool open = run.takes_output;
  bool late = false, large = false;
  int status = 0;
  bool ended = false;
  while (!ended || open) {
    if (open) {
      pollfd fd = {pipe_fds[0], POLLIN, 0};
      if (poll(&fd, 1, static_cast<int>(absl::ToInt64Milliseconds(kPoll))) >
          0) {
        char buffer[65536];
        const ssize_t n = read(pipe_fds[0], buffer, sizeof buffer);
        if (n > 0) output.append(buffer, static_cast<size_t>(n));
        open = n > 0 || (n < 0 && errno == EINTR);
      }
    } else {
      absl::SleepFor(kPoll);
    }
    large = output.size() > kMostOutput;
    late = Clock::Real().Monotonic() > end;
    if (!ended) ended = waitpid(child, &status, WNOHANG) == child;
    // What it left behind may keep the pipe open.
    if (ended && open && late) break;
    if (!ended && (late || large)) {
      kill(-child, SIGKILL);
      waitpid(child, &status, 0);
      break;
    }
  }
  kill(-child, SIGKILL);
  if (pipe_fds[0] >= 0) close(pipe_fds[0]);
  if (large) {
    return absl::ResourceExhaustedError(
        absl::StrCat(name, " printed more than ", kMostOutput >> 20, " MiB"));
  }
  if (late && !ended) {
    return absl::DeadlineExceededError(absl::StrCat(
        name, " did not end within ", absl::FormatDuration(run.limit)));
  }
  if (WIFSIGNALED(status)) {
    return absl::AbortedError(
        absl::StrCat(name, " died of SIG", sigabbrev_np(WTERMSIG(status))));
  }
  if (WEXITSTATUS(status) != 0) {
    return absl::AbortedError(
        absl::StrCat(name, " exited with status ", WEXITSTATUS(status)));
  }
  return output;
}

}  // namespace tilefarm::cli
