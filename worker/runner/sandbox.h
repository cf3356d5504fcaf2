// Isolates the runner's children (base/isolation.h).
//
// A child is untrusted as soon as an artifact is loaded: the artifact's code
// may do whatever the system permits.
#ifndef TILEFARM_WORKER_RUNNER_SANDBOX_H_
#define TILEFARM_WORKER_RUNNER_SANDBOX_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/isolation.h"
#include "worker/control_group.h"
#include "worker/runner_protocol.h"
#include "worker/syscall_filter.h"

namespace tilefarm::worker {

// How long processes may take to end after SIGKILL.
inline constexpr int64_t kReapMs = 5000;

// Whether the artifact names a library of kernels that devices may have
// (base/device_libraries.h). An artifact names every library that it needs.
bool CallsALibrary(const std::string& artifact);

class Sandbox {
 public:
  // To be called once by the single thread of the process. Also confines this
  // process where that costs the children nothing: it enters a network
  // namespace and an empty directory without a name. Then finds out by trial
  // what else works here. Nothing beyond `most` is tried. Control groups are
  // made in `groups`, an absolute path that no other program may use: processes
  // that another runner left there are ended. Empty: no control groups.
  explicit Sandbox(const Isolation& most, const std::string& groups = "");

  // The strongest isolation that children can have.
  const Isolation& isolation() const { return isolation_; }
  // The isolation of a child with an artifact, which depends on CallsALibrary.
  Isolation IsolationOf(bool calls_a_library) const;
  // Why not all of `most` works; empty: it does.
  const std::string& shortfall() const { return shortfall_; }

  // The group that the next child must be forked into; null: isolation() has
  // none, or, with a reason in `*error`, it cannot be made.
  std::unique_ptr<ControlGroup> MakeGroup(const ChildLimits& limits,
                                          std::string* error) const;

  // To be called in a forked child of `parent`, before an artifact is loaded.
  // Closes all files except `kept_fd`. The number of a system call that is
  // refused afterwards, plus 1, is written to `*refused`. False: the child is
  // less confined than it should be.
  bool Enter(const ChildLimits& limits, pid_t parent, int kept_fd,
             volatile int32_t* refused) const;
  // To be called in the child after the artifact is loaded, before any of its
  // functions is called. Closes `kept_fd`. False as above.
  bool Close(IsolationLevel level, int kept_fd) const;

 private:
  // Whether a child can be confined to `level`, and we can still end it.
  bool Try(IsolationLevel level) const;
  // Why children cannot be forked into groups and be ended with them; empty:
  // they can.
  std::string TryGroup() const;
  void AddShortfall(const std::string& what);

  Isolation isolation_;
  std::string groups_;
  std::string shortfall_;
  SyscallFilter loading_, running_;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_SANDBOX_H_
