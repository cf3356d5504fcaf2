#include "compiler/codegen/gpu_math.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/runtime/embedded.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/MemoryBuffer.h"

namespace tilefarm::codegen {
namespace {

absl::StatusOr<std::unique_ptr<llvm::Module>> ParseLibrary(
    llvm::LLVMContext& context) {
  const std::string_view bitcode = runtime::GpuMathBitcode();
  auto parsed = llvm::parseBitcodeFile(
      llvm::MemoryBufferRef(llvm::StringRef(bitcode.data(), bitcode.size()),
                            "gpu_math"),
      context);
  if (!parsed) {
    return absl::InternalError(
        absl::StrCat("the embedded functions of GPUs do not load: ",
                     llvm::toString(parsed.takeError())));
  }
  return std::move(*parsed);
}

// "sinf" -> "_Z3sinf", "pow" -> "_Z3powdd"; empty: there is none.
std::string NameInLibrary(const llvm::Module& library, llvm::StringRef name) {
  for (const char* type : {"d", "f"}) {
    llvm::StringRef base = name;
    if (*type == 'f' && !base.consume_back("f")) continue;
    for (const char* second : {"", type}) {
      const std::string mangled =
          absl::StrCat("_Z", base.size(), base.str(), type, second);
      if (library.getFunction(mangled) != nullptr) return mangled;
    }
  }
  return "";
}

// Called with the names of what has become part of the module.
void MakeInline(llvm::Module& module, const llvm::StringSet<>& names) {
  for (const auto& name : names) {
    llvm::GlobalValue* value = module.getNamedValue(name.getKey());
    if (value == nullptr || value->isDeclaration()) continue;
    value->setLinkage(llvm::GlobalValue::InternalLinkage);
    if (auto* function = llvm::dyn_cast<llvm::Function>(value)) {
      function->setAttributes({});
      function->addFnAttr(llvm::Attribute::AlwaysInline);
    }
  }
}

}  // namespace

absl::Status LinkGpuMath(llvm::Module& module) {
  std::vector<llvm::Function*> called;
  for (llvm::Function& function : module) {
    if (function.isDeclaration() && !function.isIntrinsic() &&
        !function.use_empty()) {
      called.push_back(&function);
    }
  }
  if (called.empty()) return absl::OkStatus();
  TF_ASSIGN_OR_RETURN(std::unique_ptr<llvm::Module> library,
                      ParseLibrary(module.getContext()));
  std::vector<std::string> missing;
  for (llvm::Function* function : called) {
    const std::string name = NameInLibrary(*library, function->getName());
    if (name.empty()) missing.push_back(function->getName().str());
    function->setName(name);
  }
  if (!missing.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "code generation: a GPU has no function ", absl::StrJoin(missing, ", "),
        ", which the program calls"));
  }
  // Those of the emitter that call them, for elements outside of what it
  // computes itself.
  for (llvm::Function& function : module) {
    if (!function.hasLocalLinkage()) continue;
    function.removeFnAttr(llvm::Attribute::NoInline);
    function.addFnAttr(llvm::Attribute::AlwaysInline);
  }
  library->setTargetTriple(module.getTargetTriple());
  library->setDataLayout(module.getDataLayout());
  if (llvm::Linker::linkModules(module, std::move(library),
                                llvm::Linker::LinkOnlyNeeded, MakeInline)) {
    return absl::InternalError("the functions of GPUs do not link");
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::codegen
