// Confines tune-builder to the frames that it reads and writes.
//
// It parses programs, replays traces and runs LLVM on texts that any user may
// send. A flaw in one of these must not give access to the worker's keys or the
// network.
#ifndef TILEFARM_WORKER_BUILDER_SANDBOX_H_
#define TILEFARM_WORKER_BUILDER_SANDBOX_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tilefarm::worker {

struct BuilderConfinement {
  // "seccomp+netns+mntns+landlock": the parts in force, in addition to those
  // that always are: nobody instead of root, no capabilities, no other
  // descriptors.
  std::string parts;
  // Why some parts are missing, for people; empty: none is.
  std::string shortfall;
  // Without mntns: the directory of its files, to be removed after it has
  // ended.
  std::string directory;
};

// To be called once by the single thread of the process, before any code of the
// compiler runs. Afterwards:
//
//   - only the descriptors in `kept` from 3 on are open, and 0 to 2 are
//     /dev/null;
//   - root has become nobody, without capabilities or a way to new ones;
//   - there is no network (netns) and no system call for one (seccomp);
//   - the only files are in an empty file system in memory (mntns); if the
//     system does not allow that, they are in a new directory below /tmp, which
//     TMPDIR names, and Landlock forbids all files outside it;
//   - system calls that compiling does not need fail with EPERM (seccomp).
//
// The process ends with its parent, which must be `parent` unless that is 0.
// Error: a part without a name in parentheses is not possible.
absl::StatusOr<BuilderConfinement> EnterBuilderSandbox(
    const std::vector<int>& kept, pid_t parent);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_BUILDER_SANDBOX_H_
