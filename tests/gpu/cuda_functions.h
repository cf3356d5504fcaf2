// Functions of a GPU, as the tests of host stubs and of the driver use them.
#ifndef TILEFARM_TESTS_GPU_CUDA_FUNCTIONS_H_
#define TILEFARM_TESTS_GPU_CUDA_FUNCTIONS_H_

#include <cstdint>

#include "compiler/codegen/host_stub.h"
#include "compiler/target/target.h"

namespace tilefarm::codegen {

inline constexpr char kImage[] =
    ".version 8.0\n.target sm_90a\n.entry add_one() {}\n.entry add() {}\n";
inline constexpr unsigned kCount = 64;
inline constexpr int64_t kBytes = kCount * sizeof(float);

// f(in, out, sum): workspace = in + 1; out = workspace + 1; sum += workspace.
inline DeviceFunction ThreeKernels() {
  DeviceFunction function;
  function.symbol = "f";
  function.parameter_bytes = {kBytes, kBytes, kBytes};
  function.parameter_access = {1, 2, 3};
  function.workspace_bytes = {kBytes};
  function.kernels = {{"add_one", {2, 3, 4}, {32, 1, 1}, 0, {0, 3}},
                      {"add_one", {1, 1, 1}, {8, 4, 2}, 64, {3, 1}},
                      {"add", {1, 1, 1}, {1, 1, 1}, 0, {3, 2}}};
  return function;
}

// g(x): x += x.
inline DeviceFunction OneKernel(uint32_t shared_bytes = 0) {
  DeviceFunction function;
  function.symbol = "g";
  function.parameter_bytes = {kBytes};
  function.parameter_access = {3};
  function.kernels = {{"add", {1, 1, 1}, {64, 1, 1}, shared_bytes, {0, 0}}};
  return function;
}

inline target::Target Cuda() { return *target::Parse("cuda:sm_90a"); }

}  // namespace tilefarm::codegen

#endif  // TILEFARM_TESTS_GPU_CUDA_FUNCTIONS_H_
