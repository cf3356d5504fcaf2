// Executes a kernel of PTX, cluster after cluster, as slowly as is right: what
// is asynchronous is done when it is waited for, what nobody has written is
// NaN, warps take turns at random places, and lanes that need not be together
// are not. Every access is checked against its memory.
//
// Clusters are along x, and their blocks run together. A block may start late
// and end early; an access to its shared memory before or after is an error.
//
// Not modelled: caches, the order in which threads of other blocks see stores,
// copies to several blocks of a cluster, mbarriers of other blocks, and what
// the manual leaves open.
#ifndef TILEFARM_TESTS_GPU_PTX_PTX_MACHINE_H_
#define TILEFARM_TESTS_GPU_PTX_PTX_MACHINE_H_

#include <array>
#include <cstdint>
#include <string>

#include "tests/gpu/ptx/ptx_counters.h"
#include "tests/gpu/ptx/ptx_module.h"
#include "tests/gpu/ptx/ptx_warp.h"

namespace tilefarm::ptx {

struct Launch {
  std::array<unsigned, 3> grid = {1, 1, 1}, threads = {1, 1, 1};
  unsigned shared_bytes = 0;  // dynamic
  void** arguments = nullptr;
  uint64_t seed = 1;  // of where warps take turns
  // Where it is counted what the kernel does; null: nowhere. Then only so many
  // blocks are executed, evenly spaced; 0: all.
  Counters* counters = nullptr;
  unsigned most_blocks = 0;  // rounded up to whole clusters
  // Blocks of a cluster, where the launch says it; 0: as the kernel does.
  unsigned cluster = 0;
};

struct Outcome {
  Fault fault = Fault::kNone;
  std::string what;          // "block 0 0 0, thread 33, `ld.shared...`: ..."
  int64_t instructions = 0;  // of warps
  unsigned blocks = 0;       // that were executed
};

Outcome Run(const Kernel& kernel, const Launch& launch, const Memory& memory);

// Why so many blocks along x cannot be launched in clusters; empty: they can.
// `cluster`: as of Launch. Run has then kInvalidClusterSize.
std::string ClusterTrouble(const Kernel& kernel, unsigned grid_x,
                           unsigned cluster);

// What cuTensorMapEncodeTiled does, with its checks: 0 or CUDA_ERROR_INVALID_
// VALUE, 1. Only tiles whose chunks are swizzled over 128 bytes, without
// interleaving and with zeros outside, are supported. `strides` are bytes, of
// all dimensions but the first.
int EncodeTensorMap(void* map, unsigned element_type, unsigned dims,
                    uint64_t address, const uint64_t* sizes,
                    const uint64_t* strides, const unsigned* box,
                    const unsigned* element_strides, unsigned interleave,
                    unsigned swizzle, unsigned fill);
// Likewise of cuTensorMapEncodeIm2col. `lower`, `upper`: of the dimensions
// between the first and the last one.
int EncodeWindowMap(void* map, unsigned element_type, unsigned dims,
                    uint64_t address, const uint64_t* sizes,
                    const uint64_t* strides, const int* lower, const int* upper,
                    unsigned channels, unsigned pixels,
                    const unsigned* element_strides, unsigned interleave,
                    unsigned swizzle, unsigned fill);

}  // namespace tilefarm::ptx

#endif  // TILEFARM_TESTS_GPU_PTX_PTX_MACHINE_H_
