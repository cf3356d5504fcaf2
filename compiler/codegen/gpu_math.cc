#include "compiler/codegen/gpu_math.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/runtime/embedded.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/MemoryBuffer.h"

namespace tilefarm::codegen {
namespace {

// As runtime/CMakeLists.txt takes them from libclc.
constexpr std::array<std::string_view, 21> kOfOne = {
    "acos",  "acosh", "asin", "asinh", "atan", "atanh", "cos",
    "cosh",  "erf",   "exp",  "exp10", "exp2", "expm1", "log",
    "log10", "log1p", "log2", "sin",   "sinh", "tan",   "tanh"};
constexpr std::array<std::string_view, 2> kOfTwo = {"atan2", "pow"};

// "sinf" -> "_Z3sinf", "pow" -> "_Z3powdd"; empty: there is none.
std::string NameInLibrary(std::string_view name) {
  for (const char* type : {"d", "f"}) {
    std::string_view base = name;
    if (*type == 'f' && !base.empty()) {
      if (base.back() != 'f') continue;
      base.remove_suffix(1);
    }
    const auto is_one_of = [&](const auto& names) {
      return std::find(names.begin(), names.end(), base) != names.end();
    };
    const bool has_two = is_one_of(kOfTwo);
    if (!has_two && !is_one_of(kOfOne)) continue;
    return absl::StrCat("_Z", base.size(), std::string(base), type,
                        has_two ? type : "");
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
  std::vector<std::string> missing;
  bool calls = false;
  for (llvm::Function& function : module) {
    if (!function.isDeclaration() || function.isIntrinsic() ||
        function.use_empty()) {
      continue;
    }
    const std::string name = NameInLibrary(function.getName());
    if (name.empty()) missing.push_back(function.getName().str());
    function.setName(name);
    calls = true;
  }
  if (!missing.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "code generation: a GPU has no function ", absl::StrJoin(missing, ", "),
        ", which the program calls"));
  }
  if (!calls) return absl::OkStatus();
  // Those of the emitter that call them, for elements outside of what it
  // computes itself.
  for (llvm::Function& function : module) {
    if (!function.hasLocalLinkage()) continue;
    function.removeFnAttr(llvm::Attribute::NoInline);
    function.addFnAttr(llvm::Attribute::AlwaysInline);
  }
  const std::string_view bitcode = runtime::GpuMathBitcode();
  auto library = llvm::parseBitcodeFile(
      llvm::MemoryBufferRef(llvm::StringRef(bitcode.data(), bitcode.size()),
                            "libclc"),
      module.getContext());
  if (!library) {
    return absl::InternalError(
        absl::StrCat("the embedded functions of GPUs do not load: ",
                     llvm::toString(library.takeError())));
  }
  (*library)->setTargetTriple(module.getTargetTriple());
  (*library)->setDataLayout(module.getDataLayout());
  if (llvm::Linker::linkModules(module, std::move(*library),
                                llvm::Linker::LinkOnlyNeeded, MakeInline)) {
    return absl::InternalError("the functions of GPUs do not link");
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::codegen
