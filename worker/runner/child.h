// A forked process for code that may crash, hang or write anywhere.
#ifndef TILEFARM_WORKER_RUNNER_CHILD_H_
#define TILEFARM_WORKER_RUNNER_CHILD_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "worker/control_group.h"
#include "worker/runner/sandbox.h"
#include "worker/runner_protocol.h"

namespace tilefarm::worker {

enum class ChildEnd {
  kReturned,     // the body returned
  kAnswered,     // it has answered, and lives on
  kExited,       // the body called exit
  kSignal,       // died of a signal
  kTimeout,      // killed at its wall-clock limit
  kGivenUp,      // killed because GiveUp said so
  kCancelled,    // killed for a kCancel frame
  kParentGone,   // killed: the worker closed our input, or broke the protocol
  kNotStored,    // no room for the artifact
  kNotStarted,   // fork failed
  kNotConfined,  // a part of its sandbox failed, so it did not run
  kStuck,        // killed at a limit, but has not ended
};

struct ChildOutcome {
  ChildEnd end = ChildEnd::kNotStarted;
  int code = 0;        // exit status, signal or errno
  GroupEvents events;  // of its control group, if it had one
  std::string detail;  // of kNotConfined

  // "crashed with SIGSEGV", "exited with status 3", ...
  std::string Describe(const ChildLimits& limits) const;
};

// How many more milliseconds `child` may run. Asked at the start, and each time
// when they are over; 0 or less: it is killed.
using GiveUp = std::function<int64_t(pid_t child)>;
// The first run of a candidate is given up after the best known time multiplied
// by this factor, plus a pause.
inline constexpr double kGiveUpFactor = 10;
inline constexpr int64_t kGiveUpStepMs = 5;

// To be called once, before RunChild, by the single thread of the process.
// Blocks SIGCHLD except where RunChild waits, ignores SIGPIPE, and makes this
// process the parent of orphaned descendants, so that it can kill them.
void PrepareForChildren();

// Keeps this thread on these cores; empty: no change.
void RunOnCores(const std::vector<uint32_t>& cores);
// The same of all threads of this process.
void RunThreadsOnCores(const std::vector<uint32_t>& cores);

// The parameters of a child, apart from its limits.
struct ChildSetup {
  const Sandbox& sandbox;
  std::vector<int> kept_fds;  // the only files that stay open
  volatile int32_t* refused;  // see Sandbox::Enter; in shared memory
  ControlGroup* group;        // the group of the child; null: none
  // For the child that uses a device: Sandbox::EnterForDevice confines it, with
  // this folder for its driver.
  bool uses_device = false;
  std::string folder = {};
};

// A child that may answer several times before it ends. Single-threaded.
class Child {
 public:
  // Forks, and runs `body` in the child. This process moves to the cores of
  // `limits` as well, so that it later processes the results where nothing is
  // built. The child is in the sandbox, ends with this process, and has
  // /dev/null as standard input, output and error. `setup.group` must outlive
  // this.
  Child(const ChildSetup& setup, const ChildLimits& limits,
        const std::function<void()>& body);
  // Ends it.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Waits until it ends, is to be ended, or `answer_fd` can be read
  // (kAnswered); -1: it does not answer. After any other outcome it is gone,
  // together with all processes that it started, which are ended by SIGTERM,
  // then SIGKILL, then a few seconds until they have ended. Its processes are
  // found by its control group, or without one by its process group and as
  // orphans of this process. A child that still exists (kStuck: it hangs in the
  // kernel) ends only with this process, which should end then. Meanwhile
  // watches `control_fd` for its end, and for a kCancel frame that names
  // `run_id`.
  ChildOutcome Await(const ChildLimits& limits, int control_fd, uint64_t run_id,
                     const GiveUp& give_up, int answer_fd = -1);
  // Ends it as Await does, if it is not gone. False: it is stuck.
  bool End();

 private:
  ControlGroup* const group_;
  const int64_t reap_ms_;
  pid_t pid_ = -1;  // -1: it is gone
  int error_ = 0;   // errno of the fork
};

// Runs `body` in a child until it ends or is to be ended; see Child.
ChildOutcome RunChild(const ChildSetup& setup, const ChildLimits& limits,
                      int control_fd, uint64_t run_id,
                      const std::function<void()>& body,
                      const GiveUp& give_up = nullptr);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_CHILD_H_
