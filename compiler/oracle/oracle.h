// The oracle of verification: what a program computes, and how far a correct
// implementation may be from it, element by element.
//
//   program --translate--> LLVM IR --LLVM's O2--> shared object
//
// The translation takes the program as written. It shares no pass of lower/,
// no simplification of arith/ and no part of the code generator with the
// candidates that it judges; tests hold it to the interpreter. README.md says
// which value and which bound an expression gets.
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

// The one symbol of the artifact:
//
//   int tilefarm_oracle(void* const* buffers, void* const* bounds)
//
// `buffers` are the parameters, as the program's own function takes them.
// `bounds` has an entry a parameter: where `bounded` is true, room for one
// number an element, float64 for a parameter of float64 and float32 for others;
// elsewhere ignored. Returns 0, or 1 where there is no memory.
//
// After the call a correct implementation has every element within its bound of
// the one in `buffers`. Not-a-number and infinities have the bound 0: they must
// stand in the same places. An infinite bound says that the element cannot be
// judged, since what is computed for it depends on a comparison of rounded
// numbers that may fall either way.
inline constexpr char kSymbol[] = "tilefarm_oracle";

struct Artifact {
  std::string shared_object;
  // By parameter: it is written, and rounding reaches it. All other written
  // parameters are exact.
  std::vector<bool> bounded;
  // What it allocates while it runs.
  int64_t workspace_bytes = 0;
};

// InvalidArgument: what a program as written does not have (vectors, calls of
// libraries), or an intrinsic on a dtype that it is not defined for. Internal:
// LLVM rejects the translation.
absl::StatusOr<Artifact> Compile(const ir::PrimFunc& function,
                                 const target::Target& target);

}  // namespace tilefarm::oracle

#endif  // TILEFARM_COMPILER_ORACLE_ORACLE_H_
