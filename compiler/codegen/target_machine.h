// LLVM's target machine for a target. Private: has LLVM types.
#ifndef TILEFARM_COMPILER_CODEGEN_TARGET_MACHINE_H_
#define TILEFARM_COMPILER_CODEGEN_TARGET_MACHINE_H_

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "compiler/target/target.h"
#include "llvm/Target/TargetMachine.h"

namespace tilefarm::codegen {

// Created once per target and thread; lives as long as the thread.
// InvalidArgument if code for the target cannot be generated.
absl::StatusOr<llvm::TargetMachine*> GetTargetMachine(
    const target::Target& target);

// LLVM's options are the process's, and LLD sets all of them back. Held while
// LLD runs, and by who depends on them.
extern Mutex llvm_options_mutex;

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_TARGET_MACHINE_H_
