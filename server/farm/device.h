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
  // Libraries of kernels that it can load, and their versions. Not part of its
  // identity: installing one does not make a new device.
  std::map<std::string, std::string> libraries;
  // Labels that its operator gave it. Not part of its identity.
  std::map<std::string, std::string> labels;
  // It takes comparisons of artifacts. Not part of its identity.
  bool takes_artifacts = false;

  // Sizes that were not announced are the defaults.
  target::CacheSizes caches() const;
};

// The processor's brand, or its cpu where the brand is not known.
const std::string& DisplayModel(const DeviceProperties& properties);

// What people call devices of one class, which are interchangeable: their
// brand, and "(emulated)" where they are emulated.
std::string DeviceClass(const DeviceProperties& properties);

// target::DeviceModel of what the worker announced.
std::string DeviceModel(const DeviceProperties& properties);

// "NAME@DIGEST" with twelve digits of the digest of all properties: changed
// hardware under an old name is a new device.
std::string DeviceId(std::string_view name, const DeviceProperties& properties);

// Whether a time measured on `device` is valid for `wanted`: same kind, same
// cpu with every feature, and enough cores. A wanted target that names an
// instruction set level instead of a cpu ("x86-64-v3", "generic") may be
// measured on any cpu that has it.
bool DeviceFits(const target::Target& device, const target::Target& wanted);

// Whether the device has the libraries of these kernels, which are named as by
// database::LibraryOf.
bool HasKernels(const DeviceProperties& device, std::string_view kernels);

enum class DeviceState {
  kIdle,
  kBusy,
  kChecking,  // waits for its first canary
  kDraining,  // finishes what it holds
  kDrained,   // by an operator, and holds nothing
  kPaused,    // its canaries are slow, or it rests
  kQuarantined,
  kOffline,
  kIncompatible,
};
inline constexpr DeviceState kDeviceStates[] = {
    DeviceState::kIdle,        DeviceState::kBusy,
    DeviceState::kChecking,    DeviceState::kDraining,
    DeviceState::kDrained,     DeviceState::kPaused,
    DeviceState::kQuarantined, DeviceState::kOffline,
    DeviceState::kIncompatible};
std::string_view DeviceStateName(DeviceState state);
// Whether it measures, or will after its canary.
bool IsWorking(DeviceState state);

// What a device may get now.
struct Availability {
  bool works = false;  // it may hold leases of candidates
  bool free = false;   // it works, and has a place for another lease
  int slots = 0;       // leases that it can hold, now or after its first canary
};

// An operator's order about a device. It outlives connections.
enum class Order { kNone, kDrained, kQuarantined };
std::string_view OrderName(Order order);  // "", "drained", "quarantined"

// What the server remembers of a device, connected or not.
struct KnownDevice {
  std::string name;
  Order order = Order::kNone;
  std::string order_reason;  // "by ann: the fan is broken"
  std::string reserved_for;  // a user; empty: nobody
  absl::Time reserved_until;
  // As of its last connection.
  std::string model;
  std::string target;
  absl::Time last_seen;
};

// A device as people see it.
struct DeviceStatus {
  std::string name;
  DeviceState state = DeviceState::kOffline;
  std::string reason;  // why it gets no work; empty: it does
  std::string model;   // the processor's brand, or its cpu
  std::string target;
  absl::Time last_seen;
  double trials_per_second = 0;
  // In which it measured, since the server started.
  double busy_seconds = 0;
  int leases = 0;
  std::map<std::string, std::string> libraries;
  std::map<std::string, std::string> labels;
  std::string reserved_for;
  absl::Time reserved_until;
  bool unsteady = false;
  std::string device_state;  // JSON, of the latest measurement
  std::string isolation;     // as announced; empty: not seen by this process
};

}  // namespace tilefarm::farm

#endif  // TILEFARM_SERVER_FARM_DEVICE_H_
