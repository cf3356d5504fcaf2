// The oracle of verification: the result of a program and, for each element,
// the bound of a correct implementation's distance from it.
//
//   program --translate--> LLVM IR --LLVM's O2--> shared object
//
// The translation takes the unscheduled program. It shares no pass of lower/,
// no simplification of arith/ and no part of the code generator with the
// candidates that it verifies; tests compare it with the interpreter. README.md
// defines the value and the bound of each expression.
//
// Thread-safe; linking is serialised (codegen/link.h).
#ifndef TILEFARM_COMPILER_ORACLE_ORACLE_H_
#define TILEFARM_COMPILER_ORACLE_ORACLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"

namespace tilefarm::oracle {

// The only symbol of the artifact:
//
//   int tilefarm_oracle(void* const* buffers, void* const* bounds)
//
// `buffers` are the parameters of the program's function. `bounds` has one
// entry per parameter: if `bounded` is true, an array with one number per
// element, float64 for a parameter of float64 and float32 for others;
// otherwise ignored. Returns 0, or 1 if memory is exhausted.
//
// A correct implementation's elements are within their bounds of those in
// `buffers`. NaN and infinities have the bound 0: they must be at the same
// positions. An infinite bound means that the element cannot be judged, since
// its computation depends on a comparison of rounded values that may turn out
// either way.
inline constexpr char kSymbol[] = "tilefarm_oracle";

struct Artifact {
  std::string shared_object;
  // For each parameter, whether it is written and affected by rounding. All
  // other written parameters are exact.
  std::vector<bool> bounded;
  // The memory that it allocates while it runs.
  int64_t workspace_bytes = 0;
};

// InvalidArgument: constructs that an unscheduled program does not have
// (vectors, calls of libraries), or an intrinsic on a dtype that it is not
// defined for. Internal: LLVM rejected the translation.
absl::StatusOr<Artifact> Compile(const ir::PrimFunc& function,
                                 const target::Target& target);

}  // namespace tilefarm::oracle

#endif  // TILEFARM_COMPILER_ORACLE_ORACLE_H_
