#include "server/farm/device.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/hash.h"

namespace tilefarm::farm {
namespace {

// Whether this is LLVM's name of an instruction set level, which is not the cpu
// of any device.
bool IsInstructionSetLevel(const std::string& cpu) {
  return cpu.empty() || cpu == "generic" || cpu == "x86-64" ||
         absl::StartsWith(cpu, "x86-64-v");
}

}  // namespace

target::CacheSizes DeviceProperties::caches() const {
  target::CacheSizes caches;
  if (l1_bytes > 0) caches.l1_bytes = l1_bytes;
  if (l2_bytes > 0) caches.l2_bytes = l2_bytes;
  if (l3_bytes > 0) caches.l3_bytes = l3_bytes;
  return caches;
}

const std::string& DisplayModel(const DeviceProperties& properties) {
  return properties.brand.empty() ? properties.cpu : properties.brand;
}

std::string DeviceClass(const DeviceProperties& properties) {
  return absl::StrCat(DisplayModel(properties),
                      properties.emulated ? " (emulated)" : "");
}

std::string DeviceModel(const DeviceProperties& properties) {
  return target::DeviceModel(
      properties.brand, properties.cpu, properties.features,
      {properties.l1_bytes, properties.l2_bytes, properties.l3_bytes});
}

std::string DeviceId(std::string_view name,
                     const DeviceProperties& properties) {
  const std::string all = absl::StrCat(
      DeviceModel(properties), ";target=", properties.target,
      ";triple=", properties.triple, ";cores=", properties.cores,
      ";memory=", properties.memory_bytes, ";emulated=", properties.emulated);
  return absl::StrCat(std::string(name), "@", Sha256Hex(all).substr(0, 12));
}

bool DeviceFits(const target::Target& device, const target::Target& wanted) {
  if (wanted.kind != device.kind || wanted.cores > device.cores) return false;
  target::Target same_cores = wanted;
  same_cores.cores = device.cores;
  const target::Match match = target::Compare(same_cores, device);
  if (match >= target::Match::kMicroarch) return true;
  return match == target::Match::kFamily && IsInstructionSetLevel(wanted.cpu);
}

bool HasKernels(const DeviceProperties& device, std::string_view kernels) {
  const std::vector<std::string> names =
      absl::StrSplit(absl::string_view(kernels.data(), kernels.size()), ',',
                     absl::SkipEmpty());
  for (const std::string& kernel : names) {
    // A kernel's name begins with its library's: "openblas.sgemm".
    if (!device.libraries.contains(kernel.substr(0, kernel.find('.')))) {
      return false;
    }
  }
  return true;
}

std::string_view DeviceStateName(DeviceState state) {
  switch (state) {
    case DeviceState::kIdle:
      return "idle";
    case DeviceState::kBusy:
      return "busy";
    case DeviceState::kChecking:
      return "checking";
    case DeviceState::kDraining:
      return "draining";
    case DeviceState::kDrained:
      return "drained";
    case DeviceState::kPaused:
      return "paused";
    case DeviceState::kQuarantined:
      return "quarantined";
    case DeviceState::kOffline:
      return "offline";
    case DeviceState::kIncompatible:
      return "incompatible";
  }
  return "offline";
}

bool IsWorking(DeviceState state) {
  return state == DeviceState::kIdle || state == DeviceState::kBusy ||
         state == DeviceState::kChecking;
}

std::string_view OrderName(Order order) {
  switch (order) {
    case Order::kNone:
      return "";
    case Order::kDrained:
      return "drained";
    case Order::kQuarantined:
      return "quarantined";
  }
  return "";
}

}  // namespace tilefarm::farm
