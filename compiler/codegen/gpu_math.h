// Functions of libm in kernels of NVIDIA's GPUs, which have instructions for
// few of them and no library: libclc's, OpenCL's library of LLVM, whose errors
// are at most those that OpenCL allows (4 ulp of sin, 16 of pow). Private: has
// LLVM types.
#ifndef TILEFARM_COMPILER_CODEGEN_GPU_MATH_H_
#define TILEFARM_COMPILER_CODEGEN_GPU_MATH_H_

#include "absl/status/status.h"
#include "llvm/IR/Module.h"

namespace tilefarm::codegen {

// Defines the functions that the module calls and nobody defines, to be
// inlined. InvalidArgument names those that there are none of.
absl::Status LinkGpuMath(llvm::Module& module);

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_GPU_MATH_H_
