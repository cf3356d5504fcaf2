// The C header of an artifact.
#ifndef TILEFARM_COMPILER_CODEGEN_C_HEADER_H_
#define TILEFARM_COMPILER_CODEGEN_C_HEADER_H_

#include <span>
#include <string>

#include "compiler/codegen/codegen.h"
#include "compiler/target/target.h"

namespace tilefarm::codegen {

// Prototypes, with each buffer's dtype and shape in comments; for GPUs those of
// DeviceSymbols (host_stub.h). `functions` are
// not lowered, so that their buffers still have shapes.
std::string CHeader(std::span<const LoweredFunction> functions,
                    const target::Target& target);

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_C_HEADER_H_
