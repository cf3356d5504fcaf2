// Places the run-time choice, in a loop annotated for streaming stores, between
// aligned and unaligned memory.
//
//   for tiles:                      for tiles:
//     sums of a tile                  sums of a tile
//     stores of a tile       ->       if (aligned) stores of a tile
//                                     else stores of a tile
//
// The computation then exists once; two copies of the whole loop would double
// the code to compile. Private; free of LLVM types.
#ifndef TILEFARM_COMPILER_CODEGEN_STREAMING_CHOICE_H_
#define TILEFARM_COMPILER_CODEGEN_STREAMING_CHOICE_H_

#include <cstdint>
#include <functional>

#include "compiler/ir/stmt.h"

namespace tilefarm::codegen {

// `body` with a choice by the variable `aligned` around each group of streaming
// stores; both branches are the same statement. `vectors` returns how many
// whole vectors a store streams, 0 if it does not stream. A choice encloses at
// least four such vectors, and more code if necessary. Null if two copies of
// the whole loop are better, because they add little code or the stores are too
// far apart.
ir::Stmt ChooseAtStores(
    const ir::Stmt& body, const ir::Var& aligned,
    const std::function<int64_t(const ir::StoreNode&)>& vectors);

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_STREAMING_CHOICE_H_
