// A module of LLVM that was compiled with Tilefarm. Private: has LLVM types.
#ifndef TILEFARM_COMPILER_CODEGEN_EMBEDDED_MODULE_H_
#define TILEFARM_COMPILER_CODEGEN_EMBEDDED_MODULE_H_

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "llvm/IR/Module.h"

namespace tilefarm::codegen {

// From bitcode of runtime/embedded.h. Internal: it does not load.
absl::StatusOr<std::unique_ptr<llvm::Module>> ParseEmbedded(
    std::string_view bitcode, llvm::LLVMContext& context);

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_EMBEDDED_MODULE_H_
