// The canonical form behind Analyzer; private to arith.
//
//   Sum   = base + sum of terms
//   Term  = scale * ((index % upper) // lower)
//
// Splits of one index merge: x // 4 * 4 + x % 4 is x, x - x // 4 * 4 is x % 4.
#ifndef TILEFARM_COMPILER_ARITH_CANONICAL_H_
#define TILEFARM_COMPILER_ARITH_CANONICAL_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/expr.h"

namespace tilefarm::arith {

struct Term {
  static constexpr int64_t kNoUpper = 0;

  // A variable, an opaque expression, or (where there is a lower or an upper)
  // a canonical sum.
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

// Works for one call of the analyzer. Where int64 arithmetic on constants
// overflowed, `overflow()` says so and the result must not be used.
class Canonicalizer {
 public:
  explicit Canonicalizer(const Analyzer& analyzer) : analyzer_(analyzer) {}

  bool overflow() const { return overflow_; }

  // Of an int64 expression.
  Sum ToSum(const ir::Expr& expr);
  ir::Expr ToExpr(const Sum& sum);
  static ir::Expr ToExpr(const Term& term, int64_t scale);
  // Of any expression.
  ir::Expr Simplify(const ir::Expr& expr);

  ConstBound BoundOf(const Sum& sum);
  ConstBound BoundOf(const Term& term);
  ConstBound Bounds(const ir::Expr& expr);

  void Add(Sum& to, const Sum& from, int64_t scale);
  Sum Difference(const Sum& a, const Sum& b);
  // Whether the sum is >= 0 by bounds or by a fact.
  bool NonNegative(const Sum& sum);

 private:
  void AddTerm(Sum& to, Term term);
  // Expands plain terms whose index is a sum; recovers x % c from
  // x - x // c * c where x is a sum.
  void Normalize(Sum& sum);
  Sum DivConst(Sum sum, int64_t divisor);
  Sum ModConst(Sum sum, int64_t divisor);
  Sum Opaque(const ir::Expr& expr);
  Sum Split(const Sum& index, int64_t lower, int64_t upper);
  Sum MinMax(const ir::BinaryNode& node, const ir::Expr& self);
  Sum BinarySum(const ir::BinaryNode& node, const ir::Expr& self);
  ir::Expr SimplifyChildren(const ir::Expr& expr);
  ir::Expr SimplifyCompare(const ir::BinaryNode& node, const ir::Expr& self);
  ir::Expr SimplifyBool(const ir::BinaryNode& node, const ir::Expr& self);

  int64_t MulChecked(int64_t a, int64_t b);
  int64_t AddChecked(int64_t a, int64_t b);

  const Analyzer& analyzer_;
  bool overflow_ = false;
  bool in_fact_ = false;  // a fact is being brought into canonical form
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

}  // namespace tilefarm::arith

#endif  // TILEFARM_COMPILER_ARITH_CANONICAL_H_
