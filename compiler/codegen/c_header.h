// The C header of an artifact.
#ifndef TILEFARM_COMPILER_CODEGEN_C_HEADER_H_
#define TILEFARM_COMPILER_CODEGEN_C_HEADER_H_

#include <span>
#include <string>

#include "compiler/codegen/signature.h"
#include "compiler/target/target.h"

namespace tilefarm::codegen {

// Prototypes, with what callers need to know in comments; for GPUs those of
// DeviceSymbols (host_stub.h).
std::string CHeader(std::span<const Signature> functions,
                    const target::Target& target);

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_C_HEADER_H_
