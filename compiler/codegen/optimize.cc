#include "compiler/codegen/optimize.h"

#include "absl/strings/str_cat.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"

namespace tilefarm::codegen {

absl::Status VerifyModule(const llvm::Module& module, const char* when) {
  std::string problems;
  llvm::raw_string_ostream stream(problems);
  if (!llvm::verifyModule(module, &stream)) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("LLVM rejects the module ", when, ": ", problems));
}

void SetTargetAttributes(llvm::Module& module, const target::Target& target) {
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    function.setComdat(nullptr);
    function.removeFnAttr("min-legal-vector-width");
    function.removeFnAttr("tune-cpu");
    function.removeFnAttr("frame-pointer");
    function.addFnAttr("target-cpu", target.cpu);
    function.addFnAttr("target-features", target.LlvmFeatures());
    // Without this LLVM cuts 512-bit vectors in half on several cpus.
    if (target.vector_bits == 512) {
      function.addFnAttr("prefer-vector-width", "512");
    }
  }
}

void Optimize(llvm::Module& module, llvm::TargetMachine& machine,
              bool reference) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = reference;
  tuning.LoopInterleaving = reference;
  tuning.LoopUnrolling = reference;
  tuning.SLPVectorization = false;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2)
      .run(module, modules);
}

absl::StatusOr<std::string> EmitCode(llvm::Module& module,
                                     llvm::TargetMachine& machine,
                                     llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type)) {
    return absl::InternalError("LLVM cannot emit this file type");
  }
  passes.run(module);
  return std::string(bytes.data(), bytes.size());
}

}  // namespace tilefarm::codegen
