#include "worker/runner_query.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/isolation.h"
#include "worker/helper_environment.h"

namespace tilefarm::worker {
namespace {

// A runner for a device starts its driver first.
constexpr absl::Duration kTimeout = absl::Seconds(90);
constexpr size_t kMostBytes = 4096;

// Reads what the process writes until it ends, or the time is over.
std::string ReadAll(int fd) {
  std::string text;
  Clock& clock = Clock::Real();
  const absl::Duration deadline = clock.Monotonic() + kTimeout;
  while (text.size() < kMostBytes) {
    const int64_t left =
        absl::ToInt64Milliseconds(deadline - clock.Monotonic());
    pollfd ready = {fd, POLLIN, 0};
    if (left <= 0 || poll(&ready, 1, static_cast<int>(left)) <= 0) break;
    char bytes[512];
    const ssize_t n = read(fd, bytes, sizeof bytes);
    if (n <= 0) break;
    text.append(bytes, static_cast<size_t>(n));
  }
  return text;
}

}  // namespace

std::string AskRunner(std::vector<std::string> runner_command,
                      const std::string& question) {
  runner_command.push_back(question);
  std::vector<char*> argv;
  for (std::string& word : runner_command) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<std::string> environment = RunnerEnvironment();
  std::vector<char*> variables;
  for (std::string& variable : environment) {
    variables.push_back(variable.data());
  }
  variables.push_back(nullptr);
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) return "";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], 1);
  pid_t pid = 0;
  const bool started = posix_spawnp(&pid, argv[0], &actions, nullptr,
                                    argv.data(), variables.data()) == 0;
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_fds[1]);
  std::string text;
  int status = 1;
  if (started) {
    text = ReadAll(pipe_fds[0]);
    kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
  }
  close(pipe_fds[0]);
  return text;
}

std::string RunnersIsolation(std::vector<std::string> runner_command) {
  const std::string text = AskRunner(std::move(runner_command), "--isolation");
  Isolation isolation;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (ParseIsolation({line.data(), line.size()}, &isolation)) break;
  }
  return isolation.Text();
}

absl::StatusOr<GpuDevice> RunnersGpu(std::vector<std::string> runner_command) {
  const std::string text = AskRunner(std::move(runner_command), "--properties");
  GpuDevice device;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> property =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    const auto& [name, value] = property;
    if (name == "error") {
      return absl::FailedPreconditionError(value);
    }
    bool is_number = true;
    if (name == "target") {
      device.target = std::string(value);
    } else if (name == "brand") {
      device.brand = std::string(value);
    } else if (name == "bus_id") {
      device.bus_id = std::string(value);
    } else if (name == "multiprocessor_shared_bytes") {
      is_number = absl::SimpleAtoi(value, &device.multiprocessor_shared_bytes);
    } else if (name == "l2_bytes") {
      is_number = absl::SimpleAtoi(value, &device.l2_bytes);
    } else if (name == "memory_bytes") {
      is_number = absl::SimpleAtoi(value, &device.memory_bytes);
    }
    if (!is_number) device.target.clear();
  }
  if (device.target.empty()) {
    return absl::FailedPreconditionError(
        "its tune-runner does not say what it is; it must be of this release");
  }
  return device;
}

}  // namespace tilefarm::worker
