// Rules that every program obeys, whatever made it.
#ifndef TILEFARM_COMPILER_IR_VERIFIER_H_
#define TILEFARM_COMPILER_IR_VERIFIER_H_

#include "absl/status/status.h"
#include "compiler/ir/limits.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::ir {

// InvalidArgument naming block, buffer and reason: a variable used outside its
// scope, an undeclared buffer, wrong rank or dtype, a reduce block without
// reduce axes, init without a reduce axis, a parameter bound twice, limits.
// Accesses that cannot be proven in bounds are found by lowering, which guards
// or rejects them.
absl::Status Verify(const PrimFunc& function, const Limits& limits = {});
absl::Status Verify(const IRModule& module, const Limits& limits = {});

// The rules about scopes, dtypes and ranks alone, for programs in any form that
// lowering makes: copies of code pass the limits of what people write.
absl::Status VerifyScopes(const PrimFunc& function);

// InvalidArgument where the buffer's rank, extents or bytes are beyond the
// limits; `num_elements` of one that is within them does not overflow.
// Only parameters may have strides and an offset.
absl::Status CheckBufferSize(const BufferNode& buffer,
                             const Limits& limits = {}, bool parameter = false);

// Whether schedules and lowering verify what every single step makes: in debug
// builds, and where the environment has TILEFARM_VERIFY=1, as tests have it.
bool VerifiesEveryStep();

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_VERIFIER_H_
