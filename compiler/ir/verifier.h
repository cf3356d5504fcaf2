// Rules for all programs, however they were made.
#ifndef TILEFARM_COMPILER_IR_VERIFIER_H_
#define TILEFARM_COMPILER_IR_VERIFIER_H_

#include "absl/status/status.h"
#include "compiler/ir/limits.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::ir {

// InvalidArgument naming block, buffer and reason: a variable used outside its
// scope, an undeclared buffer, wrong rank or dtype, a reduce block without
// reduce axes, init without a reduce axis, a parameter bound twice, an
// operation that only lowering makes (machine_op.h), limits. Accesses that
// cannot be proven in bounds are found by lowering, which guards or rejects
// them.
absl::Status Verify(const PrimFunc& function, const Limits& limits = {});
absl::Status Verify(const IRModule& module, const Limits& limits = {});

// Only the rules about scopes, dtypes and ranks, for programs in any form
// during lowering: copies of code may exceed the limits for input programs.
absl::Status VerifyScopes(const PrimFunc& function);

// InvalidArgument if the buffer's rank, extents or bytes exceed the limits;
// `num_elements` of a buffer within them does not overflow. Only parameters may
// have strides and an offset.
absl::Status CheckBufferSize(const BufferNode& buffer,
                             const Limits& limits = {}, bool parameter = false);

// Whether schedules and lowering verify the result of every step: in debug
// builds, and if TILEFARM_VERIFY=1 is set in the environment, as in tests.
bool VerifiesEveryStep();

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_VERIFIER_H_
