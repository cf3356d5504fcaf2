// The system calls that candidates and builders may make: allow-lists for
// seccomp.
//
//   loading   In force while the artifact is loaded and its constructors run;
//             permanently if it calls a library of kernels. Permits memory,
//             threads, time, opening files to read, and machine code. Does not
//             permit making or changing files, processes, sockets, and signals
//             to others.
//   running   Added before the first call: no files and no machine code either.
//   building  For compiling and linking. Permits memory, threads, time, and
//             regular files, which the sandbox restricts (builder/sandbox.h).
//             Does not permit machine code, processes, sockets, and signals to
//             others.
//   device    For the child that uses a device, while artifacts run. Permits
//             what "loading" does, and calls of the device's driver: ioctl,
//             opening existing files to write, waiting for descriptors,
//             messages on sockets that are open. Does not permit making files,
//             processes, sockets, and signals to others.
//   linker    For the same child if its driver compiles by way of files and
//             runs a linker. Permits what "device" does, regular files,
//             which the sandbox restricts (runner/sandbox.h), running programs
//             and waiting for them. Programs have this filter as well.
//
// A refused call of a builder or of the device's child fails with EPERM. A
// refused call of a candidate ends the process by SIGSYS, after a handler has
// noted the number of the call; the filters do not permit replacing the
// handler. A few calls that libraries try without need fail instead, as on a
// system that lacks them. One of these is clone3, whose flags a filter cannot
// see: glibc then uses clone, which may make only threads.
//
// The run-time library of a sanitizer makes calls of its own at any time. Built
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

// Made once per process, and used by every child of a runner.
class SyscallFilter {
 public:
  enum class Kind { kLoading, kRunning, kBuilding, kDevice, kLinker };

  // The error; empty: none.
  std::string Build(Kind kind);

  // To be called in the process to be filtered. Applies permanently to all its
  // threads. The process must have no_new_privs, or the capability to do
  // without it. False: the system has no seccomp filters, or a thread has
  // installed one of its own.
  bool Install() const;

 private:
  std::vector<sock_filter> program_;
};

// To be called in the child before Install. The number of a refused call, plus
// 1, is written to `*where`.
void NoteRefusedCalls(volatile int32_t* where);

// The name, such as "socket"; empty: the number is not a system call.
std::string SyscallName(int number);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_SYSCALL_FILTER_H_
