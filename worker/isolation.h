// How well a measured candidate is kept from everything else: the words that
// devices announce and records keep.
//
//   LEVEL[+netns]
//
//   none               the runner's child is not confined at all
//   rlimits            a session and process group of its own, resource limits,
//                      no new privileges, root's powers given up, no files or
//                      sockets inherited, ends with the runner
//   seccomp-libraries  and only the system calls that loading and calling a
//                      library of kernels takes, which include reading files
//                      and making machine code
//   seccomp            and, once the artifact is loaded, only the system calls
//                      that generated code takes: no files, no processes, no
//                      signals to others, no machine code
//   +netns             in a network namespace without a way out
//
// A device announces the most that its runner can do. A record says what its
// candidate had: one that calls a library has seccomp-libraries for seccomp.
//
// Knows the C++ standard library only.
#ifndef TILEFARM_WORKER_ISOLATION_H_
#define TILEFARM_WORKER_ISOLATION_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace tilefarm::worker {

// From the weakest; each does what the one before it does.
enum class IsolationLevel : uint8_t {
  kNone,
  kRlimits,
  kSeccompLibraries,
  kSeccomp,
};

struct Isolation {
  IsolationLevel level = IsolationLevel::kNone;
  bool netns = false;

  // "seccomp+netns"
  std::string Text() const;
  bool operator==(const Isolation&) const = default;
};

// What words mean that Text made. False for any others.
bool ParseIsolation(std::string_view text, Isolation* isolation);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_ISOLATION_H_
