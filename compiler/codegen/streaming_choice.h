// Where a loop that asks for streaming stores decides whether memory is
// aligned.
//
//   for tiles:                      for tiles:
//     sums of a tile                  sums of a tile
//     stores of a tile       ->       if (aligned) stores of a tile
//                                     else stores of a tile
//
// What computes then exists once: two copies of the whole loop would be twice
// the code to compile. Private; free of LLVM types.
#ifndef TILEFARM_COMPILER_CODEGEN_STREAMING_CHOICE_H_
#define TILEFARM_COMPILER_CODEGEN_STREAMING_CHOICE_H_

#include <cstdint>
#include <functional>

#include "compiler/ir/stmt.h"

namespace tilefarm::codegen {

// `body` with a choice by the variable `aligned` around each group of streaming
// stores; both sides are the same statement. `vectors` says how many whole
// vectors a store streams, 0 for one that does not. A choice stands around four
// of them at least, more code where need be. Null where two copies of the whole
// loop are better: they add little, or stores stand too far apart.
ir::Stmt ChooseAtStores(
    const ir::Stmt& body, const ir::Var& aligned,
    const std::function<int64_t(const ir::StoreNode&)>& vectors);

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_STREAMING_CHOICE_H_
