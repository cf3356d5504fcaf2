// Products of small matrices as instructions of a matrix unit (AMX).
#ifndef TILEFARM_COMPILER_LOWER_MATRIX_TILES_H_
#define TILEFARM_COMPILER_LOWER_MATRIX_TILES_H_

#include "compiler/ir/stmt.h"
#include "compiler/lower/index_math.h"
#include "compiler/target/target.h"

namespace tilefarm::lower {

// The loop, annotated with ir::kMatrixProduct, as one statement:
//
//   for i, j, k, g in (16, 16, 16, 4):
//     C[c + 16 * i + j] += A[a + lda * i + 4 * k + g] * B[b + ldb * k + 4 * j +
//     g]
//   ->
//   C[ramp(c, 1, 256)] =
//       T.tile_product(A[a], lda, B[b], ldb, C[ramp(c, 1, 256)])
//
// Null where the nest has another form or the target has no such instruction;
// its loops are then taken as they stand.
ir::Stmt MatrixTiles(IndexMath& math, const ir::ForNode& loop,
                     const target::Target& target);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_MATRIX_TILES_H_
