// Kernels of GPUs as OpenCL C 1.2, for devices without a backend of LLVM.
//
// One work item is one thread, a vector of the lowered program is its lanes one
// by one: compilers of OpenCL make scalar code. Accesses of memory stay
// vectors.
#ifndef TILEFARM_COMPILER_CODEGEN_OPENCL_SOURCE_H_
#define TILEFARM_COMPILER_CODEGEN_OPENCL_SOURCE_H_

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/lower/gpu_passes.h"

namespace tilefarm::codegen {

struct NamedKernel {
  std::string name;
  lower::Kernel kernel;
};

// A program with all kernels. Their parameters are pointers to global memory in
// the order of Kernel::buffers; 16-bit floats are there as ushort, bools as
// uchar. Arithmetic is as codegen/README.md says; elementary functions are the
// device's. The same kernels give the same text. InvalidArgument: a kernel
// needs what OpenCL C 1.2 does not have.
absl::StatusOr<std::string> EmitOpenClSource(
    std::span<const NamedKernel> kernels);

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_OPENCL_SOURCE_H_
