// Which system calls candidates and builders may make: allow-lists for seccomp.
//
//   loading   in force while the artifact is loaded, so for its constructors,
//             and for good where it calls a library of kernels: memory,
//             threads, time; opening files to read; machine code. No files
//             made or changed, no processes, no sockets, no signals to others.
//   running   put on top before the first call: no files and no machine code
//             either.
//   building  what compiling and linking take: memory, threads, time; regular
//             files, which ones the sandbox says (builder/sandbox.h). No
//             machine code, no processes, no sockets, no signals to others.
//
// What a builder is refused fails with EPERM. What a candidate is refused ends
// the process by SIGSYS, after a handler, which the filters do not let anyone
// replace, has noted the number of the call. A few calls that libraries try in
// passing fail instead, as on a system that lacks them: so does clone3, whose
// flags a filter cannot see, and glibc falls back to clone, which may make
// threads alone.
//
// A sanitizer's run-time library makes calls of its own at any moment: built
// with one, or without libseccomp (TILEFARM_SECCOMP 0), there are no filters.
#ifndef TILEFARM_WORKER_SYSCALL_FILTER_H_
#define TILEFARM_WORKER_SYSCALL_FILTER_H_

#include <linux/filter.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/sanitizers.h"

#if TILEFARM_SANITIZED
#undef TILEFARM_SECCOMP
#endif
#ifndef TILEFARM_SECCOMP
#define TILEFARM_SECCOMP 0
#endif

namespace tilefarm::worker {

// Made once a process, and used by every child of a runner.
class SyscallFilter {
 public:
  enum class Kind { kLoading, kRunning, kBuilding };

  // Empty on success, an error otherwise.
  std::string Build(Kind kind);

  // In the process to be filtered: for all its threads, for good. It must have
  // no_new_privs, or the capability to do without. False where the system has
  // no seccomp filters, or a thread has put on one of its own.
  bool Install() const;

 private:
  std::vector<sock_filter> program_;
};

// In the child, before Install: has the number of a refused call, plus 1,
// written to `*where`.
void NoteRefusedCalls(volatile int32_t* where);

// "socket"; empty for a number that is no system call.
std::string SyscallName(int number);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_SYSCALL_FILTER_H_
