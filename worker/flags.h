// The options of rpc-worker, and what can be said of them without starting.
#ifndef TILEFARM_WORKER_FLAGS_H_
#define TILEFARM_WORKER_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/endpoint.h"

namespace tilefarm::worker {

struct Flags {
  std::string server = "127.0.0.1:7070";
  transport::ClientSecurity security;
  std::string name;  // empty: the host's
  std::vector<std::string> labels;
  std::string state_dir;  // empty: DefaultStateDirectory
  std::string cores;
  std::string lock_dir = "/tmp/tilefarm-cpus";
  std::string runner_command;
  std::string cgroup = "auto";
  std::string target = "host";
  int builders = 0;  // 0: one a core, four at most
  std::string timeline;
  bool emulated = false;
  std::vector<std::string> timeouts;

  std::string NameOrHost() const;
  std::string StateDirectory() const;
};

// All but --version and the daemons' common ones.
void AddFlags(CLI::App& app, Flags& flags);

// "KEY=VALUE" in its parts. InvalidArgument.
absl::StatusOr<std::pair<std::string, std::string>> ParseLabel(
    const std::string& label);

// The path of a program that must be beside this one. NotFound where it is not:
// an installation to repair, not a reason to fail candidate after candidate.
absl::StatusOr<std::string> HelperProgram(const std::string& name);

// Every problem found, as a sentence; empty where a worker would start. Asks
// neither the server nor the device; changes nothing.
std::vector<std::string> CheckFlags(const Flags& flags);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_FLAGS_H_
