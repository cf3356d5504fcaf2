#include "worker/flags.h"

#include <errno.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/settings.h"
#include "compiler/target/target.h"
#include "transport/client_flags.h"
#include "worker/candidate_groups.h"
#include "worker/cpus.h"
#include "worker/worker.h"

namespace tilefarm::worker {
namespace {

namespace fs = std::filesystem;

std::string CheckTimeout(const std::string& pair) {
  WorkerTimeouts scratch;
  Settings settings = TimeoutSettings(scratch);
  return std::string(settings.SetPair(pair).message());
}

// Checks that a folder exists or can be made, and is writable.
absl::Status CheckFolder(const char* flag, const std::string& path) {
  fs::path existing = path;
  std::error_code error;
  while (!existing.empty() && !fs::exists(existing, error)) {
    existing = existing.parent_path();
  }
  if (existing.empty()) existing = ".";
  if (fs::is_directory(existing, error) &&
      access(existing.c_str(), W_OK | X_OK) == 0) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      absl::StrCat(flag, " ", path, ": ", existing.string(),
                   fs::is_directory(existing, error)
                       ? absl::StrCat(": ", std::strerror(errno))
                       : " is no folder"));
}

// Finds the command's first word as a shell does.
absl::Status CheckCommand(const std::string& command) {
  const std::vector<std::string> words =
      absl::StrSplit(command, ' ', absl::SkipEmpty());
  if (words.empty()) {
    return absl::InvalidArgumentError("--runner-command is empty");
  }
  if (words[0].find('/') != std::string::npos) {
    if (access(words[0].c_str(), X_OK) == 0) return absl::OkStatus();
  } else if (const char* path = std::getenv("PATH")) {
    for (const absl::string_view folder : absl::StrSplit(path, ':')) {
      if (access(absl::StrCat(folder, "/", words[0]).c_str(), X_OK) == 0) {
        return absl::OkStatus();
      }
    }
  }
  return absl::NotFoundError(
      absl::StrCat("--runner-command: there is no program ", words[0]));
}

// $XDG_STATE_HOME/tilefarm/worker-NAME, as other programs' state is kept.
std::string DefaultStateDirectory(const std::string& name) {
  std::string base;
  if (const char* xdg = std::getenv("XDG_STATE_HOME"); xdg && *xdg) {
    base = xdg;
  } else if (const char* home = std::getenv("HOME"); home && *home) {
    base = absl::StrCat(home, "/.local/state");
  } else {
    base = "/var/lib";
  }
  return absl::StrCat(base, "/tilefarm/worker-", name);
}

}  // namespace

std::string Flags::NameOrHost() const {
  if (!name.empty()) return name;
  char host[256] = {};
  return gethostname(host, sizeof host - 1) == 0 ? host : "worker";
}

std::string Flags::StateDirectory() const {
  return state_dir.empty() ? DefaultStateDirectory(NameOrHost()) : state_dir;
}

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("--server", flags.server, "HOST:PORT of the tune-server")
      ->envname("TUNE_SERVER")
      ->capture_default_str();
  transport::AddClientFlags(app, flags.security);
  app.add_option("--name", flags.name,
                 "Name of this device (default: the host name)");
  app.add_option("--label", flags.labels, "KEY=VALUE, any number of times")
      ->check([](const std::string& label) {
        return std::string(ParseLabel(label).status().message());
      });
  app.add_option("--state-dir", flags.state_dir,
                 "Where unacknowledged results wait");
  app.add_option("--builders", flags.builders,
                 "Processes that compile candidates (default: one a core, four "
                 "at most)")
      ->check(CLI::Range(1, 256));
  app.add_option("--cores", flags.cores,
                 "Cores to use, such as 0-3,8 (default: all that it may)");
  app.add_option("--lock-dir", flags.lock_dir,
                 "Where workers of this machine lock the cores they measure on")
      ->capture_default_str();
  app.add_option("--runner-command", flags.runner_command,
                 "Command that starts a tune-runner, such as \"ssh board "
                 "tune-runner\"");
  app.add_option("--cgroup", flags.cgroup,
                 "Where candidates get control groups (v2) of their own: auto "
                 "(in the worker's own group, where that was delegated to it), "
                 "off, or the path of an empty group")
      ->capture_default_str();
  app.add_option("--target", flags.target,
                 "What the runner's device is, such as aarch64:cortex-a72, "
                 "where it is not this machine")
      ->capture_default_str();
  app.add_option(
         "--device", flags.device,
         "What this worker measures on: cpu; cuda:N, the N-th GPU, as "
         "its driver describes it (one worker for each GPU, each with "
         "its own --name and --cores); opencl:N, the N-th device of all "
         "OpenCL platforms, likewise; or sim:MODEL, such as sim:sm_90a, "
         "GPU code that runs on this processor, for tests")
      ->capture_default_str();
  app.add_option("--timeline", flags.timeline,
                 "Append a line of JSON a candidate to this file: when it was "
                 "built and run");
  app.add_option("--timeout", flags.timeouts,
                 "KEY=DURATION, any number of times; an unknown key lists "
                 "those there are")
      ->check(CheckTimeout);
  app.add_flag("--no-artifacts", flags.no_artifacts,
               "Take no machine code from the server's CI jobs");
  app.add_flag("--emulated", flags.emulated,
               "This device is emulated: its times mean little");
}

absl::StatusOr<std::pair<std::string, std::string>> ParseLabel(
    const std::string& label) {
  std::pair<std::string, std::string> pair =
      absl::StrSplit(label, absl::MaxSplits('=', 1));
  if (pair.first.empty() || label.find('=') == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("--label ", label, " is not KEY=VALUE"));
  }
  return pair;
}

absl::StatusOr<std::string> HelperProgram(const std::string& name) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const std::string path = (self.parent_path() / name).string();
  if (error || access(path.c_str(), X_OK) != 0) {
    return absl::NotFoundError(
        absl::StrCat("no program ", path, "; it must be beside rpc-worker"));
  }
  return path;
}

absl::StatusOr<DeviceChoice> ParseDevice(const std::string& device) {
  DeviceChoice choice;
  if (device == "cpu") return choice;
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(device, absl::MaxSplits(':', 1));
  int number = 0;
  if ((parts.first == "cuda" || parts.first == "opencl") &&
      absl::SimpleAtoi(parts.second, &number) && number >= 0) {
    choice.is_gpu = true;
    return choice;
  }
  if (parts.first == "sim") {
    const auto target = target::ParseKey(device);
    if (!target.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--device ", device, ": ", std::string(target.status().message())));
    }
    choice.simulated = device;
    return choice;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--device ", device, " is not cpu, cuda:N, opencl:N or sim:MODEL"));
}

std::vector<std::string> CheckFlags(const Flags& flags) {
  std::vector<std::string> problems;
  const auto note = [&](const char* what, const absl::Status& status) {
    if (status.ok()) return;
    problems.push_back(absl::StrCat(what, std::string(status.message())));
  };
  const absl::Status address = transport::SplitAddress(flags.server).status();
  note("--server: ", address);
  if (address.ok()) {
    note("", transport::CheckEndpoint(
                 {.address = flags.server, .security = flags.security}));
  }
  if (!flags.cores.empty()) {
    note("--cores: ", ParseCpuList(flags.cores).status());
  }
  note("--target: ", target::Parse(flags.target).status());
  note("", ParseDevice(flags.device).status());
  if (flags.device != "cpu" && flags.target != "host") {
    problems.push_back("--device and --target exclude each other");
  }
  if (flags.target != "host" && flags.runner_command.empty()) {
    problems.push_back(
        absl::StrCat("--target ", flags.target, " needs --runner-command"));
  }
  if (!flags.runner_command.empty()) {
    note("", CheckCommand(flags.runner_command));
  } else {
    note("", HelperProgram("tune-runner").status());
  }
  note("", HelperProgram("tune-builder").status());
  note("", CandidateGroups::Check(flags.cgroup));
  note("", CheckFolder("--state-dir", flags.StateDirectory()));
  note("", CheckFolder("--lock-dir", flags.lock_dir));
  return problems;
}

}  // namespace tilefarm::worker
