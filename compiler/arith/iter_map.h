// Quasi-affine iteration maps: whether a list of expressions (block bindings)
// consists of independent splits and fusions of loop iterators, so that every
// combination of values is visited.
//
//   loops i < 4, j < 8:   [i * 8 + j]            one fused iterator
//                         [i, j // 2, j % 2]     j split in two
//                         [i, i + j]             not independent: no map
//
// An iterator "mark" is a loop variable or a fused sum; a "split" is
// `(mark % (lower_factor * extent)) // lower_factor * scale`; an iter sum is
// splits plus a base free of iterators. After Chen et al., TVM's arith
// iter_affine_map (2020); extents are integers here.
#ifndef TILEFARM_COMPILER_ARITH_ITER_MAP_H_
#define TILEFARM_COMPILER_ARITH_ITER_MAP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::arith {

struct IterMark;

struct IterSplit {
  std::shared_ptr<const IterMark> mark;
  int64_t lower_factor = 1;
  int64_t extent = 1;
  int64_t scale = 1;
};

struct IterSum {
  std::vector<IterSplit> splits;
  ir::Expr base;  // never null
};

// Runs over [0, extent): the value of `var - var_min`, or of `sum` if `var` is
// null.
struct IterMark {
  ir::Var var;
  ir::Expr var_min;  // null: 0
  IterSum sum;
  int64_t extent = 1;
};

enum class IterMapLevel : uint8_t {
  kNone,        // each binding is an iter sum, perhaps not independent
  kSurjective,  // independent and every value of the product is reached,
                // some perhaps several times: i * 2 + j with j < 3
  kBijective,   // ... exactly once: every iterator of extent > 1 is used
};

// The iter sum of each binding. InvalidArgument with the reason if there is no
// such map. `predicate` (may be null) is a conjunction of `sum < constant`
// comparisons, as made by guarded splits. Variables that are not in `iters`
// count as constants. `simplify_trivial`: iterators of extent 1 are replaced by
// their minimum.
absl::StatusOr<std::vector<IterSum>> DetectIterMap(
    const std::vector<ir::Expr>& bindings, const VarRanges& iters,
    const ir::Expr& predicate, IterMapLevel level, Analyzer& analyzer,
    bool simplify_trivial = true);

// Rewrites the bindings through their iter map; if there is none, each on its
// own if possible. Splits of one iterator merge; iterators that were fused and
// split unevenly stay in TVM's form.
std::vector<ir::Expr> IterMapSimplify(const std::vector<ir::Expr>& bindings,
                                      const VarRanges& iters,
                                      const ir::Expr& predicate,
                                      IterMapLevel level, Analyzer& analyzer,
                                      bool simplify_trivial = true);

// The expression that an iter sum stands for.
ir::Expr ToExpr(const IterSum& sum);
ir::Expr ToExpr(const IterSplit& split);

// For a bijective map, the value of each loop variable in terms of `outputs`,
// the values of the bindings. Variables of extent 1 may be absent.
ir::VarMap InverseIterMap(const std::vector<IterSum>& map,
                          const std::vector<ir::Expr>& outputs);

// Each binding as `outer * inner.extent + inner`, where inner uses only
// `inner_iters` and outer only the other iterators; used by blockize.
struct Division {
  ir::Expr outer;
  int64_t outer_extent = 1;
  ir::Expr inner;
  int64_t inner_extent = 1;
};
struct SubspaceDivision {
  std::vector<Division> bindings;
  // The predicate's conjuncts on outer and on inner iterators; never null.
  ir::Expr outer_predicate;
  ir::Expr inner_predicate;
};
// InvalidArgument with the reason if the space cannot be divided.
absl::StatusOr<SubspaceDivision> SubspaceDivide(
    const std::vector<ir::Expr>& bindings, const VarRanges& iters,
    const std::vector<ir::Var>& inner_iters, const ir::Expr& predicate,
    IterMapLevel level, Analyzer& analyzer);

}  // namespace tilefarm::arith

#endif  // TILEFARM_COMPILER_ARITH_ITER_MAP_H_
