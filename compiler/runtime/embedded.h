// The runtime as archives of objects, compiled per triple when Tilefarm is
// built.
#ifndef TILEFARM_COMPILER_RUNTIME_EMBEDDED_H_
#define TILEFARM_COMPILER_RUNTIME_EMBEDDED_H_

#include <string_view>

namespace tilefarm::runtime {

// The archive to link a kernel of this triple with, an object per source file;
// empty if there is no runtime for the triple. Its functions are hidden: only
// what is linked with them can call them. The bytes live as long as the
// process.
std::string_view Archive(std::string_view triple);
// A further archive for artifacts of GPUs with hosts of this triple.
std::string_view GpuArchive(std::string_view triple);
// LLVM bitcode: libclc's functions of floats for NVIDIA's GPUs, with OpenCL's
// mangled names.
std::string_view GpuMathBitcode();

}  // namespace tilefarm::runtime

#endif  // TILEFARM_COMPILER_RUNTIME_EMBEDDED_H_
