// The names of arith that most passes use.
#ifndef TILEFARM_COMPILER_LOWER_INDEX_MATH_H_
#define TILEFARM_COMPILER_LOWER_INDEX_MATH_H_

#include "compiler/arith/index_math.h"

namespace tilefarm::lower {

using arith::IndexMath;
using arith::Interval;
using arith::Linear;

inline bool SameExpr(const ir::Expr& a, const ir::Expr& b) {
  return arith::ExprEqual(a, b);
}

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_INDEX_MATH_H_
