// Identities of commutative, associative operations: combined with one, every
// value stays what it is.
#ifndef TILEFARM_COMPILER_IR_IDENTITY_H_
#define TILEFARM_COMPILER_IR_IDENTITY_H_

#include "compiler/ir/expr.h"

namespace tilefarm::ir {

// Whether `value` is a constant that is the identity of `op`. In min and max of
// floats the lowest (highest) finite value counts as one beside infinity.
bool IsIdentity(BinaryOp op, const Expr& value);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_IDENTITY_H_
