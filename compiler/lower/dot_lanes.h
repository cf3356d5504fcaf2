// Short sums of narrow products as dot-product instructions.
#ifndef TILEFARM_COMPILER_LOWER_DOT_LANES_H_
#define TILEFARM_COMPILER_LOWER_DOT_LANES_H_

#include "compiler/ir/stmt.h"
#include "compiler/lower/index_math.h"
#include "compiler/target/target.h"

namespace tilefarm::lower {

// The loop, annotated with ir::kDotProduct and with `body` in place of its own,
// as one statement:
//
//   for i in T.vectorized(16):
//     C[c + i] = C[c + i] + (A[a] * B[b + 4 * i] + ... + A[a + 3] * ...)
//   ->
//   C[ramp(c, 1, 16)] = T.dot_product(A[ramp(a, 1, 4)], B[ramp(b, 1, 64)],
//                                     C[ramp(c, 1, 16)])
//
// Null where the body has another form, its operands are not side by side, or
// the target has no such instruction; the loop is then vectorized as any other.
ir::Stmt DotLanes(IndexMath& math, const ir::ForNode& loop,
                  const ir::Stmt& body, const target::Target& target);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_DOT_LANES_H_
