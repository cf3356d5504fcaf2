// tune-runner: loads, checks and times candidates for rpc-worker, over frames
// on standard input and output. It ends at the end of input.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <memory>
#include <string>

#include "base/isolation.h"
#include "worker/control_group.h"
#include "worker/runner/child.h"
#include "worker/runner/device_child.h"
#include "worker/runner/device_driver.h"
#include "worker/runner/libraries.h"
#include "worker/runner/runner.h"
#include "worker/runner/sandbox.h"

namespace tilefarm::worker {
namespace {

constexpr char kUsage[] =
    "usage: tune-runner [--at-most ISOLATION] [--cgroup DIR] [--device "
    "DEVICE]\n"
    "                   [--version | --libraries | --isolation | "
    "--properties]\n"
    "Speaks binary frames on standard input and output; rpc-worker starts it.\n"
    "  --isolation  prints how candidates are confined here, such as "
    "seccomp+netns\n"
    "  --at-most    confines them no more than so: "
    "none|rlimits|seccomp-libraries|seccomp,\n"
    "               and any of +netns+cgroup+memory+pids, in this order "
    "(default: all)\n"
    "  --cgroup     an empty control group (v2) of this runner's own, for "
    "those of\n"
    "               candidates (default: TUNE_RUNNER_CGROUP; none without)\n"
    "  --device     where candidates run: cpu (default); cuda:N, the N-th GPU "
    "of CUDA's\n"
    "               driver; or opencl:N, the N-th device of all OpenCL "
    "platforms\n"
    "  --properties prints what that device is, a line for each property, or a "
    "line with \"error\"\n";

// Lines of a name, a space and a value. Calls the driver, so this process
// cannot measure afterwards.
int PrintProperties(const DeviceName& device) {
  const std::unique_ptr<DeviceDriver> driver = MakeDeviceDriver(device.kind);
  const std::string error = driver->Query(device.number);
  if (!error.empty()) {
    printf("error %s\n", error.c_str());
    return 1;
  }
  const DeviceProperties& properties = driver->properties();
  printf("target %s\n", properties.target.c_str());
  printf("brand %s\n", properties.brand.c_str());
  printf("bus_id %s\n", properties.bus_id.c_str());
  const auto print_number = [](const char* name, uint64_t number) {
    printf("%s %llu\n", name, static_cast<unsigned long long>(number));
  };
  print_number("multiprocessors", properties.multiprocessors);
  print_number("multiprocessor_shared_bytes",
               properties.multiprocessor_shared_bytes);
  print_number("l2_bytes", properties.l2_bytes);
  print_number("memory_bytes", properties.memory_bytes);
  return 0;
}

int Main(int argc, char** argv) {
  Isolation most = {IsolationLevel::kSeccomp, true, true, true, true};
  const char* groups = getenv(kCandidateGroupsVariable);
  if (groups == nullptr) groups = "";
  DeviceName device;
  bool uses_device = false;  // otherwise the processor
  int at = 1;
  for (; at + 1 < argc; at += 2) {
    const char* value = argv[at + 1];
    if (strcmp(argv[at], "--at-most") == 0) {
      if (ParseIsolation(value, &most)) continue;
      fprintf(stderr, "tune-runner: --at-most %s is no isolation\n%s", value,
              kUsage);
      return 2;
    }
    if (strcmp(argv[at], "--device") == 0) {
      uses_device = ParseDeviceName(value, &device);
      if (uses_device || strcmp(value, "cpu") == 0) continue;
      fprintf(stderr, "tune-runner: --device %s is no device\n%s", value,
              kUsage);
      return 2;
    }
    if (strcmp(argv[at], "--cgroup") != 0) break;
    groups = value;
  }
  // The sandbox changes the current directory.
  if (groups[0] != '\0' && groups[0] != '/') {
    fprintf(stderr, "tune-runner: --cgroup %s is no absolute path\n", groups);
    return 2;
  }
  if (argc > at + 1) return fputs(kUsage, stderr), 2;
  const char* query = argc == at + 1 ? argv[at] : "";
  if (strcmp(query, "--version") == 0) {
    printf("tune-runner %s, frames %d\n", TILEFARM_VERSION, kFrameVersion);
    return 0;
  }
  if (strcmp(query, "--libraries") == 0) {
    for (const auto& [name, version] : FindLibraries()) {
      printf("%s %s\n", name.c_str(), version.c_str());
    }
    return 0;
  }
  if (strcmp(query, "--properties") == 0) {
    if (uses_device) return PrintProperties(device);
    fprintf(stderr, "tune-runner: --properties needs --device %s\n",
            DeviceNames().c_str());
    return 2;
  }
  if (query[0] != '\0' && strcmp(query, "--isolation") != 0) {
    return fputs(kUsage, stderr), 2;
  }
  PrepareForChildren();
  Sandbox sandbox(most, groups, uses_device);
  DeviceChild child(sandbox, device);
  if (uses_device) {
    const std::string error = child.Try();
    // Candidates fail, and the next one tries again: the server's canaries find
    // out that the device is lost, and when it is back.
    if (!error.empty()) {
      fprintf(stderr, "tune-runner: %s cannot be used: %s\n",
              device.Text().c_str(), error.c_str());
    }
  }
  if (query[0] != '\0') {
    printf("%s\n", sandbox.isolation().Text().c_str());
    return 0;
  }
  if (!sandbox.shortfall().empty()) {
    fprintf(stderr, "tune-runner: candidates are confined by %s: %s\n",
            sandbox.isolation().Text().c_str(), sandbox.shortfall().c_str());
  }
  Runner::Options options;
  if (uses_device) options.device = &child;
  return Runner(options, sandbox).Serve();
}

}  // namespace
}  // namespace tilefarm::worker

int main(int argc, char** argv) { return tilefarm::worker::Main(argc, argv); }
