// The reference of verification (DESIGN 3.4): the program as written, with
// float64 accumulators.
#ifndef TILEFARM_COMPILER_DRIVER_REFERENCE_H_
#define TILEFARM_COMPILER_DRIVER_REFERENCE_H_

#include "compiler/ir/stmt.h"

namespace tilefarm::driver {

// A program with the same parameters in which every floating-point buffer that
// a reduction accumulates into is kept in float64, and what is accumulated is
// computed in float64; other readers see it rounded to the buffer's own dtype:
//
//   C[i, j] = C[i, j] + A[i, k] * B[k, j]
//   ->  C64[i, j] = C64[i, j] + f64(A[i, k]) * f64(B[k, j])    ... at the end
//       C[i, j] = f32(C64[i, j])
//
// Every element accumulates in the program's own order. Where a plain nest
// allows it, the innermost spatial loop is moved inside the reduction loops,
// which does not change that order and lets LLVM vectorise.
ir::PrimFuncPtr MakeReference(const ir::PrimFunc& function);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_REFERENCE_H_
