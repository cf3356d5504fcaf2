// The options of rpc-worker, and checks of them without starting it.
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
  std::string name;  // empty: the name of the host
  std::vector<std::string> labels;
  std::string state_dir;  // empty: DefaultStateDirectory
  std::string cores;
  std::string lock_dir = "/tmp/tilefarm-cpus";
  std::string runner_command;
  std::string cgroup = "auto";
  std::string target = "host";
  std::string device = "cpu";
  int builders = 0;  // 0: one for each core, at most four
  std::string timeline;
  bool emulated = false;
  bool no_artifacts = false;
  std::vector<std::string> timeouts;

  std::string NameOrHost() const;
  std::string StateDirectory() const;
};

// All except --version and the common options of daemons.
void AddFlags(CLI::App& app, Flags& flags);

// The parts of "KEY=VALUE". InvalidArgument.
absl::StatusOr<std::pair<std::string, std::string>> ParseLabel(
    const std::string& label);

// The path of a program in the folder of this one. NotFound: the installation
// is damaged, so the worker must not start and fail every candidate.
absl::StatusOr<std::string> HelperProgram(const std::string& name);

// What --device names.
struct DeviceChoice {
  bool is_gpu = false;    // "cuda:0" or "opencl:0": the runner knows its target
  std::string simulated;  // the target: "sim:sm_90a"; empty: not simulated
};
// InvalidArgument: neither cpu, cuda:N, opencl:N nor sim:MODEL.
absl::StatusOr<DeviceChoice> ParseDevice(const std::string& device);

// Every problem found, as a sentence; empty: a worker would start. Contacts
// neither the server nor the device, and changes nothing.
std::vector<std::string> CheckFlags(const Flags& flags);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_FLAGS_H_
