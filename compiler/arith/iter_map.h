// Quasi-affine iteration maps: whether a list of expressions (block bindings)
// is made of independent splits and fusions of loop iterators, so that every
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

// Runs over [0, extent): `var - var_min`, or the value of `sum` where `var` is
// null.
struct IterMark {
  ir::Var var;
  ir::Expr var_min;  // null: 0
  IterSum sum;
  int64_t extent = 1;
};

enum class IterMapLevel : uint8_t {
  kNone,        // each binding is an iter sum, nothing about independence
  kSurjective,  // independent and every value of the product is reached,
                // some perhaps several times: i * 2 + j with j < 3
  kBijective,   // ... exactly once: every iterator of extent > 1 is used
};

// The iter sum of each binding. InvalidArgument with the reason where there is
// no such map. `predicate` (may be null) is a conjunction of `sum < constant`
// comparisons, as guarded splits make them. Variables that are not in `iters`
// count as constants. `simplify_trivial`: iterators of extent 1 are replaced by
// their minimum.
absl::StatusOr<std::vector<IterSum>> DetectIterMap(
    const std::vector<ir::Expr>& bindings, const VarRanges& iters,
    const ir::Expr& predicate, IterMapLevel level, Analyzer& analyzer,
    bool simplify_trivial = true);

// The bindings rewritten through their iter map where there is one, else each
// on its own; one that is no map stays as it is. Splits of one iterator merge;
// what has been fused and split unevenly stays so, as TVM writes it.
std::vector<ir::Expr> IterMapSimplify(const std::vector<ir::Expr>& bindings,
                                      const VarRanges& iters,
                                      const ir::Expr& predicate,
                                      IterMapLevel level, Analyzer& analyzer,
                                      bool simplify_trivial = true);

// The expression that an iter sum stands for.
ir::Expr ToExpr(const IterSum& sum);
ir::Expr ToExpr(const IterSplit& split);

// For a bijective map, the value of each loop variable in terms of
// `outputs` (one a binding, its value). Variables of extent 1 may be absent.
ir::VarMap InverseIterMap(const std::vector<IterSum>& map,
                          const std::vector<ir::Expr>& outputs);

// Each binding as `outer * inner.extent + inner`, where inner is made of
// `inner_iters` alone and outer of the other iterators; the core of blockize.
struct Division {
  ir::Expr outer;
  int64_t outer_extent = 1;
  ir::Expr inner;
  int64_t inner_extent = 1;
};
struct SubspaceDivision {
  std::vector<Division> bindings;
  // The part of the predicate on outer and on inner iterators; never null.
  ir::Expr outer_predicate;
  ir::Expr inner_predicate;
};
// InvalidArgument with the reason where the space cannot be divided.
absl::StatusOr<SubspaceDivision> SubspaceDivide(
    const std::vector<ir::Expr>& bindings, const VarRanges& iters,
    const std::vector<ir::Var>& inner_iters, const ir::Expr& predicate,
    IterMapLevel level, Analyzer& analyzer);

}  // namespace tilefarm::arith

#endif  // TILEFARM_COMPILER_ARITH_ITER_MAP_H_
