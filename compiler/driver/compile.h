// Compiles program text to a deployable library; called by tunec, tune-builder
// and tests.
#ifndef TILEFARM_COMPILER_DRIVER_COMPILE_H_
#define TILEFARM_COMPILER_DRIVER_COMPILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"

namespace tilefarm::driver {

struct CompileOptions {
  target::Target target;
  // The symbol of the only function; empty: the function's own (global_symbol
  // or name), where "main" becomes "tilefarm_main".
  std::string symbol;
  bool archive = false;  // also make Artifact::archive
};

struct Artifact {
  std::string shared_object;  // ELF bytes; for wasm32 those of a module
  std::string archive;        // the same as a static archive, if asked for
  // C header text; for wasm32 JavaScript that loads the module.
  std::string header;
  std::vector<std::string> symbols;  // one per function
  // For each function, the parameters with SYMBOL_pack; if there are any, the
  // artifact also has SYMBOL_packed and SYMBOL_packed_bytes (lower_function.h).
  std::vector<std::vector<int>> packed_parameters;
  std::string code_digest;  // SHA-256 of code, constants and symbol names
};

// Compiles every function exactly as scheduled. Deterministic: the same input
// gives the same bytes. Thread-safe, but calls are serialised (LLD).
// InvalidArgument: an access that cannot be proven in bounds, or an unsupported
// construct. Internal: LLVM rejected the generated code.
absl::StatusOr<Artifact> Compile(const ir::IRModule& module,
                                 const CompileOptions& options);

// InvalidArgument: the text is no C identifier, or a function of the C library.
absl::Status CheckSymbol(const std::string& symbol);

// LLVM's version and the code-generation epoch: "llvm-19.1.7+tf1".
std::string Fingerprint();

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_COMPILE_H_
