// What keeps tune-builder from everything but the frames it speaks in.
//
// It parses programs, replays traces and runs LLVM on texts that any user may
// send: a flaw in one of them must not reach the worker's keys or the network.
#ifndef TILEFARM_WORKER_BUILDER_SANDBOX_H_
#define TILEFARM_WORKER_BUILDER_SANDBOX_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tilefarm::worker {

struct BuilderConfinement {
  // "seccomp+netns+mntns+landlock": what holds besides what always does, which
  // is nobody instead of root, no capabilities, no other descriptors.
  std::string parts;
  // Why not all of them, for people; empty where all hold.
  std::string shortfall;
  // Without mntns: the directory of its files, to be removed after its end.
  std::string directory;
};

// To be called by the single thread of the process, once, before anything of
// the compiler runs. Afterwards:
//
//   - of all descriptors those of `kept` from 3 on alone are open, and 0 to 2
//     are /dev/null;
//   - root is nobody, without capabilities or a way to new ones;
//   - there is no network (netns) and no call for one (seccomp);
//   - the only files are in an empty file system in memory (mntns), or, where
//     there cannot be one, in a new directory below /tmp that TMPDIR names;
//     outside it Landlock forbids all files;
//   - system calls beyond those of compiling fail with EPERM (seccomp).
//
// The process ends with its parent, which must be `parent` unless that is 0.
// An error where what has no name above cannot be had.
absl::StatusOr<BuilderConfinement> EnterBuilderSandbox(
    const std::vector<int>& kept, pid_t parent);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_BUILDER_SANDBOX_H_
