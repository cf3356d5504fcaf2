#include "worker/runner/child.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "worker/monotonic.h"

namespace tilefarm::worker {
namespace {

// Exit status of a body that returned, which differs from an exit() within it.
constexpr int kReturnedStatus = 93;
constexpr int kNotConfinedStatus = 94;
// Time for a child to end by itself after SIGTERM.
constexpr int64_t kGraceMs = 50;
// How long a process that uses a device may take to end after SIGKILL: the
// driver first stops what runs on the device.
constexpr int64_t kDeviceReapMs = 30000;

void OnChildSignal(int) {}  // a handler that only interrupts ppoll

// Children that may answer again, and are no orphans.
std::set<pid_t>& LivingChildren() {
  static auto* const living = new std::set<pid_t>;
  return *living;
}

// Kills the orphans that a child's descendants left. They are our children,
// because this process is a subreaper; every child of ours that is not living
// is an orphan.
void KillOrphans() {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
  for (int round = 0; round < 100; ++round) {
    if (LivingChildren().empty()) {
      while (waitpid(-1, nullptr, WNOHANG) > 0) {
      }
    }
    FILE* file = fopen(path, "re");
    if (file == nullptr) return;
    int pid = 0;
    int killed = 0;
    while (fscanf(file, "%d", &pid) == 1) {
      if (LivingChildren().contains(pid)) continue;
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, WNOHANG);
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

// A thread by its id; 0: this one.
void RunOn(pid_t thread, const std::vector<uint32_t>& cores) {
  if (cores.empty()) return;
  const uint32_t most = *std::max_element(cores.begin(), cores.end());
  if (most >= 1 << 16) return;
  cpu_set_t* set = CPU_ALLOC(most + 1);
  const size_t size = CPU_ALLOC_SIZE(most + 1);
  CPU_ZERO_S(size, set);
  for (uint32_t core : cores) CPU_SET_S(core, size, set);
  sched_setaffinity(thread, size, set);
  CPU_FREE(set);
}

// Signals the process group, and the child, which joins it only by its setsid.
void Signal(pid_t child, int signal) {
  kill(-child, signal);
  kill(child, signal);
}

// False: it still exists afterwards.
bool EndChild(pid_t child, int64_t reap_ms) {
  Signal(child, SIGTERM);
  Signal(child, SIGCONT);  // it may have stopped itself
  if (AwaitEnd(child, kGraceMs)) return true;
  Signal(child, SIGKILL);
  return AwaitEnd(child, reap_ms);
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
    case ChildEnd::kAnswered:
      return "answered";
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

void RunOnCores(const std::vector<uint32_t>& cores) { RunOn(0, cores); }

void RunThreadsOnCores(const std::vector<uint32_t>& cores) {
  DIR* const threads = opendir("/proc/self/task");
  if (threads == nullptr) return RunOnCores(cores);
  while (const dirent* entry = readdir(threads)) {
    const int thread = atoi(entry->d_name);
    if (thread > 0) RunOn(thread, cores);
  }
  closedir(threads);
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

Child::Child(const ChildSetup& setup, const ChildLimits& limits,
             const std::function<void()>& body)
    : group_(setup.group),
      reap_ms_(setup.uses_device ? kDeviceReapMs : kReapMs) {
  const pid_t parent = getpid();
  RunOnCores(limits.cpus);
  bool joined = true;
  pid_ = group_ == nullptr ? fork() : group_->Fork(&joined);
  if (pid_ < 0) {
    error_ = errno;
    return;
  }
  if (pid_ == 0) {
    const Sandbox& sandbox = setup.sandbox;
    if (!joined ||
        !(setup.uses_device
              ? sandbox.EnterForDevice(parent, setup.kept_fds, setup.folder)
              : sandbox.Enter(limits, parent, setup.kept_fds, setup.refused))) {
      _exit(kNotConfinedStatus);
    }
    body();
    _exit(kReturnedStatus);
  }
  LivingChildren().insert(pid_);
}

Child::~Child() { End(); }

bool Child::End() {
  if (pid_ < 0) return true;
  const pid_t child = pid_;
  pid_ = -1;
  LivingChildren().erase(child);
  const bool ended = EndChild(child, reap_ms_);
  kill(-child, SIGKILL);  // processes that it left in its process group
  // Ends the processes that left the group before its events are read.
  if (!ended || (group_ != nullptr && !group_->End(reap_ms_))) return false;
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  KillOrphans();
  return true;
}

ChildOutcome Child::Await(const ChildLimits& limits, int control_fd,
                          uint64_t run_id, const GiveUp& give_up,
                          int answer_fd) {
  if (pid_ < 0) return {ChildEnd::kNotStarted, error_};
  const pid_t child = pid_;
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
      // poll ignores negative descriptors.
      pollfd fds[2] = {{control_fd, POLLIN, 0}, {answer_fd, POLLIN, 0}};
      const timespec wait{left / 1000, left % 1000 * 1000000};
      const int n = ppoll(fds, 2, &wait, &none);
      if (n <= 0) continue;  // SIGCHLD, or the deadline
      if (fds[0].revents == 0) {
        // The end of its descriptor is the end of the child, which is near.
        if ((fds[1].revents & POLLIN) != 0) return {ChildEnd::kAnswered};
        answer_fd = -1;
        continue;
      }
      const Control control = ReadControl(control_fd, run_id);
      if (control == Control::kNothing) continue;
      outcome.end = control == Control::kCancel ? ChildEnd::kCancelled
                                                : ChildEnd::kParentGone;
    }
    killed = true;
    break;
  }
  pid_ = -1;
  LivingChildren().erase(child);
  const bool ended = !killed || EndChild(child, reap_ms_);
  kill(-child, SIGKILL);  // processes that it left in its process group
  // Ends the processes that left the group before its events are read.
  if (!ended || (group_ != nullptr && !group_->End(reap_ms_))) {
    // The worker has ended, so nobody waits for a result.
    if (outcome.end != ChildEnd::kParentGone) outcome.end = ChildEnd::kStuck;
    return outcome;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  KillOrphans();
  if (group_ != nullptr) outcome.events = group_->Events();
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

ChildOutcome RunChild(const ChildSetup& setup, const ChildLimits& limits,
                      int control_fd, uint64_t run_id,
                      const std::function<void()>& body,
                      const GiveUp& give_up) {
  return Child(setup, limits, body).Await(limits, control_fd, run_id, give_up);
}

}  // namespace tilefarm::worker
