#include "compiler/codegen/optimize.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/IPO/ConstantMerge.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/IPO/GlobalOpt.h"
#include "llvm/Transforms/IPO/Inliner.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/DeadStoreElimination.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/GVN.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopIdiomRecognize.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

namespace tilefarm::codegen {

absl::Status VerifyModule(const llvm::Module& module, const char* when) {
  std::string problems;
  llvm::raw_string_ostream stream(problems);
  if (!llvm::verifyModule(module, &stream)) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("LLVM rejects the module ", when, ": ", problems));
}

void SetTargetAttributes(llvm::Module& module, const target::Target& target) {
  const bool x86 = llvm::Triple(module.getTargetTriple()).isX86();
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    function.setComdat(nullptr);
    function.removeFnAttr("min-legal-vector-width");
    function.removeFnAttr("tune-cpu");
    function.removeFnAttr("frame-pointer");
    function.addFnAttr("target-cpu", target.cpu);
    function.addFnAttr("target-features", target.LlvmFeatures());
    // Without this, LLVM splits 512-bit vectors into halves on several cpus.
    if (target.vector_bits == 512) {
      function.addFnAttr("prefer-vector-width", "512");
    }
    // Without an aligned stack, spilled vectors may cross cache lines,
    // depending on the caller's stack. Whether a function spills is known only
    // after this point, so all functions align their stack.
    if (x86 && target.vector_bits > 128) {
      function.addFnAttr(llvm::Attribute::getWithStackAlignment(
          module.getContext(), llvm::Align(target.vector_bits / 8)));
    }
  }
}

namespace {

// The passes that scheduled code needs, each once or twice. O2 runs instcombine
// five times and other passes that find nothing here; it takes twice as long
// for code of the same speed (docs/performance.md). Each of our loops has one
// counter with step one, so indvars has nothing to simplify. LICM runs after
// GVN, which makes addresses share their base; before GVN each address would
// become an invariant of its own.
llvm::ModulePassManager ScheduledCodePipeline() {
  constexpr bool kEagerlyInvalidate = true;
  // Turns allocas into registers and removes repeated address computations.
  llvm::FunctionPassManager early;
  early.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  early.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  early.addPass(llvm::SimplifyCFGPass());
  early.addPass(llvm::InstCombinePass());

  llvm::LoopPassManager rotate, idioms, hoist;
  rotate.addPass(llvm::LoopRotatePass());
  idioms.addPass(llvm::LoopIdiomRecognizePass());
  hoist.addPass(llvm::LICMPass(llvm::LICMOptions()));
  llvm::FunctionPassManager main;
  main.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(rotate)));
  main.addPass(llvm::SimplifyCFGPass());
  main.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(idioms)));
  main.addPass(llvm::GVNPass());
  main.addPass(llvm::DSEPass());
  main.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(hoist),
                                                     /*UseMemorySSA=*/true));
  main.addPass(llvm::InstCombinePass());
  main.addPass(
      llvm::SimplifyCFGPass(llvm::SimplifyCFGOptions().sinkCommonInsts(true)));

  llvm::ModulePassManager passes;
  passes.addPass(llvm::GlobalOptPass());
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(early),
                                                         kEagerlyInvalidate));
  passes.addPass(
      llvm::createModuleToPostOrderCGSCCPassAdaptor(llvm::InlinerPass()));
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(main),
                                                         kEagerlyInvalidate));
  passes.addPass(llvm::GlobalDCEPass());
  passes.addPass(llvm::ConstantMergePass());
  return passes;
}

// `make` creates the passes from the builder.
template <typename Make>
void Run(llvm::Module& module, llvm::TargetMachine& machine, Make make) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  llvm::ModulePassManager passes = make(builder);
  passes.run(module, modules);
}

}  // namespace

void Optimize(llvm::Module& module, llvm::TargetMachine& machine) {
  Run(module, machine,
      [](llvm::PassBuilder&) { return ScheduledCodePipeline(); });
}

void OptimizeUnscheduled(llvm::Module& module, llvm::TargetMachine& machine) {
  Run(module, machine, [](llvm::PassBuilder& builder) {
    return builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2);
  });
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
