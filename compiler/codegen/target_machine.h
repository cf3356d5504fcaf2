// LLVM's view of a target. Private: has LLVM types.
#ifndef TILEFARM_COMPILER_CODEGEN_TARGET_MACHINE_H_
#define TILEFARM_COMPILER_CODEGEN_TARGET_MACHINE_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/target/target.h"
#include "llvm/Target/TargetMachine.h"

namespace tilefarm::codegen {

// Made once per target and thread; lives as long as the thread.
// InvalidArgument where code for the target cannot be generated.
absl::StatusOr<llvm::TargetMachine*> GetTargetMachine(
    const target::Target& target);

// Whether the cpu has the feature of this LLVM name.
bool HasFeature(const llvm::TargetMachine& machine, std::string_view name);

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_TARGET_MACHINE_H_
