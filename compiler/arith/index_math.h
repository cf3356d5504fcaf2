// The analyzer with scopes: what is known grows on the way into loops and
// conditions and is forgotten on the way out. For passes that walk a program.
//
//   IndexMath math;
//   const size_t mark = math.Mark();
//   math.Bind(i.get(), 0, 15);
//   math.Assume(LT(i * 4 + j, IntConst(50)));
//   math.Simplify((i * 8 + 3) // 8)  ->  i
//   math.Bounds(i * 4 + j)           ->  [.., 49]
//   math.Restore(mark);
//
// It judges by the analyzer's canonical form (analyzer.h). Beyond it, sums know
// the ranges that conditions gave to parts of them, a conjunction's right side
// knows its left one, and the arms of if_then_else know its condition. Not
// thread-safe.
#ifndef TILEFARM_COMPILER_ARITH_INDEX_MATH_H_
#define TILEFARM_COMPILER_ARITH_INDEX_MATH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/expr.h"

namespace tilefarm::arith {

struct ScopedFacts;

// Inclusive bounds; +-kUnbounded where unknown. Ends can be added without
// overflow.
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

// A canonical sum taken apart: sum(coefficient * atom) + constant. An atom is a
// variable, (x % upper) // lower, or opaque; no two are the same expression and
// no coefficient is 0.
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

class IndexMath {
 public:
  IndexMath();
  ~IndexMath();
  IndexMath(const IndexMath&) = delete;
  IndexMath& operator=(const IndexMath&) = delete;

  // min <= var <= max, beside what is known of it already. The variable must
  // outlive the scope.
  void Bind(const ir::VarNode* var, int64_t min, int64_t max);
  // The condition holds, or does not hold, from here on.
  void Assume(const ir::Expr& condition) { AddCondition(condition, true); }
  void AssumeNot(const ir::Expr& condition) { AddCondition(condition, false); }
  size_t Mark() const { return log_.size(); }
  void Restore(size_t mark);

  // An equal expression in canonical form; touches int64 index arithmetic and
  // the conditions on it, and leaves other arithmetic as it is.
  ir::Expr Simplify(const ir::Expr& expr);
  // Of an int64 scalar. Unknown where the arithmetic overflows.
  Interval Bounds(const ir::Expr& expr);
  Interval Bounds(const Linear& linear);
  Linear Decompose(const ir::Expr& expr);
  // a - b where that is a constant.
  std::optional<int64_t> Difference(const ir::Expr& a, const ir::Expr& b);
  // Whether a bool expression is known to hold.
  bool CanProve(const ir::Expr& condition);

 private:
  // What Restore undoes: a narrower variable, or the last fact of a list.
  struct Step {
    enum Kind { kVariable, kRange, kCondition } kind;
    const ir::VarNode* var = nullptr;
    std::optional<ConstBound> old = std::nullopt;
  };

  void AddCondition(const ir::Expr& condition, bool holds);
  void AddComparison(const ir::BinaryNode& comparison, bool holds);
  void Narrow(const ir::VarNode* var, ConstBound bound);

  Analyzer analyzer_;
  std::unique_ptr<ScopedFacts> facts_;
  std::vector<Step> log_;
};

}  // namespace tilefarm::arith

#endif  // TILEFARM_COMPILER_ARITH_INDEX_MATH_H_
