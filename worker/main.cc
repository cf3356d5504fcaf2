// rpc-worker: offers this device to a tune-server.
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/daemon/daemon_flags.h"
#include "base/daemon/service_manager.h"
#include "base/isolation.h"
#include "base/log.h"
#include "base/settings.h"
#include "base/status_macros.h"
#include "compiler/driver/compile.h"
#include "compiler/target/host.h"
#include "compiler/target/target.h"
#include "proto/tilefarm/v1/protocol_version.h"
#include "transport/grpc_log.h"
#include "worker/candidate_groups.h"
#include "worker/control_group.h"
#include "worker/cpus.h"
#include "worker/device.h"
#include "worker/flags.h"
#include "worker/libraries.h"
#include "worker/runner_query.h"
#include "worker/worker.h"

namespace tilefarm::worker {
namespace {

constexpr char kProgram[] = "rpc-worker";

void FillDevice(const target::Target& target, bool is_host,
                v1::DeviceProperties* device) {
  device->set_target(target.Key());
  device->set_triple(target.triple);
  device->set_cpu(target.cpu);
  for (const std::string& feature : target.features) {
    device->add_features(feature);
  }
  // A runner on another device does not know LLVM's name of its processor, so
  // --target replaces the brand.
  device->set_brand(is_host ? target::HostBrand() : target.cpu);
  device->set_cores(static_cast<uint32_t>(target.cores));
  device->set_l1_bytes(static_cast<uint64_t>(target.caches.l1_bytes));
  device->set_l2_bytes(static_cast<uint64_t>(target.caches.l2_bytes));
  device->set_l3_bytes(static_cast<uint64_t>(target.caches.l3_bytes));
  if (is_host) device->set_memory_bytes(MemoryBytes());
}

// What --device says instead of --target. Locks a GPU of this machine.
absl::StatusOr<target::Target> FillGpu(
    const Flags& flags, const std::vector<std::string>& runner_command,
    v1::DeviceProperties* device, CpuLock* lock) {
  TF_ASSIGN_OR_RETURN(const DeviceChoice choice, ParseDevice(flags.device));
  if (flags.target != "host") {
    return absl::InvalidArgumentError(
        absl::StrCat("--device ", flags.device, " and --target ", flags.target,
                     " exclude each other"));
  }
  GpuDevice gpu;
  target::CacheSizes caches;
  if (choice.is_gpu) {
    const absl::StatusOr<GpuDevice> found = RunnersGpu(runner_command);
    if (!found.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--device ", flags.device, ": ",
                       std::string(found.status().message())));
    }
    gpu = *found;
    if (flags.runner_command.empty()) {
      absl::StatusOr<CpuLock> locked =
          CpuLock::AcquireGpu(flags.lock_dir, gpu.bus_id);
      if (!locked.ok()) {
        return absl::FailedPreconditionError(
            absl::StrCat("--device ", flags.device, ": ",
                         std::string(locked.status().message())));
      }
      *lock = *std::move(locked);
    }
    // There is no third cache: what looks at the last one finds the second.
    caches = {gpu.multiprocessor_shared_bytes, gpu.l2_bytes, gpu.l2_bytes};
  } else {
    // Its code runs on this processor, with this processor's caches.
    TF_ASSIGN_OR_RETURN(const target::Target host, target::Parse("host"));
    gpu.target = choice.simulated;
    gpu.brand = absl::StrCat("simulated by ", target::HostBrand());
    caches = host.caches;
    gpu.memory_bytes = MemoryBytes();
  }
  absl::StatusOr<target::Target> target = target::ParseKey(gpu.target);
  if (!target.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--device ", flags.device, ": ",
                     std::string(target.status().message())));
  }
  target->caches = caches;
  FillDevice(*target, /*is_host=*/false, device);
  device->set_brand(gpu.brand);
  device->set_memory_bytes(gpu.memory_bytes);
  return target;
}

// Checks whether the runner uses `groups`, which are from --cgroup.
// FailedPrecondition: a group was named, and the runner does not use it.
absl::Status CheckGroups(const Flags& flags, const CandidateGroups& groups,
                         const std::string& isolation) {
  const bool named = flags.cgroup != "auto" && flags.cgroup != "off";
  std::string shortfall = groups.shortfall();
  Isolation parsed;
  if (!groups.directory().empty() &&
      !(ParseIsolation(isolation, &parsed) && parsed.cgroup)) {
    shortfall = absl::StrCat(
        "candidates have no control groups: the runner does not use ",
        groups.directory(), " (it confines by ", isolation, ")");
    if (named) return absl::FailedPreconditionError(shortfall);
  }
  if (!shortfall.empty()) {
    Log(named ? LogLevel::kWarning : LogLevel::kInfo, "worker", shortfall);
  }
  return absl::OkStatus();
}

absl::StatusOr<Worker::Options> MakeOptions(const Flags& flags,
                                            const CandidateGroups& groups,
                                            CpuLock* gpu_lock) {
  Worker::Options options;
  options.server = flags.server;
  options.security = flags.security;
  if (flags.server.find(':') == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("--server ", flags.server, " is not HOST:PORT"));
  }
  const std::string name = flags.NameOrHost();
  options.hello.set_name(name);
  options.hello.set_fingerprint(driver::Fingerprint());
  for (const std::string& label : flags.labels) {
    TF_ASSIGN_OR_RETURN(const auto pair, ParseLabel(label));
    (*options.hello.mutable_labels())[pair.first] = pair.second;
  }
  options.state_directory = flags.StateDirectory();

  if (!flags.cores.empty()) {
    TF_ASSIGN_OR_RETURN(const CpuList cpus, ParseCpuList(flags.cores));
    TF_RETURN_IF_ERROR(RunOnCpus(cpus));
  }
  Settings timeouts = TimeoutSettings(options.timeouts);
  for (const std::string& pair : flags.timeouts) {
    TF_RETURN_IF_ERROR(timeouts.SetPair(pair));
  }
  Pipeline::Options& pipeline = options.pipeline;
  pipeline.cpus = AllowedCpus();
  if (flags.runner_command.empty()) {
    TF_ASSIGN_OR_RETURN(const std::string runner, HelperProgram("tune-runner"));
    pipeline.runner_command = {runner};
  } else {
    pipeline.runner_command =
        absl::StrSplit(flags.runner_command, ' ', absl::SkipEmpty());
  }
  TF_ASSIGN_OR_RETURN(const DeviceChoice choice, ParseDevice(flags.device));
  if (choice.is_gpu) {
    pipeline.runner_command.insert(pipeline.runner_command.end(),
                                   {"--device", flags.device});
  }
  target::Target device;
  if (flags.device != "cpu") {
    TF_ASSIGN_OR_RETURN(device,
                        FillGpu(flags, pipeline.runner_command,
                                options.hello.mutable_device(), gpu_lock));
  } else {
    // Reads the number of cores from the affinity set above.
    const bool is_host = flags.target == "host";
    TF_ASSIGN_OR_RETURN(device, target::Parse(flags.target));
    if (!is_host && flags.runner_command.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--target ", flags.target,
          " needs --runner-command: how to start that device's tune-runner"));
    }
    FillDevice(device, is_host, options.hello.mutable_device());
  }
  options.hello.mutable_device()->set_emulated(flags.emulated);
  // What runs on a GPU cannot be compared yet.
  options.hello.mutable_device()->set_takes_artifacts(!flags.no_artifacts &&
                                                      !choice.is_gpu);
  pipeline.last_cache_bytes =
      static_cast<uint64_t>(std::max<int64_t>(device.caches.l3_bytes, 0));

  // More than a few builders only wait for measurements.
  pipeline.builders =
      flags.builders > 0
          ? flags.builders
          : std::clamp(static_cast<int>(pipeline.cpus.size()), 1, 4);
  if (!flags.timeline.empty()) {
    std::shared_ptr<std::FILE> file(std::fopen(flags.timeline.c_str(), "ae"),
                                    [](std::FILE* f) {
                                      if (f != nullptr) std::fclose(f);
                                    });
    if (file == nullptr) return absl::ErrnoToStatus(errno, flags.timeline);
    pipeline.on_timeline = [file](const std::string& line) {
      // Each line is a single write, so that threads do not mix lines.
      std::fprintf(file.get(), "%s\n", line.c_str());
      std::fflush(file.get());
    };
  }
  pipeline.lock_directory = flags.lock_dir;
  TF_ASSIGN_OR_RETURN(const std::string builder, HelperProgram("tune-builder"));
  pipeline.builder_command = {builder, "--parent", absl::StrCat(getpid())};
  if (flags.device == "cpu") {
    const auto libraries = RunnersLibraries(pipeline.runner_command);
    options.hello.mutable_device()->mutable_libraries()->insert(
        libraries.begin(), libraries.end());
  }
  const std::string isolation = RunnersIsolation(pipeline.runner_command);
  TF_RETURN_IF_ERROR(CheckGroups(flags, groups, isolation));
  options.hello.mutable_device()->set_isolation(isolation);
  pipeline.moves_this_process = true;
  // Uses only the cores that single-core measurements leave, from the start.
  RunOnCpus(OtherCpus(pipeline.cpus)).IgnoreError();
  Log(LogLevel::kInfo, "worker",
      absl::StrCat(name, " is ", options.hello.device().target(),
                   ", candidates are confined by ",
                   options.hello.device().isolation(), ", state in ",
                   options.state_directory));
  return options;
}

// `groups` must outlive the worker, because it removes what the last runner
// left; so must the lock of its GPU.
absl::StatusOr<std::unique_ptr<Worker>> StartWorker(
    const Flags& flags, std::optional<CandidateGroups>& groups,
    CpuLock& gpu_lock) {
  TF_ASSIGN_OR_RETURN(groups, CandidateGroups::Prepare(flags.cgroup));
  // Replaces a value that was set by the parent of this process.
  if (groups->directory().empty()) {
    unsetenv(kCandidateGroupsVariable);
  } else {
    setenv(kCandidateGroupsVariable, groups->directory().c_str(), 1);
  }
  TF_ASSIGN_OR_RETURN(Worker::Options options,
                      MakeOptions(flags, *groups, &gpu_lock));
  return Worker::Start(std::move(options));
}

int Run(const Flags& flags) {
  // Before any thread is started, so that all threads block these signals and
  // the wait below gets them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  const auto manager = daemon::ServiceManager::FromEnvironment();
  transport::RouteGrpcLog(LogLevel::kDebug);

  std::optional<CandidateGroups> groups;
  CpuLock gpu_lock;
  absl::StatusOr<std::unique_ptr<Worker>> worker =
      StartWorker(flags, groups, gpu_lock);
  if (!worker.ok()) {
    daemon::Complain(kProgram, std::string(worker.status().message()));
    return absl::IsInvalidArgument(worker.status()) ? 2 : 1;
  }
  // Every part of the worker uses its lock.
  manager->Ready([&](absl::Duration /*limit*/) {
    (*worker)->connected();
    return std::string();
  });
  int signal = 0;
  sigwait(&signals, &signal);
  Log(LogLevel::kInfo, "worker", "ending");
  manager->Stopping();
  // A second signal ends the worker at once, and the helper processes with it.
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  (*worker)->Shutdown();
  return 0;
}

}  // namespace
}  // namespace tilefarm::worker

int main(int argc, char** argv) {
  using tilefarm::worker::kProgram;
  tilefarm::worker::Flags flags;
  tilefarm::daemon::DaemonFlags daemon_flags;
  CLI::App app("Offers this device to a tune-server", kProgram);
  tilefarm::daemon::AddDaemonFlags(app, "RPC_WORKER_CONFIG", daemon_flags);
  tilefarm::worker::AddFlags(app, flags);
  app.set_version_flag(
      "--version",
      absl::StrCat("rpc-worker ", TILEFARM_VERSION, ", protocol ",
                   tilefarm::v1::kProtocolVersion, ", fingerprint ",
                   tilefarm::driver::Fingerprint()));
  const auto parsed =
      tilefarm::daemon::ParseDaemon(app, argc, argv, daemon_flags);
  if (parsed.has_value()) return *parsed;
  if (daemon_flags.check_config) {
    return tilefarm::daemon::ReportCheck(kProgram,
                                         tilefarm::worker::CheckFlags(flags));
  }
  return tilefarm::worker::Run(flags);
}
