// A forked process for code that may crash, hang, write anywhere or never
// return.
#ifndef TILEFARM_WORKER_RUNNER_CHILD_H_
#define TILEFARM_WORKER_RUNNER_CHILD_H_

#include <cstdint>
#include <functional>
#include <string>

#include "worker/runner_protocol.h"

namespace tilefarm::worker {

enum class ChildEnd {
  kReturned,    // the body returned
  kExited,      // something in it called exit
  kSignal,      // died of a signal
  kTimeout,     // killed at its wall-clock limit
  kGivenUp,     // killed since GiveUp said so
  kCancelled,   // killed for a kCancel frame
  kParentGone,  // killed: the worker closed our input, or broke the protocol
  kNotStarted,  // fork failed
};

struct ChildOutcome {
  ChildEnd end = ChildEnd::kNotStarted;
  int code = 0;  // exit status, signal or errno

  // "crashed with SIGSEGV", "exited with status 3", ...
  std::string Describe(const ChildLimits& limits) const;
};

// How many more milliseconds a child may go on as things are, asked at the
// start and whenever they are over; 0 or less: it is killed.
using GiveUp = std::function<int64_t()>;

// To be called once, before RunChild, by the single thread of the process:
// blocks SIGCHLD but where RunChild waits, ignores SIGPIPE, and adopts the
// descendants that children leave behind so that they can be killed.
void PrepareForChildren();

// Forks, runs `body` in the child under `limits` and waits for its end. This
// process moves to the child's cores, too: what it does afterwards with the
// results is done where nothing is built. The
// child has its own session and process group, dies with this process, has
// /dev/null as standard input, output and error, may not write files, and is
// killed with everything it started. Watches `control_fd` meanwhile for its
// end, or a kCancel frame that names `run_id`.
ChildOutcome RunChild(const ChildLimits& limits, int control_fd,
                      uint64_t run_id, const std::function<void()>& body,
                      const GiveUp& give_up = nullptr);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_CHILD_H_
