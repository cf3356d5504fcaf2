// The runtime as LLVM bitcode, compiled per triple when Tilefarm is built.
#ifndef TILEFARM_COMPILER_RUNTIME_EMBEDDED_H_
#define TILEFARM_COMPILER_RUNTIME_EMBEDDED_H_

#include <string_view>
#include <vector>

namespace tilefarm::runtime {

// The modules to link into a kernel of this triple, one per source file; empty
// if there is no runtime for the triple. The bytes live as long as the process.
std::vector<std::string_view> Bitcode(std::string_view triple);
// Further modules for artifacts of GPUs with hosts of this triple.
std::vector<std::string_view> GpuBitcode(std::string_view triple);
// libclc's functions of floats for NVIDIA's GPUs, with OpenCL's mangled names.
std::string_view GpuMathBitcode();

}  // namespace tilefarm::runtime

#endif  // TILEFARM_COMPILER_RUNTIME_EMBEDDED_H_
