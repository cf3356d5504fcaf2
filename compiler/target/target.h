// Targets: KIND[:MODEL][,key=value...] or a JSON file.
#ifndef TILEFARM_COMPILER_TARGET_TARGET_H_
#define TILEFARM_COMPILER_TARGET_TARGET_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/target/capability.h"
#include "compiler/target/gpu.h"

namespace tilefarm::target {

// Data caches, in bytes. Facts of the device that features and tile sizes look
// at; not part of the key.
struct CacheSizes {
  int64_t l1_bytes = 32 << 10;
  int64_t l2_bytes = 1 << 20;
  int64_t l3_bytes = 16 << 20;
  bool operator==(const CacheSizes&) const = default;
};

// A resolved target; never "host". A value type.
struct Target {
  std::string kind;  // "x86-64", "aarch64", "armv7", "cuda", "opencl", "sim"
  // LLVM's cpu name, "znver4", "sm_90a"; a family of OpenCL's devices, "mali".
  std::string cpu;
  std::string triple;  // LLVM's triple; of the device for GPUs
  // LLVM features that differ from the cpu's own: "-amx-tile", "+avx512bf16";
  // sorted.
  std::vector<std::string> features;
  int cores = 1;  // 1: no thread pool
  CacheSizes caches;
  // False if `caches` are defaults, because the text named neither this machine
  // nor a size.
  bool caches_known = false;
  // DeviceModel of this machine, where the text was "host"; otherwise empty.
  // Not part of the key.
  std::string device_model;
  // Width of vector registers in bits and their number, from cpu and features.
  int vector_bits = 128;
  int vector_registers = 16;
  // From kind, cpu and features.
  Capabilities capabilities;
  // Of GPUs, from kind and cpu.
  std::optional<GpuLimits> gpu;

  bool Has(Capability capability) const { return capabilities.Has(capability); }
  // Canonical text, the key of a record: kind, cpu, features, cores. Parsing
  // it gives the same target, but for the facts of the device.
  std::string Key() const;
  // LLVM's feature string: "+a,-b".
  std::string LlvmFeatures() const;
  // Artifacts are modules for an engine (a browser, Node), not shared objects.
  bool is_webassembly() const { return kind == "wasm32"; }
  // Loops are bound to threads of kernels (ir::ThreadAxis). "sim" is a GPU
  // whose kernels run on the host, for tests.
  bool is_gpu() const { return gpu.has_value(); }
  bool is_simulated() const { return kind == "sim"; }
  bool is_opencl() const { return kind == "opencl"; }
  // The baseline of this build's machine, without threads: the host code of a
  // GPU's artifact. The target itself if it is no GPU.
  Target HostPart() const;
  int vector_lanes(int element_bytes) const {
    return vector_bits / 8 / element_bytes;
  }
};

// InvalidArgument with the known kinds, models and keys where the text is
// wrong. "host" reads this machine (cpu and features as LLVM names them,
// caches from sysfs, cores from the affinity mask).
absl::StatusOr<Target> Parse(std::string_view text);
// As Parse, for texts of somebody else: a FILE.json is not opened, and "host"
// is no target. InvalidArgument says so.
absl::StatusOr<Target> ParseKey(std::string_view text);

// Brand, cpu, features (those that differ from the cpu's) and caches as one
// canonical text: devices with the same text run the same code at the same
// speed. What workers announce and what "host" resolves to agree on it.
std::string DeviceModel(std::string_view brand, std::string_view cpu,
                        const std::vector<std::string>& features,
                        const CacheSizes& caches);

// How well a record's target fits a wanted one; larger is better.
enum class Match {
  kNone = 0,       // may not be used
  kFamily = 1,     // compatible ISA family: wanted has every feature
  kMicroarch = 2,  // same kind and cpu
  kExact = 3,      // same key but perhaps cores
};
Match Compare(const Target& recorded, const Target& wanted);

}  // namespace tilefarm::target

#endif  // TILEFARM_COMPILER_TARGET_TARGET_H_
