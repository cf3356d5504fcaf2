// The values of an expression while some variables run over their ranges, and
// the same for buffer regions.
//
//   // j in [0, 8): the values of i * 16 + j
//   EvalSet(analyzer, i * 16 + j, {{j, {0, 8}}})   // [i * 16, i * 16 + 7]
#ifndef TILEFARM_COMPILER_ARITH_INT_SET_H_
#define TILEFARM_COMPILER_ARITH_INT_SET_H_

#include <optional>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::arith {

// All integers from min to max, both inclusive; a null end is unbounded. An
// interval may be a superset of the exact values.
struct IntSet {
  ir::Expr min;
  ir::Expr max;

  static IntSet Everything() { return {}; }
  static IntSet Point(ir::Expr value) { return {value, value}; }
  static IntSet FromRange(const ir::Range& range);
  bool is_bounded() const { return min != nullptr && max != nullptr; }
};

// The values of `expr` while each of `relaxed` runs over its range. The ends
// are expressions of the other variables, simplified by `analyzer`, which
// should know their bounds.
IntSet EvalSet(Analyzer& analyzer, const ir::Expr& expr,
               const VarRanges& relaxed);
// The same for a range: from the least min to the greatest end.
IntSet EvalSet(Analyzer& analyzer, const ir::Range& range,
               const VarRanges& relaxed);

// The hull of both. Ends that cannot be compared become min() / max() of both.
IntSet Union(Analyzer& analyzer, const IntSet& a, const IntSet& b);

using Region = std::vector<ir::Range>;

// The hull of the region over the relaxed variables. An unbounded dimension
// becomes the whole dimension of `buffer`. The result is not clipped to the
// buffer.
Region RelaxRegion(Analyzer& analyzer, const ir::BufferRegion& region,
                   const VarRanges& relaxed);

// The hull of two regions of equal rank.
Region UnionRegion(Analyzer& analyzer, const Region& a, const Region& b);

// The region cut to [0, shape) in each dimension.
Region ClipRegion(Analyzer& analyzer, const Region& region,
                  const std::vector<int64_t>& shape);

// Whether every point of `inner` provably lies in `outer`.
bool RegionCovers(Analyzer& analyzer, const Region& outer, const Region& inner);

// The whole buffer.
Region FullRegion(const ir::Buffer& buffer);

}  // namespace tilefarm::arith

#endif  // TILEFARM_COMPILER_ARITH_INT_SET_H_
