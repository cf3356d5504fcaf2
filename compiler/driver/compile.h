// Program text in, deployable library out: what tunec, tune-builder and the
// tests call.
#ifndef TILEFARM_COMPILER_DRIVER_COMPILE_H_
#define TILEFARM_COMPILER_DRIVER_COMPILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"

namespace tilefarm::driver {

struct CompileOptions {
  target::Target target;
  // Name of the one function's symbol; empty: the function's own
  // (global_symbol or name), "main" becoming "tilefarm_main".
  std::string symbol;
};

struct Artifact {
  std::string shared_object;         // ELF bytes
  std::string header;                // C header text
  std::vector<std::string> symbols;  // one a function
  // By function: the parameters with SYMBOL_pack; where there are any, the
  // artifact has SYMBOL_packed and SYMBOL_packed_bytes too (lower_function.h).
  std::vector<std::vector<int>> packed_parameters;
  std::string code_digest;  // SHA-256 of code, constants and symbol names
};

// Compiles every function exactly as scheduled. Byte-deterministic: the same
// input gives the same artifact. Thread-safe but serialised inside (LLD).
// InvalidArgument: an access that cannot be proven in bounds, an unsupported
// construct; Internal: LLVM rejected our code.
absl::StatusOr<Artifact> Compile(const ir::IRModule& module,
                                 const CompileOptions& options);

// LLVM's version and our code-generation epoch: "llvm-19.1.7+tf1".
std::string Fingerprint();

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_COMPILE_H_
