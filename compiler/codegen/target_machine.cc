#include "compiler/codegen/target_machine.h"

#include <map>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/runtime/embedded.h"
#include "compiler/target/isa.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"

namespace tilefarm::codegen {

Mutex llvm_options_mutex;

namespace {

void InitializeLlvm() {
  static const bool done = [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmPrinters();
    llvm::InitializeAllAsmParsers();
    return true;
  }();
  (void)done;
}

// Addresses of shared and local memory have 32 bits in registers, too. A target
// machine reads the option when it is made.
void UseShortPointers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(llvm_options_mutex) {
  auto& options = llvm::cl::getRegisteredOptions();
  const auto short_pointers = options.find("nvptx-short-ptr");
  if (short_pointers != options.end()) {
    static_cast<llvm::cl::opt<bool>*>(short_pointers->second)->setValue(true);
  }
}

}  // namespace

absl::StatusOr<llvm::TargetMachine*> GetTargetMachine(
    const target::Target& target) {
  if (!target.is_gpu() && runtime::Archive(target.triple).empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("code generation for target kind '", target.kind,
                     "' is not part of this build"));
  }
  InitializeLlvm();
  thread_local std::map<std::string, std::unique_ptr<llvm::TargetMachine>>
      machines;
  const std::string features = target.LlvmFeatures();
  auto& machine =
      machines[absl::StrCat(target.triple, "|", target.cpu, "|", features)];
  if (machine == nullptr) {
    std::string error;
    const llvm::Target* llvm_target =
        llvm::TargetRegistry::lookupTarget(target.triple, error);
    if (llvm_target == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("LLVM has no target ", target.triple, ": ", error));
    }
    llvm::TargetOptions options;
    options.MCOptions.AsmVerbose = true;
    // By default, destructors would go to .dtors, which is not run.
    options.UseInitArray = true;
    if (const target::Kind* kind = target::FindKind(target.kind)) {
      options.MCOptions.ABIName = std::string(kind->abi);
    }
    MutexLock lock(llvm_options_mutex);
    UseShortPointers();
    machine.reset(llvm_target->createTargetMachine(
        target.triple, target.cpu, features, options,
        target.is_webassembly() ? llvm::Reloc::Static : llvm::Reloc::PIC_,
        llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
    if (machine == nullptr) {
      return absl::InternalError(
          absl::StrCat("LLVM made no target machine for ", target.Key()));
    }
  }
  return machine.get();
}

}  // namespace tilefarm::codegen
