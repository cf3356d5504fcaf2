#include "compiler/driver/compile.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/codegen/c_header.h"
#include "compiler/codegen/c_library.h"
#include "compiler/codegen/codegen.h"
#include "compiler/codegen/function_info.h"
#include "compiler/codegen/js_loader.h"
#include "compiler/codegen/link.h"
#include "compiler/driver/emit_objects.h"
#include "compiler/driver/lower_function.h"

namespace tilefarm::driver {
namespace {

// Must be increased when the generated code of any program changes: records of
// other epochs are not used as measurements of the current code.
// fingerprint_guard_test fails if this was forgotten.
constexpr int kCodeGenerationEpoch = 30;

std::string SymbolOf(const ir::PrimFunc& function) {
  std::string symbol = function.name;
  const auto it = function.attrs.find("global_symbol");
  if (it != function.attrs.end() && it->second.AsString() != nullptr) {
    symbol = *it->second.AsString();
  }
  return symbol == "main" ? "tilefarm_main" : symbol;
}

// All functions before lowering, with their symbols.
absl::StatusOr<std::vector<codegen::LoweredFunction>> NameFunctions(
    const ir::IRModule& module, const CompileOptions& options) {
  if (module.functions.empty()) {
    return absl::InvalidArgumentError("the module has no function");
  }
  if (!options.symbol.empty() && module.functions.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a symbol names a single function; this module has ",
                     module.functions.size()));
  }
  std::vector<codegen::LoweredFunction> named;
  std::set<std::string> seen;
  for (const ir::PrimFuncPtr& function : module.functions) {
    std::string symbol =
        options.symbol.empty() ? SymbolOf(*function) : options.symbol;
    TF_RETURN_IF_ERROR(CheckSymbol(symbol));
    if (!seen.insert(symbol).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two functions have the symbol '", symbol, "'"));
    }
    named.push_back({function, std::move(symbol)});
  }
  return named;
}

}  // namespace

absl::Status CheckSymbol(const std::string& symbol) {
  const bool identifier =
      !symbol.empty() && !std::isdigit(static_cast<unsigned char>(symbol[0])) &&
      std::all_of(symbol.begin(), symbol.end(),
                  [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  if (!identifier) {
    return absl::InvalidArgumentError(
        absl::StrCat("the symbol '", symbol, "' is no C identifier"));
  }
  const auto& names = codegen::SystemLibraries()[0].functions;
  if (std::find(names.begin(), names.end(), symbol) != names.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the symbol '", symbol,
                     "' is a function of the C library; choose "
                     "another"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Artifact> Compile(const ir::IRModule& module,
                                 const CompileOptions& options) {
  TF_ASSIGN_OR_RETURN(const std::vector<codegen::LoweredFunction> named,
                      NameFunctions(module, options));
  std::vector<codegen::LoweredFunction> lowered;
  std::vector<codegen::LoweredFunction> described = named;
  std::vector<codegen::Signature> signatures;
  Artifact artifact;
  std::set<std::string> exported;
  for (size_t i = 0; i < named.size(); ++i) {
    const codegen::LoweredFunction& function = named[i];
    TF_ASSIGN_OR_RETURN(
        codegen::LoweredFunction made,
        LowerFunction(*function.function, function.symbol, options.target));
    described[i].packed = made.packed;
    lowered.push_back(std::move(made));
    artifact.symbols.push_back(function.symbol);
    std::vector<int>& packed = artifact.packed_parameters.emplace_back();
    for (const codegen::PackedParameter& one : lowered.back().packed) {
      packed.push_back(one.parameter);
    }
    signatures.push_back(
        codegen::SignatureOf(function, lowered.back(), options.target));
    std::vector<std::string> symbols = codegen::ExportedSymbols(lowered.back());
    symbols.push_back(codegen::InfoSymbol(function.symbol));
    for (const std::string& symbol : symbols) {
      if (!exported.insert(symbol).second) {
        return absl::InvalidArgumentError(
            absl::StrCat("two functions have the symbol '", symbol, "'"));
      }
    }
  }
  TF_ASSIGN_OR_RETURN(std::vector<std::string> objects,
                      EmitObjects(lowered, {options.target}));
  // Of a WebAssembly module its loader knows the signatures.
  if (!options.target.is_webassembly()) {
    TF_ASSIGN_OR_RETURN(objects.emplace_back(),
                        codegen::EmitInfoObject(signatures, options.target));
  }
  const target::Target host = options.target.HostPart();
  TF_ASSIGN_OR_RETURN(artifact.shared_object,
                      codegen::LinkSharedObject(objects, host));
  if (options.archive) {
    TF_ASSIGN_OR_RETURN(artifact.archive, codegen::LinkArchive(objects, host));
  }
  TF_ASSIGN_OR_RETURN(artifact.code_digest,
                      codegen::CodeDigest(artifact.shared_object));
  artifact.header = options.target.is_webassembly()
                        ? codegen::JsKernelLoader(described)
                        : codegen::CHeader(signatures, options.target);
  return artifact;
}

std::string Fingerprint() {
  return absl::StrCat("llvm-", codegen::LlvmVersion(), "+tf",
                      kCodeGenerationEpoch);
}

}  // namespace tilefarm::driver
