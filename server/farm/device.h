// What the farm knows about a device, and which targets it can measure.
#ifndef TILEFARM_SERVER_FARM_DEVICE_H_
#define TILEFARM_SERVER_FARM_DEVICE_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "compiler/target/target.h"

namespace tilefarm::farm {

// As the worker announces them.
struct DeviceProperties {
  std::string target;  // canonical key of the whole device
  std::string triple;
  std::string cpu;
  std::vector<std::string> features;
  std::string brand;
  int cores = 0;
  int64_t l1_bytes = 0;
  int64_t l2_bytes = 0;
  int64_t l3_bytes = 0;
  int64_t memory_bytes = 0;
  bool emulated = false;
  std::string isolation;
  // Libraries of kernels that it can load, and their versions. No part of what
  // it is: installing one makes no new device.
  std::map<std::string, std::string> libraries;

  // Where a size was not announced, the default.
  target::CacheSizes caches() const;
};

// target::DeviceModel of what the worker announced.
std::string DeviceModel(const DeviceProperties& properties);

// "NAME@DIGEST" with twelve digits of the digest of all properties: changed
// hardware under an old name is a new device.
std::string DeviceId(std::string_view name, const DeviceProperties& properties);

// Whether a time measured on `device` is one for `wanted`: the same kind and
// cpu with every feature, and enough cores. A wanted target that names an
// instruction set level instead of a cpu ("x86-64-v3", "generic") may be
// measured on any cpu that has it.
bool DeviceFits(const target::Target& device, const target::Target& wanted);

// Whether the device has what a trace calls of libraries.
bool HasLibraries(const DeviceProperties& device, std::string_view trace);

enum class DeviceState { kIdle, kBusy, kDraining, kOffline, kIncompatible };
std::string_view DeviceStateName(DeviceState state);

// A device as people see it.
struct DeviceStatus {
  std::string name;
  DeviceState state = DeviceState::kOffline;
  std::string reason;  // why it gets no work, where it does not
  std::string model;   // the processor's brand, or its cpu
  std::string target;
  absl::Time last_seen;
  double trials_per_second = 0;
  int leases = 0;
  std::map<std::string, std::string> libraries;
};

}  // namespace tilefarm::farm

#endif  // TILEFARM_SERVER_FARM_DEVICE_H_
