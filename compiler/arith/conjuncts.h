// The parts of a conjunction.
#ifndef TILEFARM_COMPILER_ARITH_CONJUNCTS_H_
#define TILEFARM_COMPILER_ARITH_CONJUNCTS_H_

#include <vector>

#include "compiler/ir/expr.h"

namespace tilefarm::arith {

// Splits `a and (b and c)` into {a, b, c}, from left to right. Any other
// expression is its own only part; the constant true has none.
std::vector<ir::Expr> Conjuncts(const ir::Expr& condition);

}  // namespace tilefarm::arith

#endif  // TILEFARM_COMPILER_ARITH_CONJUNCTS_H_
