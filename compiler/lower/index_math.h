// The names of arith that most passes use.
#ifndef TILEFARM_COMPILER_LOWER_INDEX_MATH_H_
#define TILEFARM_COMPILER_LOWER_INDEX_MATH_H_

#include "compiler/arith/index_math.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::lower {

using arith::IndexMath;
using arith::Interval;
using arith::Linear;

inline bool SameExpr(const ir::Expr& a, const ir::Expr& b) {
  return arith::ExprEqual(a, b);
}

// Binds the loop's variable to its range, until an earlier mark is restored.
inline void BindLoop(IndexMath& math, const ir::ForNode& loop) {
  const Interval first = math.Bounds(loop.min);
  const Interval count = math.Bounds(loop.extent);
  if (first.bounded() && count.has_hi()) {
    math.Bind(loop.var.get(), first.lo, first.hi + count.hi - 1);
  }
}

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_INDEX_MATH_H_
