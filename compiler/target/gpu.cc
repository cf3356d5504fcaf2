#include "compiler/target/gpu.h"

namespace tilefarm::target {
namespace {

struct Row {
  std::string_view architecture;
  int threads;
  int blocks;
  int shared_kib;        // of a multiprocessor
  int block_shared_kib;  // of a block that asks for all it can get
  bool async_copies = false;
};

constexpr Row kRows[] = {
    {"sm_70", 2048, 32, 96, 96},          {"sm_72", 2048, 32, 96, 96},
    {"sm_75", 1024, 16, 64, 64},          {"sm_80", 2048, 32, 164, 163, true},
    {"sm_86", 1536, 16, 100, 99, true},   {"sm_87", 1536, 16, 164, 163, true},
    {"sm_89", 1536, 24, 100, 99, true},   {"sm_90", 2048, 32, 228, 227, true},
    {"sm_90a", 2048, 32, 228, 227, true},
};

}  // namespace

std::optional<GpuLimits> CudaLimits(std::string_view architecture) {
  for (const Row& row : kRows) {
    if (row.architecture != architecture) continue;
    GpuLimits limits;
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
