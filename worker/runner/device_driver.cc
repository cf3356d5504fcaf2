#include "worker/runner/device_driver.h"

#include <stdlib.h>

#include <iterator>

#include "worker/runner/child.h"
#include "worker/runner/cuda_device.h"
#include "worker/runner/opencl_device.h"

namespace tilefarm::worker {
namespace {

struct DeviceKind {
  const char* name;
  const char* shown;
  std::unique_ptr<DeviceDriver> (*make)();
  double loading_seconds;
};

template <typename Device>
std::unique_ptr<DeviceDriver> MakeDevice() {
  return std::make_unique<Device>();
}

constexpr DeviceKind kDeviceKinds[] = {
    {"cuda", "cuda:N", MakeDevice<CudaDevice>, 3},
    // Artifacts have source text, and drivers may optimize it for long.
    {"opencl", "opencl:N", MakeDevice<OpenClDevice>, 20},
};

const DeviceKind* FindKind(const std::string& name) {
  for (const DeviceKind& kind : kDeviceKinds) {
    if (name == kind.name) return &kind;
  }
  return nullptr;
}

}  // namespace

void DeviceDriver::UseCores(const std::vector<uint32_t>& cores) {
  RunOnCores(cores);
}

bool ParseDeviceName(const std::string& text, DeviceName* name) {
  constexpr long kMostNumber = 1023;
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return false;
  const char* const number = text.c_str() + colon + 1;
  char* end = nullptr;
  const long value = strtol(number, &end, 10);
  if (end == number || *end != '\0' || value < 0 || value > kMostNumber) {
    return false;
  }
  *name = {text.substr(0, colon), static_cast<int>(value)};
  return FindKind(name->kind) != nullptr;
}

std::string DeviceNames() {
  std::string names;
  for (const DeviceKind& kind : kDeviceKinds) {
    if (!names.empty()) names += " or ";
    names += kind.shown;
  }
  return names;
}

std::unique_ptr<DeviceDriver> MakeDeviceDriver(const std::string& kind) {
  const DeviceKind* const found = FindKind(kind);
  return found == nullptr ? nullptr : found->make();
}

double LoadingSeconds(const std::string& kind) {
  const DeviceKind* const found = FindKind(kind);
  return found == nullptr ? 0 : found->loading_seconds;
}

}  // namespace tilefarm::worker
