#include "compiler/codegen/runtime_objects.h"

#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "compiler/codegen/embedded_module.h"
#include "compiler/codegen/optimize.h"
#include "compiler/codegen/target_machine.h"
#include "compiler/runtime/embedded.h"

namespace tilefarm::codegen {
namespace {

absl::StatusOr<std::string> Compile(std::string_view bitcode,
                                    const target::Target& target) {
  TF_ASSIGN_OR_RETURN(llvm::TargetMachine * machine, GetTargetMachine(target));
  llvm::LLVMContext context;
  TF_ASSIGN_OR_RETURN(const std::unique_ptr<llvm::Module> parsed,
                      ParseEmbedded(bitcode, context));
  llvm::Module& module = *parsed;
  module.setDataLayout(machine->createDataLayout());
  if (llvm::NamedMDNode* ident = module.getNamedMetadata("llvm.ident")) {
    ident->eraseFromParent();
  }
  SetTargetAttributes(module, target);
  for (llvm::GlobalValue& value : module.global_values()) {
    if (!value.isDeclaration() && !value.hasLocalLinkage() &&
        !value.hasAppendingLinkage()) {
      value.setVisibility(llvm::GlobalValue::HiddenVisibility);
    }
  }
  Optimize(module, *machine);
  return EmitCode(module, *machine, llvm::CodeGenFileType::ObjectFile);
}

Mutex objects_mutex;

}  // namespace

absl::StatusOr<const std::vector<std::string>*> RuntimeObjects(
    const target::Target& target, bool with_gpu) {
  static auto* made ABSL_GUARDED_BY(objects_mutex) =
      new std::map<std::string, std::unique_ptr<std::vector<std::string>>>;
  const std::string key =
      absl::StrCat(target.triple, "|", target.cpu, "|", target.vector_bits, "|",
                   target.LlvmFeatures(), with_gpu ? "|gpu" : "");
  MutexLock lock(objects_mutex);
  std::unique_ptr<std::vector<std::string>>& objects = (*made)[key];
  if (objects == nullptr) {
    std::vector<std::string_view> modules = runtime::Bitcode(target.triple);
    if (with_gpu) {
      const auto more = runtime::GpuBitcode(target.triple);
      modules.insert(modules.end(), more.begin(), more.end());
    }
    std::vector<std::string> list;
    for (std::string_view bitcode : modules) {
      TF_ASSIGN_OR_RETURN(std::string object, Compile(bitcode, target));
      list.push_back(std::move(object));
    }
    objects = std::make_unique<std::vector<std::string>>(std::move(list));
  }
  return objects.get();
}

}  // namespace tilefarm::codegen
