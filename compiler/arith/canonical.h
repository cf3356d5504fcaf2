// The canonical form behind Analyzer; private to arith.
//
//   Sum   = base + sum of terms
//   Term  = scale * ((index % upper) // lower)
//
// Splits of one index merge: x // 4 * 4 + x % 4 is x, x - x // 4 * 4 is x % 4.
#ifndef TILEFARM_COMPILER_ARITH_CANONICAL_H_
#define TILEFARM_COMPILER_ARITH_CANONICAL_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/expr.h"

namespace tilefarm::arith {

struct Term {
  static constexpr int64_t kNoUpper = 0;

  // A variable, an opaque expression, or a canonical sum (only with `lower` or
  // `upper`).
  ir::Expr index;
  int64_t scale = 1;
  int64_t lower = 1;
  int64_t upper = kNoUpper;

  bool is_plain() const { return lower == 1 && upper == kNoUpper; }
};

struct Sum {
  absl::InlinedVector<Term, 4> terms;
  int64_t base = 0;

  bool is_const() const { return terms.empty(); }
};

class IndexMath;

// The facts of an IndexMath besides bounds of variables.
struct ScopedFacts {
  struct Range {
    Sum sum;  // without a constant
    ConstBound bound;
  };
  std::vector<Range> ranges;
  // Conditions other than comparisons of indices, and whether they hold.
  std::vector<std::pair<ir::Expr, bool>> conditions;
  IndexMath* owner = nullptr;
};

// Created for one call of the analyzer. If int64 arithmetic on constants
// overflowed, `overflow()` is true and the result must not be used.
class Canonicalizer {
 public:
  // `scoped`, if given, has the facts that its owner learned on the way down.
  explicit Canonicalizer(const Analyzer& analyzer,
                         const ScopedFacts* scoped = nullptr)
      : analyzer_(analyzer), scoped_(scoped) {}

  bool overflow() const { return overflow_; }

  // Converts an int64 expression.
  Sum ToSum(const ir::Expr& expr);
  static ir::Expr ToExpr(const Sum& sum);
  static ir::Expr ToExpr(const Term& term, int64_t scale);
  // The inverse of ToExpr(term, 1).
  static Term ToTerm(const ir::Expr& atom, int64_t scale);
  // Simplifies an expression of any type.
  ir::Expr Simplify(const ir::Expr& expr);

  ConstBound BoundOf(const Sum& sum);
  ConstBound BoundOf(const Term& term);
  ConstBound Bounds(const ir::Expr& expr);

  void Add(Sum& to, const Sum& from, int64_t scale);
  Sum Difference(const Sum& a, const Sum& b);
  // Whether bounds or a fact prove that the sum is >= 0.
  bool NonNegative(const Sum& sum);
  // 64-bit data may wrap, unlike indices: whether a sum, difference or product
  // in `expr` has operands from memory, or of lets, and no bounds. What holds
  // in any ring holds for them as well; quotients, comparisons and bounds
  // don't.
  bool MayWrap(const ir::Expr& expr);

 private:
  void AddTerm(Sum& to, Term term);
  // Whether the terms are one if their indices are equal, or have the same
  // remainder by l: high is x // l * s, low is (x % l) // m * t with
  // s * m == t * l.
  bool Completes(const Term& high, const Term& low);
  // Whether a % divisor is b % divisor.
  bool Congruent(const ir::Expr& a, const ir::Expr& b, int64_t divisor);
  // Expands plain terms whose index is a sum; recovers x % c from x - x // c *
  // c if x is a sum.
  void Normalize(Sum& sum);
  Sum DivConst(Sum sum, int64_t divisor);
  Sum ModConst(Sum sum, int64_t divisor);
  // Replaces terms that facts restrict to one value by that value.
  void FoldKnown(Sum& sum);
  Sum Opaque(const ir::Expr& expr);
  Sum Split(const Sum& index, int64_t lower, int64_t upper);
  Sum MinMax(const ir::BinaryNode& node, const ir::Expr& self);
  Sum BinarySum(const ir::BinaryNode& node, const ir::Expr& self);
  ir::Expr SimplifyChildren(const ir::Expr& expr);
  ir::Expr SimplifyCompare(const ir::BinaryNode& node, const ir::Expr& self);
  ir::Expr SimplifyIfThenElse(const ir::CallNode& node, const ir::Expr& self);
  // The bound, narrowed by facts from the `first` on about parts of the sum.
  ConstBound NarrowedBy(size_t first, int depth, const Sum& sum,
                        ConstBound bound);
  ConstBound BoundOfAtom(const Term& term);
  // Replaces conditions that a surrounding condition decides.
  ir::Expr Known(ir::Expr expr) const;
  ir::Expr SimplifyBool(const ir::BinaryNode& node, const ir::Expr& self);

  int64_t MulChecked(int64_t a, int64_t b);
  int64_t AddChecked(int64_t a, int64_t b);

  const Analyzer& analyzer_;
  const ScopedFacts* const scoped_;
  bool overflow_ = false;
  bool in_fact_ = false;  // while a fact is brought into canonical form
  int depth_ = 0;
};

// Rounds down; divisor > 0.
inline int64_t FloorDivInt(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return a % b < 0 ? quotient - 1 : quotient;
}
inline int64_t FloorModInt(int64_t a, int64_t b) {
  const int64_t rest = a % b;
  return rest < 0 ? rest + b : rest;
}

// Whether it is an arithmetic expression, which a plain term cannot have as its
// index.
bool IsArithmetic(const ir::Expr& expr);
// The comparison that holds if `op` does not.
ir::BinaryOp Negated(ir::BinaryOp op);
// The bound of x, given the `bound` of factor * x + base; factor is not 0.
ConstBound Divided(ConstBound bound, int64_t base, int64_t factor);

}  // namespace tilefarm::arith

#endif  // TILEFARM_COMPILER_ARITH_CANONICAL_H_
