// What a model of GPU can hold, from its vendor's tables.
#ifndef TILEFARM_COMPILER_TARGET_GPU_H_
#define TILEFARM_COMPILER_TARGET_GPU_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tilefarm::target {

// Sizes in bytes; registers have 32 bits.
struct GpuLimits {
  int architecture = 70;  // 80 of "sm_80", 90 of "sm_90a"; 0: not NVIDIA's
  // Threads that run in step, or a multiple of them.
  int warp_lanes = 32;
  bool shuffles = true;       // between the registers of a warp's threads
  bool async_copies = false;  // from global to shared memory: cp.async
  bool packs_floats = false;  // cvt.rn.bf16x2.f32, two at once
  bool nan_extremes = false;  // max.NaN.f32: NaN if either operand is
  // Matrix units of warpgroups and copies of boxes of tensors (Hopper).
  bool warpgroup_products = false;
  // Blocks of a cluster that every GPU of the architecture runs at the same
  // time; 1: none does.
  int cluster_blocks = 1;
  int block_threads = 1024;         // most threads of a block
  int64_t block_shared = 48 << 10;  // most shared memory of a block
  int thread_registers = 255;
  int multiprocessors = 108;  // of a usual model; others have fewer or more
  // Of a multiprocessor, shared by the blocks that are resident on it.
  int registers = 64 << 10;
  int threads = 2048;
  int blocks = 32;
  int64_t shared = 64 << 10;
  bool operator==(const GpuLimits&) const = default;
};

// Of an NVIDIA GPU by its architecture: "sm_80", "sm_90a" (CUDA C++
// Programming Guide, "Technical Specifications per Compute Capability").
// nullopt: older than sm_70, or unknown.
std::optional<GpuLimits> CudaLimits(std::string_view architecture);

// Of a family of OpenCL devices, what each of them has at least: "generic",
// "mali" (Arm), "adreno" (Qualcomm), "intel", "amd", "nvidia", "pocl" (the
// processor), "oclgrind" (a simulator). nullopt: unknown.
std::optional<GpuLimits> OpenClLimits(std::string_view family);
// In order, separated by commas.
std::string OpenClFamilies();

}  // namespace tilefarm::target

#endif  // TILEFARM_COMPILER_TARGET_GPU_H_
