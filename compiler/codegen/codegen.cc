#include "compiler/codegen/codegen.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/codegen/device_module.h"
#include "compiler/codegen/emitter.h"
#include "compiler/codegen/optimize.h"
#include "compiler/codegen/target_machine.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

namespace tilefarm::codegen {
namespace {

// Kernels have a prefix until everything is linked, so that a kernel named
// "exp" is not confused with the library's function.
constexpr char kKernelPrefix[] = "tf.kernel.";

// The runtime functions that the module calls are linked with it later
// (link.h). They clean up when the artifact is unloaded.
void UseRuntime(llvm::Module& module) {
  const std::pair<const char*, const char*> cleanups[] = {
      {"tf_rt_parallel_for", "tf_rt_parallel_shutdown"},
      {"tf_rt_workspace_acquire", "tf_rt_workspace_shutdown"}};
  // Engines drop a module with all of its memory.
  const bool unloads = !llvm::Triple(module.getTargetTriple()).isWasm();
  for (const auto& [function, cleanup] : cleanups) {
    if (!unloads || module.getFunction(function) == nullptr) continue;
    llvm::FunctionCallee callee = module.getOrInsertFunction(
        cleanup, llvm::Type::getVoidTy(module.getContext()));
    llvm::appendToGlobalDtors(
        module, llvm::cast<llvm::Function>(callee.getCallee()), 65535);
  }
  for (llvm::Function& function : module) {
    if (function.getName().starts_with("tf_rt_")) {
      function.setVisibility(llvm::GlobalValue::HiddenVisibility);
      function.setDoesNotThrow();
    }
    if (function.getName() == "tf_rt_workspace_release") {
      function.addParamAttr(0, llvm::Attribute::NoCapture);
    }
  }
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

// Only the kernels' symbols are visible from outside.
void SetLinkage(llvm::Module& module,
                std::span<const LoweredFunction> functions, bool hidden) {
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) {
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
    }
  }
  for (llvm::GlobalVariable& variable : module.globals()) {
    if (!variable.isDeclaration() && !variable.hasAppendingLinkage()) {
      variable.setLinkage(llvm::GlobalValue::InternalLinkage);
    }
  }
  for (const LoweredFunction& kernel : functions) {
    for (const std::string& symbol : ExportedSymbols(kernel)) {
      llvm::Function* exported = module.getFunction(symbol);
      exported->setLinkage(llvm::GlobalValue::ExternalLinkage);
      if (hidden) {
        exported->setVisibility(llvm::GlobalValue::HiddenVisibility);
      }
    }
  }
}

absl::StatusOr<std::unique_ptr<llvm::Module>> BuildModule(
    std::span<const LoweredFunction> functions, const Options& options,
    bool optimized, llvm::LLVMContext& context, llvm::TargetMachine& machine) {
  auto module = std::make_unique<llvm::Module>("tilefarm", context);
  module->setTargetTriple(options.target.triple);
  module->setDataLayout(machine.createDataLayout());
  module->setPICLevel(llvm::PICLevel::BigPIC);
  Emitter emitter(*module, options);
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
  UseRuntime(*module);
  TF_RETURN_IF_ERROR(ExportKernels(*module, functions));
  SetTargetAttributes(*module, options.target);
  SetLinkage(*module, functions, options.hidden);
  Optimize(*module, machine);
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
  return EmitScheduledCode(*module, *machine, type);
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
  if (options.target.is_gpu()) {
    TF_ASSIGN_OR_RETURN(
        DeviceModule module,
        EmitDeviceModule(functions, options.target, DeviceCode::kAssembly));
    return std::move(module.code);
  }
  return EmitFile(functions, options, llvm::CodeGenFileType::AssemblyFile);
}

absl::StatusOr<std::string> EmitLlvmIr(
    std::span<const LoweredFunction> functions, const Options& options,
    bool optimized) {
  if (options.target.is_gpu()) {
    TF_ASSIGN_OR_RETURN(
        DeviceModule module,
        EmitDeviceModule(
            functions, options.target,
            optimized ? DeviceCode::kOptimizedLlvmIr : DeviceCode::kLlvmIr));
    return std::move(module.code);
  }
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
