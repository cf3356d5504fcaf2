// An analyzer with scopes, for passes that walk a program: facts are added on
// entry to loops and conditions and removed on exit.
//
//   IndexMath math;
//   const size_t mark = math.Mark();
//   math.Bind(i.get(), 0, 15);
//   math.Assume(LT(i * 4 + j, IntConst(50)));
//   math.Simplify((i * 8 + 3) // 8)  ->  i
//   math.Bounds(i * 4 + j)           ->  [.., 49]
//   math.Restore(mark);
//
// It uses the analyzer's canonical form (analyzer.h). In addition, sums use the
// ranges that conditions give to parts of them, the right side of a conjunction
// uses its left side, and the operands of if_then_else use its condition. Not
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

// Inclusive bounds; +-kUnbounded if unknown. Ends can be added without
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

// A canonical sum in parts: sum(coefficient * atom) + constant. An atom is a
// variable, (x % upper) // lower, or opaque; no two are the same expression and
// no coefficient is 0.
struct Linear {
  std::vector<std::pair<ir::Expr, int64_t>> terms;
  int64_t constant = 0;

  bool is_constant() const { return terms.empty(); }
  // Adds scale * other.
  void Add(const Linear& other, int64_t scale);
  void AddTerm(const ir::Expr& atom, int64_t coefficient);
  // 0 if `atom` does not occur.
  int64_t CoefficientOf(const ir::ExprNode* atom) const;
  ir::Expr ToExpr() const;
};

class IndexMath {
 public:
  IndexMath();
  ~IndexMath();
  IndexMath(const IndexMath&) = delete;
  IndexMath& operator=(const IndexMath&) = delete;

  // Adds min <= var <= max to the known bounds. The variable must outlive the
  // scope.
  void Bind(const ir::VarNode* var, int64_t min, int64_t max);
  // The condition holds (does not hold) from now on.
  void Assume(const ir::Expr& condition) { AddCondition(condition, true); }
  void AssumeNot(const ir::Expr& condition) { AddCondition(condition, false); }
  size_t Mark() const { return log_.size(); }
  void Restore(size_t mark);

  // An equal expression in canonical form. Simplifies int64 index arithmetic
  // and conditions on it; other arithmetic does not change.
  ir::Expr Simplify(const ir::Expr& expr);
  // Bounds of an int64 scalar; unknown if the arithmetic overflows.
  Interval Bounds(const ir::Expr& expr);
  Interval Bounds(const Linear& linear);
  Linear Decompose(const ir::Expr& expr);
  // a - b if that is a constant.
  std::optional<int64_t> Difference(const ir::Expr& a, const ir::Expr& b);
  // Whether a bool expression is known to hold.
  bool CanProve(const ir::Expr& condition);

 private:
  // An undo record for Restore: bounds of a variable, or a list's last fact.
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
