// The names of arith, and of what is built on them, that most passes use.
#ifndef TILEFARM_COMPILER_LOWER_INDEX_MATH_H_
#define TILEFARM_COMPILER_LOWER_INDEX_MATH_H_

#include "compiler/arith/index_math.h"
#include "compiler/arith/scaled_sum.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::lower {

using arith::IndexMath;
using arith::Interval;
using arith::IsElementOf;
using arith::Linear;

inline bool SameExpr(const ir::Expr& a, const ir::Expr& b) {
  return arith::ExprEqual(a, b);
}

// The load, without a predicate, of which the value is a cast; null: it is
// something else.
inline const ir::LoadNode* WidenedLoad(const ir::Expr& e) {
  const auto* cast = ir::As<ir::CastNode>(e);
  const auto* load =
      cast == nullptr ? nullptr : ir::As<ir::LoadNode>(cast->value);
  return load != nullptr && load->predicate == nullptr ? load : nullptr;
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
