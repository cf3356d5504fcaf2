#include "compiler/codegen/optimize.h"

#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/CodeGen/MachineOptimizationRemarkEmitter.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/OptBisect.h"
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
#include "llvm/Transforms/Utils/Cloning.h"

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

namespace {

// What each function of a module stores to the stack and loads from it for want
// of registers: values, as often as LLVM estimates that a call executes them.
using Spills = std::map<std::string, double>;

// Adds up what the register allocator's remarks report.
class SpillCounter : public llvm::DiagnosticHandler {
 public:
  explicit SpillCounter(Spills* spills) : spills_(*spills) {}

  bool isMissedOptRemarkEnabled(llvm::StringRef pass) const override {
    return pass == kPass;
  }
  bool isAnyRemarkEnabled() const override { return true; }
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    const auto* remark =
        llvm::dyn_cast<llvm::MachineOptimizationRemarkMissed>(&info);
    if (remark == nullptr) return false;
    // Those of loops are part of the function's.
    if (remark->getRemarkName() != "SpillReloadCopies") return true;
    for (const auto& argument : remark->getArgs()) {
      double times = 0;
      if (llvm::is_contained(
              {"TotalSpillsCost", "TotalReloadsCost", "TotalFoldedSpillsCost",
               "TotalFoldedReloadsCost"},
              llvm::StringRef(argument.Key)) &&
          llvm::to_float(argument.Val, times) && times > 0) {
        spills_[remark->getFunction().getName().str()] += times;
      }
    }
    return true;
  }

 private:
  static constexpr llvm::StringLiteral kPass = "regalloc";
  Spills& spills_;
};

// Leaves the instructions of some functions in the order of the IR. LLVM has no
// constants for the names here; tests/golden/codegen/least_spills.py holds
// them.
class SchedulerGate : public llvm::OptPassGate {
 public:
  explicit SchedulerGate(const std::set<std::string>& unscheduled) {
    for (const std::string& function : unscheduled) {
      descriptions_.insert(absl::StrCat("function (", function, ")"));
    }
  }
  bool isEnabled() const override { return !descriptions_.empty(); }
  bool shouldRunPass(llvm::StringRef pass,
                     llvm::StringRef description) override {
    return pass != "Machine Instruction Scheduler" ||
           !descriptions_.contains(description.str());
  }

 private:
  std::set<std::string> descriptions_;
};

// As EmitCode; adds to `spills`.
absl::StatusOr<std::string> EmitCounting(
    llvm::Module& module, llvm::TargetMachine& machine,
    llvm::CodeGenFileType type, const std::set<std::string>& unscheduled,
    Spills* spills) {
  llvm::LLVMContext& context = module.getContext();
  SchedulerGate gate(unscheduled);
  context.setOptPassGate(gate);
  context.setDiagnosticHandler(std::make_unique<SpillCounter>(spills));
  absl::StatusOr<std::string> code = EmitCode(module, machine, type);
  context.setDiagnosticHandler(std::make_unique<llvm::DiagnosticHandler>());
  context.setOptPassGate(llvm::getGlobalPassGate());
  return code;
}

}  // namespace

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

absl::StatusOr<std::string> EmitScheduledCode(llvm::Module& module,
                                              llvm::TargetMachine& machine,
                                              llvm::CodeGenFileType type) {
  // Code generation changes its module.
  const auto emit = [&](const std::set<std::string>& unscheduled,
                        Spills* spills) {
    const std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
    return EmitCounting(*copy, machine, type, unscheduled, spills);
  };
  Spills spills, others;
  TF_ASSIGN_OR_RETURN(std::string code, emit({}, &spills));
  std::set<std::string> unscheduled;
  for (const auto& [function, times] : spills) unscheduled.insert(function);
  if (unscheduled.empty()) return code;
  TF_ASSIGN_OR_RETURN(std::string other, emit(unscheduled, &others));
  const size_t removed =
      std::erase_if(unscheduled, [&](const std::string& function) {
        return others[function] >= spills[function];
      });
  if (removed == 0) return other;
  if (unscheduled.empty()) return code;
  return emit(unscheduled, &others);
}

}  // namespace tilefarm::codegen
