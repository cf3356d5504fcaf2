// LLVM's passes for all generated modules. Private to this folder and oracle/:
// has LLVM types.
#ifndef TILEFARM_COMPILER_CODEGEN_OPTIMIZE_H_
#define TILEFARM_COMPILER_CODEGEN_OPTIMIZE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/target/target.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace tilefarm::codegen {

// Internal if LLVM's verifier rejects the module; `when` is for the message.
absl::Status VerifyModule(const llvm::Module& module, const char* when);

// Sets the target's cpu and features on every function that has a body.
void SetTargetAttributes(llvm::Module& module, const target::Target& target);

// Scheduled code: clean-up and redundancy elimination; no vectoriser and no
// unroller, since the schedule has decided.
void Optimize(llvm::Module& module, llvm::TargetMachine& machine);
// Other code: LLVM's O2 without the SLP vectoriser. It never reorders
// floating-point operations.
void OptimizeUnscheduled(llvm::Module& module, llvm::TargetMachine& machine);

absl::StatusOr<std::string> EmitCode(llvm::Module& module,
                                     llvm::TargetMachine& machine,
                                     llvm::CodeGenFileType type);
// Of scheduled code, which was emitted so that a tile that fits the registers
// stays in them. LLVM's scheduler moves loads ahead, which helps, or makes some
// of the tile spill, which can take twice the time: the code is generated in
// both orders then, and the one that spills less is taken.
absl::StatusOr<std::string> EmitScheduledCode(llvm::Module& module,
                                              llvm::TargetMachine& machine,
                                              llvm::CodeGenFileType type);

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_OPTIMIZE_H_
