#include "compiler/target/gpu.h"

namespace tilefarm::target {
namespace {

struct Row {
  std::string_view architecture;
  int number;
  // Of V100, Xavier, T4, A100, A40, Orin, RTX 4090, H100.
  int multiprocessors;
  int threads;
  int blocks;
  int shared_kib;        // of a multiprocessor
  int block_shared_kib;  // of a block that asks for all it can get
  bool async_copies = false;
};

constexpr Row kRows[] = {
    {"sm_70", 70, 80, 2048, 32, 96, 96},
    {"sm_72", 72, 8, 2048, 32, 96, 96},
    {"sm_75", 75, 40, 1024, 16, 64, 64},
    {"sm_80", 80, 108, 2048, 32, 164, 163, true},
    {"sm_86", 86, 84, 1536, 16, 100, 99, true},
    {"sm_87", 87, 16, 1536, 16, 164, 163, true},
    {"sm_89", 89, 128, 1536, 24, 100, 99, true},
    {"sm_90", 90, 132, 2048, 32, 228, 227, true},
    {"sm_90a", 90, 132, 2048, 32, 228, 227, true},
};

// A kernel of OpenCL may have fewer threads than its device, because of its
// registers; the runtime asks. Registers are as of common devices, since
// OpenCL does not tell.
struct Family {
  std::string_view name;
  int lanes;  // of what runs in step
  int threads;
  int local_kib;
};

constexpr Family kFamilies[] = {
    {"generic", 32, 256, 32}, {"mali", 16, 256, 32},
    {"adreno", 64, 512, 32},  {"intel", 32, 256, 64},
    {"amd", 64, 256, 32},     {"nvidia", 32, 1024, 48},
    {"pocl", 16, 1024, 256},  {"oclgrind", 16, 1024, 32},
};

}  // namespace

std::optional<GpuLimits> OpenClLimits(std::string_view family) {
  for (const Family& row : kFamilies) {
    if (row.name != family) continue;
    GpuLimits limits;
    limits.architecture = 0;
    limits.warp_lanes = row.lanes;
    limits.shuffles = false;
    limits.block_threads = row.threads;
    limits.block_shared = int64_t{row.local_kib} << 10;
    limits.shared = limits.block_shared;
    return limits;
  }
  return std::nullopt;
}

std::string OpenClFamilies() {
  std::string names;
  for (const Family& row : kFamilies) {
    if (!names.empty()) names += ", ";
    names += row.name;
  }
  return names;
}

std::optional<GpuLimits> CudaLimits(std::string_view architecture) {
  for (const Row& row : kRows) {
    if (row.architecture != architecture) continue;
    GpuLimits limits;
    limits.architecture = row.number;
    limits.multiprocessors = row.multiprocessors;
    limits.threads = row.threads;
    limits.blocks = row.blocks;
    limits.async_copies = row.async_copies;
    // Since sm_80 as well.
    limits.packs_floats = limits.nan_extremes = row.async_copies;
    limits.warpgroup_products = architecture == "sm_90a";
    // CUDA C++ Programming Guide, "Thread Block Clusters".
    if (row.number >= 90) limits.cluster_blocks = 8;
    limits.shared = int64_t{row.shared_kib} << 10;
    limits.block_shared = int64_t{row.block_shared_kib} << 10;
    return limits;
  }
  return std::nullopt;
}

}  // namespace tilefarm::target
