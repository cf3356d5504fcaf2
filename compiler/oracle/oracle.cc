#include "compiler/oracle/oracle.h"

#include <utility>

#include "base/status_macros.h"
#include "compiler/codegen/link.h"
#include "compiler/codegen/optimize.h"
#include "compiler/codegen/target_machine.h"
#include "compiler/oracle/translate_internal.h"

namespace tilefarm::oracle {

absl::StatusOr<Artifact> Compile(const ir::PrimFunc& function,
                                 const target::Target& target) {
  TF_ASSIGN_OR_RETURN(llvm::TargetMachine * machine,
                      codegen::GetTargetMachine(target));
  llvm::LLVMContext context;
  TF_ASSIGN_OR_RETURN(Translation translation, Translate(function, context));
  llvm::Module& module = *translation.module;
  module.setTargetTriple(target.triple);
  module.setDataLayout(machine->createDataLayout());
  module.setPICLevel(llvm::PICLevel::BigPIC);
  TF_RETURN_IF_ERROR(codegen::VerifyModule(module, "as translated"));
  codegen::SetTargetAttributes(module, target);
  codegen::OptimizeUnscheduled(module, *machine);
  TF_ASSIGN_OR_RETURN(
      const std::string object,
      codegen::EmitCode(module, *machine, llvm::CodeGenFileType::ObjectFile));
  Artifact artifact;
  TF_ASSIGN_OR_RETURN(artifact.shared_object,
                      codegen::LinkSharedObject({&object, 1}, target));
  artifact.bounded = std::move(translation.bounded);
  artifact.workspace_bytes = translation.workspace_bytes;
  return artifact;
}

}  // namespace tilefarm::oracle
