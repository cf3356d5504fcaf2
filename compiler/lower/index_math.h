// Arithmetic on int64 index expressions under known facts: canonical linear
// forms, constant bounds, simplification.
//
//   IndexMath math;
//   math.Bind(i.get(), 0, 15);
//   math.Simplify((i * 8 + 3) // 8)  ->  i
//   math.Bounds(i * 4 + 1)           ->  [1, 61]
//
// Facts are scoped: Mark() before entering a scope, Restore() when leaving it.
// Bounds that would overflow count as unknown. Not thread-safe.
#ifndef TILEFARM_COMPILER_LOWER_INDEX_MATH_H_
#define TILEFARM_COMPILER_LOWER_INDEX_MATH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/expr.h"

namespace tilefarm::lower {

// Inclusive bounds; +-kUnbounded where unknown.
struct Interval {
  static constexpr int64_t kUnbounded = int64_t{1} << 60;
  int64_t lo = -kUnbounded;
  int64_t hi = kUnbounded;

  bool has_lo() const { return lo > -kUnbounded; }
  bool has_hi() const { return hi < kUnbounded; }
  bool bounded() const { return has_lo() && has_hi(); }
  bool Within(int64_t low, int64_t high) const {
    return lo >= low && hi <= high;
  }
};

// sum(coefficient * atom) + constant. Atoms are variables or expressions that
// are not linear; no two are the same expression and no coefficient is 0.
struct Linear {
  std::vector<std::pair<ir::Expr, int64_t>> terms;
  int64_t constant = 0;

  bool is_constant() const { return terms.empty(); }
  // Adds scale * other.
  void Add(const Linear& other, int64_t scale);
  void AddTerm(const ir::Expr& atom, int64_t coefficient);
  // 0 where `atom` does not occur.
  int64_t CoefficientOf(const ir::ExprNode* atom) const;
  ir::Expr ToExpr() const;
};

// Same shape, same variables and buffers by pointer.
bool SameExpr(const ir::Expr& a, const ir::Expr& b);

class IndexMath {
 public:
  // min <= var <= max.
  void Bind(const ir::VarNode* var, int64_t min, int64_t max);
  // The condition holds from here on.
  void Assume(const ir::Expr& condition);
  void AssumeNot(const ir::Expr& condition);
  size_t Mark() const { return facts_.size(); }
  void Restore(size_t mark) { facts_.resize(mark); }

  // An equal expression in canonical form; touches int64 index arithmetic and
  // the conditions on it, and leaves other arithmetic as it is.
  ir::Expr Simplify(const ir::Expr& expr);
  // Of an int64 scalar.
  Interval Bounds(const ir::Expr& expr);
  Interval Bounds(const Linear& linear);
  Linear Decompose(const ir::Expr& expr);
  // a - b where that is a constant.
  std::optional<int64_t> Difference(const ir::Expr& a, const ir::Expr& b);
  // Whether a bool expression is known to hold.
  bool CanProve(const ir::Expr& condition);

 private:
  struct Fact {
    Linear terms;  // constant 0
    Interval interval;
    ir::Expr condition;  // not linear: known to be `holds`
    bool holds = true;
  };
  class Rewriter;

  void AddCondition(const ir::Expr& condition, bool holds);
  Linear DecomposeDivision(const Linear& numerator, int64_t divisor,
                           bool modulo);
  void Recombine(Linear& linear);
  Interval AtomBounds(const ir::Expr& atom);
  Interval BoundsFrom(const Linear& linear, size_t first_fact, int depth);

  std::vector<Fact> facts_;
};

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_INDEX_MATH_H_
