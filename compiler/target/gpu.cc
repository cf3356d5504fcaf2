#include "compiler/target/gpu.h"

namespace tilefarm::target {
namespace {

struct Row {
  std::string_view architecture;
  int number;
  int threads;
  int blocks;
  int shared_kib;        // of a multiprocessor
  int block_shared_kib;  // of a block that asks for all it can get
  bool async_copies = false;
};

constexpr Row kRows[] = {
    {"sm_70", 70, 2048, 32, 96, 96},
    {"sm_72", 72, 2048, 32, 96, 96},
    {"sm_75", 75, 1024, 16, 64, 64},
    {"sm_80", 80, 2048, 32, 164, 163, true},
    {"sm_86", 86, 1536, 16, 100, 99, true},
    {"sm_87", 87, 1536, 16, 164, 163, true},
    {"sm_89", 89, 1536, 24, 100, 99, true},
    {"sm_90", 90, 2048, 32, 228, 227, true},
    {"sm_90a", 90, 2048, 32, 228, 227, true},
};

}  // namespace

std::optional<GpuLimits> CudaLimits(std::string_view architecture) {
  for (const Row& row : kRows) {
    if (row.architecture != architecture) continue;
    GpuLimits limits;
    limits.architecture = row.number;
    limits.threads = row.threads;
    limits.blocks = row.blocks;
    limits.async_copies = row.async_copies;
    limits.packs_floats = row.async_copies;  // since sm_80 as well
    limits.warpgroup_products = architecture == "sm_90a";
    limits.shared = int64_t{row.shared_kib} << 10;
    limits.block_shared = int64_t{row.block_shared_kib} << 10;
    return limits;
  }
  return std::nullopt;
}

}  // namespace tilefarm::target
