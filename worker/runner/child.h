// A forked process for code that may crash, hang, write anywhere or never
// return.
#ifndef TILEFARM_WORKER_RUNNER_CHILD_H_
#define TILEFARM_WORKER_RUNNER_CHILD_H_

#include <cstdint>
#include <functional>
#include <string>

#include "worker/control_group.h"
#include "worker/runner/sandbox.h"
#include "worker/runner_protocol.h"

namespace tilefarm::worker {

enum class ChildEnd {
  kReturned,     // the body returned
  kExited,       // something in it called exit
  kSignal,       // died of a signal
  kTimeout,      // killed at its wall-clock limit
  kGivenUp,      // killed since GiveUp said so
  kCancelled,    // killed for a kCancel frame
  kParentGone,   // killed: the worker closed our input, or broke the protocol
  kNotStored,    // no room for the artifact
  kNotStarted,   // fork failed
  kNotConfined,  // it would have run with less of a sandbox than is said
  kStuck,        // killed at a limit, and still there
};

struct ChildOutcome {
  ChildEnd end = ChildEnd::kNotStarted;
  int code = 0;        // exit status, signal or errno
  GroupEvents events;  // of its control group, where it had one
  std::string detail;  // of kNotConfined

  // "crashed with SIGSEGV", "exited with status 3", ...
  std::string Describe(const ChildLimits& limits) const;
};

// How many more milliseconds `child` may go on as things are, asked at the
// start and whenever they are over; 0 or less: it is killed.
using GiveUp = std::function<int64_t(pid_t child)>;

// To be called once, before RunChild, by the single thread of the process:
// blocks SIGCHLD but where RunChild waits, ignores SIGPIPE, and adopts the
// descendants that children leave behind so that they can be killed.
void PrepareForChildren();

// What a child is made of beside its limits.
struct ChildSetup {
  const Sandbox& sandbox;
  int kept_fd;                // the one file that it may have; -1: none
  volatile int32_t* refused;  // as Sandbox::Enter has it, in shared memory
  ControlGroup* group;        // what the child is forked into; null: nothing
};

// Forks, runs `body` in the child under `limits` and waits for its end. This
// process moves to the child's cores, too: what it does afterwards with the
// results is done where nothing is built. The child is in the sandbox, dies
// with this process, has /dev/null as standard input, output and error, and is
// ended with everything it started: SIGTERM, SIGKILL a moment later, and a few
// seconds to be gone. What a child leaves is found by its group, without one by
// its process group and as orphans of this process. A child that is not gone
// then (kStuck: it hangs in the system) is left to this process's end, which
// should follow. Watches `control_fd` meanwhile for its end, or a kCancel frame
// that names `run_id`.
ChildOutcome RunChild(const ChildSetup& setup, const ChildLimits& limits,
                      int control_fd, uint64_t run_id,
                      const std::function<void()>& body,
                      const GiveUp& give_up = nullptr);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_CHILD_H_
