// Where on this machine control groups for candidates may be made: rpc-worker's
// part of worker/control_group.h.
//
//   DIRECTORY/               the worker's own group, or one that it was given
//     worker/                rpc-worker and its helpers, where they were above
//     candidate-1/           made by tune-runner
//
// Only cgroup v2. Its rule is that a group which limits others in it has no
// processes itself, which is why the worker moves.
#ifndef TILEFARM_WORKER_CANDIDATE_GROUPS_H_
#define TILEFARM_WORKER_CANDIDATE_GROUPS_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tilefarm::worker {

// A directory that is locked against other workers for as long as this lives.
// The destructor ends and removes what candidates left in it; it is to run once
// the runner is gone.
class CandidateGroups {
 public:
  // What is asked of the system, so that tests may answer.
  struct System {
    std::string own_groups = "/proc/self/cgroup";
    std::string mounts = "/proc/self/mountinfo";
    // Whether the group's manager has given it away (systemd's Delegate=).
    std::function<bool(const std::string& directory)> is_delegated;
    // Whether it is a directory of a cgroup v2 hierarchy.
    std::function<bool(const std::string& directory)> is_group;
  };
  static System RealSystem();

  // `option`:
  //   auto   the group that this process is in, where systemd delegated it or
  //   it
  //          is the root of a container's hierarchy that can be written to;
  //          otherwise none, and shortfall() says why
  //   off    none
  //   /PATH  that group, made where its parent is there. InvalidArgument where
  //          it is in no cgroup v2 hierarchy; FailedPrecondition where it is
  //          the root of one, has other processes in it, or is another
  //          worker's; what the system says where it cannot be written to.
  // To be called once, before the helpers are started, which are to be in the
  // group that this process moves to. Controllers that the system does not have
  // for the group are part of the shortfall, whatever the option.
  static absl::StatusOr<CandidateGroups> Prepare(
      const std::string& option, const System& system = RealSystem());
  // What can be said of the option without changing anything: InvalidArgument,
  // as above.
  static absl::Status Check(const std::string& option,
                            const System& system = RealSystem());

  CandidateGroups(CandidateGroups&& other) noexcept {
    *this = std::move(other);
  }
  CandidateGroups& operator=(CandidateGroups&& other) noexcept;
  ~CandidateGroups();

  // Empty: none.
  const std::string& directory() const { return directory_; }
  // Why there is none, or which limits its groups cannot have, and why. Empty
  // where nothing is amiss, or "off".
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
