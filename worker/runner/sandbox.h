// What keeps the runner's children from everything else (base/isolation.h).
//
// A child is untrusted from the moment that an artifact is loaded: its code
// may do whatever the system lets it do.
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

// What the system has to end processes after SIGKILL.
inline constexpr int64_t kReapMs = 5000;

// Whether it names a library of kernels that devices may have
// (base/device_libraries.h): what an artifact needs, it names.
bool CallsALibrary(const std::string& artifact);

class Sandbox {
 public:
  // To be called by the single thread of the process, once. Confines it, too,
  // where that costs the children nothing: it goes into a network namespace and
  // an empty directory that no longer has a name. Then learns by a trial what
  // else works here. Nothing beyond `most` is tried. Control groups are made in
  // `groups`, an absolute path, where nobody else may make any: what another
  // runner left there is ended. Empty: there are none.
  explicit Sandbox(const Isolation& most, const std::string& groups = "");

  // The most that children can have.
  const Isolation& isolation() const { return isolation_; }
  // What a child with an artifact has, by whether that CallsALibrary.
  Isolation IsolationOf(bool calls_a_library) const;
  // Why not all of `most` works; empty where it does.
  const std::string& shortfall() const { return shortfall_; }

  // The group that the next child must be forked into; null where isolation()
  // has none. Where it should have one and cannot, null and why in `*error`.
  std::unique_ptr<ControlGroup> MakeGroup(const ChildLimits& limits,
                                          std::string* error) const;

  // In a forked child of `parent`, before an artifact is loaded. Of all open
  // files it keeps `kept_fd` alone. The number of a system call that is refused
  // from now on, plus 1, is written to `*refused`. False where the child would
  // be less confined than it should.
  bool Enter(const ChildLimits& limits, pid_t parent, int kept_fd,
             volatile int32_t* refused) const;
  // In the child, with the artifact loaded and before any of its functions is
  // called: closes `kept_fd`. False as above.
  bool Close(IsolationLevel level, int kept_fd) const;

 private:
  // Whether a child can be confined to `level`, and be ended by us.
  bool Try(IsolationLevel level) const;
  // Why children cannot be forked into groups and be ended with them; empty
  // where they can.
  std::string TryGroup() const;
  void AddShortfall(const std::string& what);

  Isolation isolation_;
  std::string groups_;
  std::string shortfall_;
  SyscallFilter loading_, running_;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_SANDBOX_H_
