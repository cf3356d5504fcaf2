// SYMBOL_info of every function of an artifact: its signature as constant data.
// docs/formats.md, "Function artifacts".
#ifndef TILEFARM_COMPILER_CODEGEN_FUNCTION_INFO_H_
#define TILEFARM_COMPILER_CODEGEN_FUNCTION_INFO_H_

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/codegen/signature.h"
#include "compiler/target/target.h"

namespace tilefarm::codegen {

// "SYMBOL_info".
std::string InfoSymbol(const std::string& symbol);

// The C declarations of the structs.
std::string InfoTypes();

// An object for target.HostPart() that defines
//   const tf_function_info* SYMBOL_info(void)
// and needs no other symbol. The same input gives the same bytes.
absl::StatusOr<std::string> EmitInfoObject(
    std::span<const Signature> signatures, const target::Target& target);

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_FUNCTION_INFO_H_
