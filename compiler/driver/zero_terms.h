// Sums of products of which a remainder makes most terms zero, as transposed
// convolutions are written, computed without those terms and yet as written.
//
//   for h, c, r, k: C[h, c] += if_then_else((h + r) % 2 == 0, A[..], 0) * W[r,
//   k, c]
//
//   ->
//   for h, c, r, k: C_dense[h, c] += the terms that skip_zeros keeps
//   for r, k, c:    C_taps[r, c] += 0 * W[r, k, c]        0, or not a number
//   for h, r, c:    C[h, c] = C_dense[h, c], += if_then_else((h + r) % 2 == 0,
//                                                            0, C_taps[r, c])
//
// skip_zeros alone leaves out `0 * y`, which shows where y is infinite or not a
// number (ir/float_rule.h). What it leaves out does not depend on the elements
// of the output, but for which of them leave it out.
#ifndef TILEFARM_COMPILER_DRIVER_ZERO_TERMS_H_
#define TILEFARM_COMPILER_DRIVER_ZERO_TERMS_H_

#include "compiler/ir/stmt.h"

namespace tilefarm::driver {

// The function with its sums of this kind written so: another program for the
// same workload, which computes the same but for the order of sums and the sign
// of zeros. `function` itself where there are none, or where a schedule may
// leave out the terms anyway.
ir::PrimFuncPtr WithZeroTermsApart(const ir::PrimFuncPtr& function);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_ZERO_TERMS_H_
