// Finds the directory for the control groups of candidates on this machine:
// rpc-worker's part of worker/control_group.h.
//
//   DIRECTORY/               the worker's own group, or one that it was given
//     worker/                rpc-worker and its helpers, moved from DIRECTORY
//     candidate-1/           made by tune-runner
//
// Only for cgroup v2, where a group that limits the groups in it may have no
// processes itself. Therefore the worker moves.
#ifndef TILEFARM_WORKER_CANDIDATE_GROUPS_H_
#define TILEFARM_WORKER_CANDIDATE_GROUPS_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tilefarm::worker {

// A directory that is locked against other workers during its lifetime. The
// destructor ends processes and removes groups that candidates left there; it
// must run after the runner has ended.
class CandidateGroups {
 public:
  // Questions to the system, which tests may answer.
  struct System {
    std::string own_groups = "/proc/self/cgroup";
    std::string mounts = "/proc/self/mountinfo";
    // Whether the group's manager has delegated it (systemd's Delegate=).
    std::function<bool(const std::string& directory)> is_delegated;
    // Whether it is a directory of a cgroup v2 hierarchy.
    std::function<bool(const std::string& directory)> is_group;
  };
  static System RealSystem();

  // `option`:
  //   auto   the group of this process, if systemd delegated it, or if it is
  //   the
  //          writable root of a container's hierarchy; otherwise none, and
  //          shortfall() says why
  //   off    none
  //   /PATH  that group, which is made if its parent exists. InvalidArgument:
  //          it is not in a cgroup v2 hierarchy; FailedPrecondition: it is the
  //          root of one, has other processes in it, or is another worker's;
  //          an error of the system: it is not writable.
  // To be called once, before the helpers are started, which inherit the group
  // that this process moves to. Controllers that the system does not offer for
  // the group are part of the shortfall, for every option.
  static absl::StatusOr<CandidateGroups> Prepare(
      const std::string& option, const System& system = RealSystem());
  // Checks the option without changing anything: InvalidArgument as above.
  static absl::Status Check(const std::string& option,
                            const System& system = RealSystem());

  CandidateGroups(CandidateGroups&& other) noexcept {
    *this = std::move(other);
  }
  CandidateGroups& operator=(CandidateGroups&& other) noexcept;
  ~CandidateGroups();

  // Empty: none.
  const std::string& directory() const { return directory_; }
  // Why there is none, or which limits its groups cannot have, and why. Empty:
  // nothing is missing, or "off".
  const std::string& shortfall() const { return shortfall_; }

 private:
  CandidateGroups() = default;
  // Takes the directory for this worker. Fails as Prepare does.
  absl::Status Take(const std::string& directory, const std::string& own);

  std::string directory_;
  std::string shortfall_;
  int lock_fd_ = -1;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_CANDIDATE_GROUPS_H_
