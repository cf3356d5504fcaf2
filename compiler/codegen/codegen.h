// Lowered functions -> machine code, by LLVM.
//
//   lowered loops --Emitter--> LLVM IR --passes--> object code --+ runtime
//
// LLVM's loop vectoriser, SLP vectoriser and unroller are off, since the
// schedule controls this. Floats obey IEEE 754, except that multiply and add
// may be contracted. Each call has its own LLVM context, so calls from several
// threads do not interfere; target machines are cached per thread.
#ifndef TILEFARM_COMPILER_CODEGEN_CODEGEN_H_
#define TILEFARM_COMPILER_CODEGEN_CODEGEN_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"

namespace tilefarm::codegen {

// A layout-free parameter of a function (lower/split_prepack.h).
struct PackedParameter {
  int parameter = 0;
  int64_t source_bytes = 0;  // in the program's layout
  int64_t bytes = 0;         // of its packed form
  ir::PrimFuncPtr pack;      // lowered (source, packed); null: a copy
};

// A function in lowered form (lower/pipeline.h) and the symbol it exports:
//   int SYMBOL(void* buffer0, void* buffer1, ...)
// If it has layout-free parameters, `function` takes them packed, and the
// artifact exports:
//   size_t SYMBOL_packed_bytes(int parameter)
//   int SYMBOL_pack(int parameter, const void* source, void* packed)
//   int SYMBOL_packed(void* buffer0, ...)  `function`
//   int SYMBOL(void* buffer0, ...)         packs into workspace, then as above
struct LoweredFunction {
  ir::PrimFuncPtr function;
  std::string symbol;
  std::vector<PackedParameter> packed = {};
};

// Every symbol that the function exports; `symbol` comes first.
std::vector<std::string> ExportedSymbols(const LoweredFunction& function);

struct Options {
  target::Target target;
  // The kernels are visible to other objects of the same artifact only.
  bool hidden = false;
};

// An ELF object file that exports only these symbols. InvalidArgument: the
// target does not support the code, or it is not in lowered form. Internal:
// LLVM rejected the generated IR.
absl::StatusOr<std::string> EmitObject(
    std::span<const LoweredFunction> functions, const Options& options);
// The same module as assembly text; of a GPU the kernels alone, as PTX.
absl::StatusOr<std::string> EmitAssembly(
    std::span<const LoweredFunction> functions, const Options& options);
// The same module as LLVM IR text: as emitted, or after optimisation.
absl::StatusOr<std::string> EmitLlvmIr(
    std::span<const LoweredFunction> functions, const Options& options,
    bool optimized);

// For example "19.1.7".
std::string LlvmVersion();

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_CODEGEN_H_
