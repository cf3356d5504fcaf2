// The system functions that an artifact may need: from libc and libm, and from
// kernel libraries if its schedule calls one (base/device_libraries.h has the
// same file names).
#ifndef TILEFARM_COMPILER_CODEGEN_C_LIBRARY_H_
#define TILEFARM_COMPILER_CODEGEN_C_LIBRARY_H_

#include <string>
#include <vector>

namespace tilefarm::codegen {

struct SystemLibrary {
  std::string soname;  // "libm.so.6"
  std::vector<std::string> functions;
};

// The libraries on Linux; their names are the same on every architecture.
const std::vector<SystemLibrary>& SystemLibraries();
// libm.
const SystemLibrary& MathLibrary();

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_C_LIBRARY_H_
