// The parts of a conjunction.
#ifndef TILEFARM_COMPILER_ARITH_CONJUNCTS_H_
#define TILEFARM_COMPILER_ARITH_CONJUNCTS_H_

#include <vector>

#include "compiler/ir/expr.h"

namespace tilefarm::arith {

// `a and (b and c)` as {a, b, c}: conditions that all hold where the whole one
// does, from left to right. Anything else is its own only part; the constant
// true has none.
std::vector<ir::Expr> Conjuncts(const ir::Expr& condition);

}  // namespace tilefarm::arith

#endif  // TILEFARM_COMPILER_ARITH_CONJUNCTS_H_
