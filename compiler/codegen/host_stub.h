// The host's part of a GPU artifact: exported functions that launch kernels.
//
//   SYMBOL(p0, p1)            int: runs the kernels and waits
//   SYMBOL_on(stream, p0, p1) int: enqueues them (a queue in OpenCL)
//   SYMBOL_error()            const char*: this thread's last error
//     |
//   tf_gpu_function (runtime/gpu.h): constant data, with the device's code
//     |
//   runtime/cuda.c, runtime/opencl.c, or runtime/sim.c for simulated targets
#ifndef TILEFARM_COMPILER_CODEGEN_HOST_STUB_H_
#define TILEFARM_COMPILER_CODEGEN_HOST_STUB_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/codegen/codegen.h"

namespace tilefarm::codegen {

// What the copy engine knows of a tensor, an argument of a kernel.
struct DeviceTensorMap {
  int buffer = 0;        // as DeviceKernel::arguments
  int element_type = 0;  // of CUDA's CUtensorMapDataType
  int element_bytes = 0;
  int dims = 0;
  // The contiguous dimension first; dense.
  std::array<uint64_t, 5> sizes = {1, 1, 1, 1, 1};
  std::array<uint32_t, 5> box = {1, 1, 1, 1, 1};
  // Of windows, by width, height and depth; 0: boxes.
  int spatial = 0;
  std::array<uint32_t, 3> lower = {}, upper = {};  // signed
  std::array<uint32_t, 3> steps = {1, 1, 1};
};

// One launch of a kernel, whose parameters are pointers, then tensor maps.
struct DeviceKernel {
  std::string name;
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::array<uint32_t, 3> block = {1, 1, 1};  // threads
  // Dynamic shared memory; in OpenCL the local memory that the source declares.
  uint32_t shared_bytes = 0;
  // Numbers of buffers: the function's parameters, then its workspaces.
  std::vector<int> arguments;
  std::vector<DeviceTensorMap> maps;
  // It begins by waiting for the kernel before it (runtime/cuda_launch.h).
  bool overlaps = false;
  uint32_t cluster = 1;  // blocks of a cluster, along x
};

struct DeviceFunction {
  std::string symbol;
  std::vector<int64_t> parameter_bytes;
  // 1: read, 2: every byte is written, 3: both, or some bytes are written.
  std::vector<uint8_t> parameter_access;
  std::vector<int64_t> workspace_bytes;  // intermediates between kernels
  std::vector<DeviceKernel> kernels;     // in order
};

// The symbols that EmitHostStub exports for a function; `symbol` comes first.
std::vector<std::string> DeviceSymbols(const std::string& symbol);

// An ELF object for options.target.HostPart(), to be linked by LinkSharedObject
// or LinkArchive. `image` is PTX, a cubin or OpenCL C with all kernels; empty
// for simulated targets, whose kernels are functions of these names in another
// object of the artifact:
//   void NAME(const struct tf_sim_thread*, void* const* buffers)
// InvalidArgument: two functions export one symbol. Internal: descriptions that
// contradict themselves or the target's limits. The same input gives the same
// bytes.
absl::StatusOr<std::string> EmitHostStub(
    std::span<const DeviceFunction> functions, std::string_view image,
    const Options& options);

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_HOST_STUB_H_
