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
#include <vector>

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

// How the child that uses a device is confined, from the weakest. It serves
// several candidates, and the driver in it opens device files, reads /proc and
// /sys, maps much address space and makes threads. So it is never kSeccomp:
// files can be read, machine code can be made, and no limit of address space or
// CPU time applies. Files can be written only where user nobody may, and with
// the filters and Landlock only those of the device.
enum class DeviceConfinement : uint8_t {
  kNone,
  kRlimits,
  // And a filter for drivers that compile kernels by way of files and of a
  // linker: PoCL's. They may make files in a folder of their own, and run
  // programs, which have this filter as well. Announced as kRlimits, since
  // higher levels have no processes.
  kLinker,
  kSeccompLibraries,
};

class Sandbox {
 public:
  // To be called once by the single thread of the process. Also confines this
  // process where that costs the children nothing: it enters a network
  // namespace and an empty directory without a name. Then finds out by trial
  // what else works here. Nothing beyond `most` is tried. Control groups are
  // made in `groups`, an absolute path that no other program may use: processes
  // that another runner left there are ended. Empty: no control groups.
  // `for_device`: candidates use a device, so isolation() is DeviceIsolation();
  // oracles are confined as without one.
  explicit Sandbox(const Isolation& most, const std::string& groups = "",
                   bool for_device = false);

  // The strongest isolation that candidates can have.
  Isolation isolation() const {
    return for_device_ ? DeviceIsolation() : isolation_;
  }
  // The isolation of a child with an artifact, which depends on CallsALibrary.
  Isolation IsolationOf(bool calls_a_library) const;
  // Why not all of `most` works; empty: it does.
  const std::string& shortfall() const { return shortfall_; }

  // The group that the next child must be forked into; null: isolation() has
  // none, or, with a reason in `*error`, it cannot be made.
  std::unique_ptr<ControlGroup> MakeGroup(const ChildLimits& limits,
                                          std::string* error) const;

  // To be called in a forked child of `parent`, before an artifact is loaded.
  // Closes all files except `kept_fds`. The number of a system call that is
  // refused afterwards, plus 1, is written to `*refused`. False: the child is
  // less confined than it should be.
  bool Enter(const ChildLimits& limits, pid_t parent,
             const std::vector<int>& kept_fds, volatile int32_t* refused) const;
  // To be called in the child after the artifacts are loaded, before any of
  // their functions is called. Closes `kept_fds`. False as above.
  bool Close(IsolationLevel level, const std::vector<int>& kept_fds) const;

  // Of the child that uses a device (device_child.h).
  Isolation DeviceIsolation() const;
  DeviceConfinement device_confinement() const { return device_confinement_; }
  // Lowers it, for a trial or after it has shown that the driver does not work
  // with a stronger one. `why` is empty, or adds to shortfall().
  void Confine(DeviceConfinement confinement, const std::string& why);
  // A new path for a folder with files of the driver. The child makes it if it
  // cannot have one in memory; the caller removes it when the child has ended,
  // and it remains if the caller is killed. Empty: the driver may make no
  // files.
  std::string NewDeviceFolder() const;
  // As Enter, before the driver is loaded.
  bool EnterForDevice(pid_t parent, const std::vector<int>& kept_fds,
                      const std::string& folder) const;
  // To be called in that child when the driver has made its context and before
  // an artifact is loaded. Applies to the driver's threads as well.
  bool CloseForDevice() const;

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
  SyscallFilter loading_, running_, device_, linker_;
  bool for_device_ = false;
  DeviceConfinement device_confinement_ = DeviceConfinement::kNone;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_SANDBOX_H_
