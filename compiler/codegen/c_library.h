// The system functions that an artifact may need: of libc and libm, and of
// libraries of kernels if its schedule calls one (base/device_libraries.h has
// the same file names).
#ifndef TILEFARM_COMPILER_CODEGEN_C_LIBRARY_H_
#define TILEFARM_COMPILER_CODEGEN_C_LIBRARY_H_

#include <string>
#include <vector>

namespace tilefarm::codegen {

struct SystemLibrary {
  std::string soname;  // "libm.so.6"
  std::vector<std::string> functions;
};

// For Linux; the same names on every architecture.
const std::vector<SystemLibrary>& SystemLibraries();

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_C_LIBRARY_H_
