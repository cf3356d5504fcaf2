// Vectorises short reductions.
#ifndef TILEFARM_COMPILER_LOWER_REDUCE_LANES_H_
#define TILEFARM_COMPILER_LOWER_REDUCE_LANES_H_

#include "compiler/ir/stmt.h"
#include "compiler/lower/index_math.h"
#include "compiler/target/target.h"

namespace tilefarm::lower {

// The loop, annotated with ir::kReduceLanes and with `body` as its body, as one
// statement that combines vectors pairwise, then their lanes. Null if the body
// is not a reduction into one element or is not a multiple of vectors.
ir::Stmt ReduceLanes(IndexMath& math, const ir::ForNode& loop,
                     const ir::Stmt& body, const target::Target& target);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_REDUCE_LANES_H_
