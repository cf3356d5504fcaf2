// Identities of commutative, associative operations: combining one with a value
// gives that value.
#ifndef TILEFARM_COMPILER_IR_IDENTITY_H_
#define TILEFARM_COMPILER_IR_IDENTITY_H_

#include "compiler/ir/expr.h"

namespace tilefarm::ir {

// Whether `value` is a constant that is the identity of `op`. For min (max) of
// floats, the highest (lowest) finite value also counts, besides infinity.
bool IsIdentity(BinaryOp op, const Expr& value);

// The identity as a constant, infinities for min and max of floats; null for
// operations that have none here.
Expr IdentityOf(BinaryOp op, DataType type);

// The largest finite value of a type of floats.
double HighestFloat(DataType type);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_IDENTITY_H_
