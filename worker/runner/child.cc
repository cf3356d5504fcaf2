#include "worker/runner/child.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "worker/monotonic_ms.h"

namespace tilefarm::worker {
namespace {

// Exit status of a body that returned, which differs from an exit() within it.
constexpr int kReturnedStatus = 93;
constexpr int kNotConfinedStatus = 94;
// Time for a child to end by itself after SIGTERM.
constexpr int64_t kGraceMs = 50;

void OnChildSignal(int) {}  // a handler that only interrupts ppoll

void Pin(const std::vector<uint32_t>& cpus) {
  if (cpus.empty()) return;
  const uint32_t most = *std::max_element(cpus.begin(), cpus.end());
  if (most >= 1 << 16) return;
  cpu_set_t* set = CPU_ALLOC(most + 1);
  const size_t size = CPU_ALLOC_SIZE(most + 1);
  CPU_ZERO_S(size, set);
  for (uint32_t cpu : cpus) CPU_SET_S(cpu, size, set);
  sched_setaffinity(0, size, set);
  CPU_FREE(set);
}

// Kills the orphans that the child's descendants left. They are our children,
// because this process is a subreaper; every child of ours except `child` is an
// orphan.
void KillOrphans() {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
  for (int round = 0; round < 100; ++round) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    FILE* file = fopen(path, "re");
    if (file == nullptr) return;
    int pid = 0;
    int killed = 0;
    while (fscanf(file, "%d", &pid) == 1) {
      kill(pid, SIGKILL);
      ++killed;
    }
    fclose(file);
    if (killed == 0) return;
    const timespec pause{0, 1000000};
    nanosleep(&pause, nullptr);
  }
}

// Waits until `child` has ended, and leaves its zombie, so that the number of
// its process group is not reused. False: it has not ended in time.
bool AwaitEnd(pid_t child, int64_t milliseconds) {
  const int64_t deadline = MonotonicMs() + milliseconds;
  sigset_t none;
  sigemptyset(&none);
  for (;;) {
    siginfo_t info = {};
    if (waitid(P_PID, child, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == child) {
      return true;
    }
    const int64_t left = deadline - MonotonicMs();
    if (left <= 0) return false;
    const timespec wait{left / 1000, left % 1000 * 1000000};
    ppoll(nullptr, 0, &wait, &none);
  }
}

// Signals the process group, and the child, which joins it only by its setsid.
void Signal(pid_t child, int signal) {
  kill(-child, signal);
  kill(child, signal);
}

// False: it still exists afterwards.
bool EndChild(pid_t child) {
  Signal(child, SIGTERM);
  Signal(child, SIGCONT);  // it may have stopped itself
  if (AwaitEnd(child, kGraceMs)) return true;
  Signal(child, SIGKILL);
  return AwaitEnd(child, kReapMs);
}

// What the worker has sent while a child runs.
enum class Control { kNothing, kCancel, kGone };
Control ReadControl(int fd, uint64_t run_id) {
  Frame frame;
  const FrameStatus status = ReadFrame(fd, 10000, &frame);
  CancelRun cancel;
  if (status != FrameStatus::kOk ||
      frame.type != static_cast<uint32_t>(RunnerFrame::kCancel) ||
      !Decode(frame.payload, &cancel)) {
    return Control::kGone;
  }
  return cancel.run_id == run_id ? Control::kCancel : Control::kNothing;
}

}  // namespace

std::string ChildOutcome::Describe(const ChildLimits& limits) const {
  char text[128];
  switch (end) {
    case ChildEnd::kReturned:
      return "returned";
    case ChildEnd::kExited:
      snprintf(text, sizeof text, "exited with status %d", code);
      return text;
    case ChildEnd::kSignal: {
      const std::string why = events.WhyKilled();
      if (code == SIGKILL && !why.empty()) return why;
      const char* name = sigabbrev_np(code);
      snprintf(text, sizeof text, "crashed with SIG%s",
               name == nullptr ? "?" : name);
      return text;
    }
    case ChildEnd::kTimeout:
      snprintf(text, sizeof text, "ran longer than %u ms", limits.timeout_ms);
      return text;
    case ChildEnd::kGivenUp:
      return "given up, many times slower than the best,";
    case ChildEnd::kCancelled:
      return "cancelled";
    case ChildEnd::kParentGone:
      return "the worker is gone";
    case ChildEnd::kNotStored:
      return std::string("cannot store the artifact: ") + strerror(code);
    case ChildEnd::kNotStarted:
      return std::string("cannot fork: ") + strerror(code);
    case ChildEnd::kNotConfined:
      return "cannot be confined as this runner announces" +
             (detail.empty() ? "" : " (" + detail + ")");
    case ChildEnd::kStuck:
      return "does not end when it is killed";
  }
  return "unknown end";
}

void PrepareForChildren() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  struct sigaction action = {};
  action.sa_handler = OnChildSignal;
  sigaction(SIGCHLD, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

ChildOutcome RunChild(const ChildSetup& setup, const ChildLimits& limits,
                      int control_fd, uint64_t run_id,
                      const std::function<void()>& body,
                      const GiveUp& give_up) {
  const pid_t parent = getpid();
  Pin(limits.cpus);
  ControlGroup* const group = setup.group;
  bool joined = true;
  const pid_t child = group == nullptr ? fork() : group->Fork(&joined);
  if (child < 0) return {ChildEnd::kNotStarted, errno};
  if (child == 0) {
    if (!joined ||
        !setup.sandbox.Enter(limits, parent, setup.kept_fd, setup.refused)) {
      _exit(kNotConfinedStatus);
    }
    body();
    _exit(kReturnedStatus);
  }
  const int64_t deadline = MonotonicMs() + limits.timeout_ms;
  ChildOutcome outcome;
  sigset_t none;
  sigemptyset(&none);
  bool killed = false;
  while (!AwaitEnd(child, 0)) {
    int64_t left = deadline - MonotonicMs();
    const int64_t patience = give_up ? give_up(child) : left;
    if (left <= 0) {
      outcome.end = ChildEnd::kTimeout;
    } else if (patience <= 0) {
      outcome.end = ChildEnd::kGivenUp;
    } else {
      left = std::min(left, patience);
      pollfd p{control_fd, POLLIN, 0};
      const timespec wait{left / 1000, left % 1000 * 1000000};
      const int n = ppoll(&p, control_fd < 0 ? 0 : 1, &wait, &none);
      if (n <= 0) continue;  // SIGCHLD, or the deadline
      const Control control = ReadControl(control_fd, run_id);
      if (control == Control::kNothing) continue;
      outcome.end = control == Control::kCancel ? ChildEnd::kCancelled
                                                : ChildEnd::kParentGone;
    }
    killed = true;
    break;
  }
  const bool ended = !killed || EndChild(child);
  kill(-child, SIGKILL);  // processes that it left in its process group
  // Ends the processes that left the group before its events are read.
  if (!ended || (group != nullptr && !group->End(kReapMs))) {
    // The worker has ended, so nobody waits for a result.
    if (outcome.end != ChildEnd::kParentGone) outcome.end = ChildEnd::kStuck;
    return outcome;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  KillOrphans();
  if (group != nullptr) outcome.events = group->Events();
  if (killed) return outcome;
  if (WIFSIGNALED(status)) {
    outcome.end = ChildEnd::kSignal;
    outcome.code = WTERMSIG(status);
  } else if (WEXITSTATUS(status) == kReturnedStatus) {
    outcome.end = ChildEnd::kReturned;
  } else if (WEXITSTATUS(status) == kNotConfinedStatus) {
    outcome.end = ChildEnd::kNotConfined;
  } else {
    outcome.end = ChildEnd::kExited;
    outcome.code = WEXITSTATUS(status);
  }
  return outcome;
}

}  // namespace tilefarm::worker
