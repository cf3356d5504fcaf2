#include "compiler/codegen/codegen.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/codegen/emitter.h"
#include "compiler/codegen/target_machine.h"
#include "compiler/runtime/embedded.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

namespace tilefarm::codegen {
namespace {

// Kernels carry a prefix until everything is linked, so that one named "exp"
// is not taken for the library's.
constexpr char kKernelPrefix[] = "tf.kernel.";

absl::Status VerifyModule(const llvm::Module& module, const char* when) {
  std::string problems;
  llvm::raw_string_ostream stream(problems);
  if (!llvm::verifyModule(module, &stream)) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("LLVM rejects the module ", when, ": ", problems));
}

// Links what the module calls of the runtime, and has it cleaned up when the
// artifact is unloaded.
absl::Status LinkRuntime(llvm::Module& module, const std::string& triple) {
  const std::pair<const char*, const char*> cleanups[] = {
      {"tf_rt_parallel_for", "tf_rt_parallel_shutdown"},
      {"tf_rt_workspace_acquire", "tf_rt_workspace_shutdown"}};
  const bool used = std::any_of(
      module.begin(), module.end(), [](const llvm::Function& function) {
        return function.getName().starts_with("tf_rt_");
      });
  for (const auto& [function, cleanup] : cleanups) {
    if (module.getFunction(function) == nullptr) continue;
    llvm::FunctionCallee callee = module.getOrInsertFunction(
        cleanup, llvm::Type::getVoidTy(module.getContext()));
    llvm::appendToGlobalDtors(
        module, llvm::cast<llvm::Function>(callee.getCallee()), 65535);
  }
  if (!used) return absl::OkStatus();
  for (std::string_view bytes : runtime::Bitcode(triple)) {
    auto parsed = llvm::parseBitcodeFile(
        llvm::MemoryBufferRef(llvm::StringRef(bytes.data(), bytes.size()),
                              "runtime"),
        module.getContext());
    if (!parsed) {
      return absl::InternalError(
          absl::StrCat("the embedded runtime does not load: ",
                       llvm::toString(parsed.takeError())));
    }
    (*parsed)->setDataLayout(module.getDataLayout());
    if (llvm::Linker::linkModules(module, std::move(*parsed),
                                  llvm::Linker::LinkOnlyNeeded)) {
      return absl::InternalError("the embedded runtime does not link");
    }
  }
  if (llvm::NamedMDNode* ident = module.getNamedMetadata("llvm.ident")) {
    ident->eraseFromParent();
  }
  return absl::OkStatus();
}

absl::Status ExportKernels(llvm::Module& module,
                           std::span<const LoweredFunction> functions) {
  for (const LoweredFunction& kernel : functions) {
    for (const std::string& symbol : ExportedSymbols(kernel)) {
      const llvm::GlobalValue* taken = module.getNamedValue(symbol);
      if (taken != nullptr) {
        return absl::InvalidArgumentError(absl::StrCat(
            "the symbol '", symbol,
            "' is that of a library function which the program calls"));
      }
      module.getFunction(kKernelPrefix + symbol)->setName(symbol);
    }
  }
  return absl::OkStatus();
}

void SetAttributes(llvm::Module& module, const target::Target& target,
                   std::span<const LoweredFunction> functions) {
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    function.setLinkage(llvm::GlobalValue::InternalLinkage);
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
  for (llvm::GlobalVariable& variable : module.globals()) {
    if (!variable.isDeclaration() && !variable.hasAppendingLinkage()) {
      variable.setLinkage(llvm::GlobalValue::InternalLinkage);
    }
  }
  for (const LoweredFunction& kernel : functions) {
    for (const std::string& symbol : ExportedSymbols(kernel)) {
      module.getFunction(symbol)->setLinkage(
          llvm::GlobalValue::ExternalLinkage);
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

absl::StatusOr<std::unique_ptr<llvm::Module>> BuildModule(
    std::span<const LoweredFunction> functions, const Options& options,
    bool optimized, llvm::LLVMContext& context, llvm::TargetMachine& machine) {
  auto module = std::make_unique<llvm::Module>("tilefarm", context);
  module->setTargetTriple(options.target.triple);
  module->setDataLayout(machine.createDataLayout());
  module->setPICLevel(llvm::PICLevel::BigPIC);
  const bool half_hardware =
      options.target.kind == "x86-64"
          ? HasFeature(machine, "f16c") || HasFeature(machine, "avx512f")
          : options.target.kind == "aarch64";
  Emitter emitter(*module, options, half_hardware);
  for (const LoweredFunction& kernel : functions) {
    const std::string name = kKernelPrefix + kernel.symbol;
    if (kernel.packed.empty()) {
      TF_RETURN_IF_ERROR(emitter.EmitFunction(*kernel.function, name));
    } else {
      TF_RETURN_IF_ERROR(emitter.EmitPacked(kernel, name));
    }
  }
  TF_RETURN_IF_ERROR(VerifyModule(*module, "as emitted"));
  if (!optimized) {
    TF_RETURN_IF_ERROR(ExportKernels(*module, functions));
    return module;
  }
  TF_RETURN_IF_ERROR(LinkRuntime(*module, options.target.triple));
  TF_RETURN_IF_ERROR(ExportKernels(*module, functions));
  SetAttributes(*module, options.target, functions);
  TF_RETURN_IF_ERROR(VerifyModule(*module, "with the runtime"));
  Optimize(*module, machine, options.reference);
  return module;
}

absl::StatusOr<std::string> EmitFile(std::span<const LoweredFunction> functions,
                                     const Options& options,
                                     llvm::CodeGenFileType type) {
  TF_ASSIGN_OR_RETURN(llvm::TargetMachine * machine,
                      GetTargetMachine(options.target));
  llvm::LLVMContext context;
  TF_ASSIGN_OR_RETURN(
      std::unique_ptr<llvm::Module> module,
      BuildModule(functions, options, /*optimized=*/true, context, *machine));
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, type)) {
    return absl::InternalError("LLVM cannot emit this file type");
  }
  passes.run(*module);
  return std::string(bytes.data(), bytes.size());
}

}  // namespace

std::vector<std::string> ExportedSymbols(const LoweredFunction& function) {
  std::vector<std::string> symbols = {function.symbol};
  if (!function.packed.empty()) {
    for (const char* suffix : {"_packed_bytes", "_pack", "_packed"}) {
      symbols.push_back(function.symbol + suffix);
    }
  }
  return symbols;
}

absl::StatusOr<std::string> EmitObject(
    std::span<const LoweredFunction> functions, const Options& options) {
  return EmitFile(functions, options, llvm::CodeGenFileType::ObjectFile);
}

absl::StatusOr<std::string> EmitAssembly(
    std::span<const LoweredFunction> functions, const Options& options) {
  return EmitFile(functions, options, llvm::CodeGenFileType::AssemblyFile);
}

absl::StatusOr<std::string> EmitLlvmIr(
    std::span<const LoweredFunction> functions, const Options& options,
    bool optimized) {
  TF_ASSIGN_OR_RETURN(llvm::TargetMachine * machine,
                      GetTargetMachine(options.target));
  llvm::LLVMContext context;
  TF_ASSIGN_OR_RETURN(
      std::unique_ptr<llvm::Module> module,
      BuildModule(functions, options, optimized, context, *machine));
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, nullptr);
  return text;
}

std::string LlvmVersion() { return LLVM_VERSION_STRING; }

}  // namespace tilefarm::codegen
