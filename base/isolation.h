// The isolation of measured candidates. Devices announce it, records keep it,
// and jobs can demand it, in this notation:
//
//   LEVEL[+netns][+cgroup[+memory][+pids]]
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
//   +netns             in a network namespace without outside connections
//   +cgroup            in a control group of its own, whose processes are ended
//                      together, whoever their parents are
//   +memory            whose memory is limited as a whole, without swap
//   +pids              and the number of its processes and threads
//
// A device announces the strongest isolation that its runner offers. A record
// says which isolation its candidate had; for a candidate that calls a library
// that is seccomp-libraries instead of seccomp.
//
// Uses the C++ standard library only, because tune-runner compiles it.
#ifndef TILEFARM_BASE_ISOLATION_H_
#define TILEFARM_BASE_ISOLATION_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace tilefarm {

// From the weakest; each level includes the one before it.
enum class IsolationLevel : uint8_t {
  kNone,
  kRlimits,
  kSeccompLibraries,
  kSeccomp,
};

struct Isolation {
  IsolationLevel level = IsolationLevel::kNone;
  bool netns = false;
  bool cgroup = false;
  // Only with cgroup.
  bool memory = false;
  bool pids = false;

  // "seccomp+netns+cgroup"
  std::string Text() const;
  // Whether this is at least `demanded`: its level or a higher one, and every
  // part of it.
  bool Covers(const Isolation& demanded) const;
  bool operator==(const Isolation&) const = default;
};

// Parses what Text returned. False for any other text.
bool ParseIsolation(std::string_view text, Isolation* isolation);

}  // namespace tilefarm

#endif  // TILEFARM_BASE_ISOLATION_H_
