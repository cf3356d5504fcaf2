// The simplifier and prover for integer index expressions.
//
//   Analyzer analyzer;
//   analyzer.Bind(i, 0, 4);              // 0 <= i < 4
//   analyzer.Simplify((i + j * 4) / 4)   // j
//   analyzer.CanProve(LT(i, IntConst(4)))  // true
//
// Simplify brings int64 expressions into one canonical form: a sum of
// `constant * atom` terms in descending order of the constants, an atom being
// a variable, `(index % upper) // lower` of another sum, or an expression it
// knows nothing about. Expressions of other types keep their structure; only
// what is below them is simplified, so no floating-point value ever changes.
// Index arithmetic is assumed not to overflow int64.
//
// The canonical form follows the canonical simplifier of Chen et al., TVM
// (OSDI 2018); the result of equal input is equal on every platform.
#ifndef TILEFARM_COMPILER_ARITH_ANALYZER_H_
#define TILEFARM_COMPILER_ARITH_ANALYZER_H_

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::arith {

// min <= value <= max, both inclusive; kNegInf / kPosInf where unknown.
struct ConstBound {
  static constexpr int64_t kPosInf = INT64_MAX;
  static constexpr int64_t kNegInf = INT64_MIN;
  int64_t min = kNegInf;
  int64_t max = kPosInf;

  bool is_bounded() const { return min != kNegInf && max != kPosInf; }
  bool is_single() const { return min == max; }
  bool operator==(const ConstBound&) const = default;
};

// value = coeff * n + base for some integer n, 0 <= base < coeff; coeff 0: the
// value is base.
struct ModularSet {
  int64_t coeff = 1;
  int64_t base = 0;
  bool operator==(const ModularSet&) const = default;
};

// The ranges of loop variables, in an order that matters where iterators are
// listed (outermost first).
using VarRanges = std::vector<std::pair<ir::Var, ir::Range>>;

// Equal trees; variables and buffers by pointer.
bool ExprEqual(const ir::Expr& a, const ir::Expr& b);

// Knows bounds of variables and facts about them. A value type; not
// thread-safe. Rebinding a variable replaces what was known.
class Analyzer {
 public:
  Analyzer() = default;
  explicit Analyzer(const VarRanges& ranges);

  // The range's ends may be expressions; what is known are their bounds.
  void Bind(const ir::Var& var, const ir::Range& range);
  // min <= var < min + extent.
  void Bind(const ir::Var& var, int64_t min, int64_t extent);
  // The variable is that expression: Simplify substitutes it.
  void BindValue(const ir::Var& var, const ir::Expr& value);
  // What holds from here on: comparisons, and conjunctions of them.
  void Assume(const ir::Expr& condition);
  // Forgets every assumption made since `mark` (from NumAssumptions()).
  size_t NumAssumptions() const { return facts_.size(); }
  void DropAssumptions(size_t mark) { facts_.resize(mark); }

  // The canonical form; a statement below a `Select` or `if_then_else` is
  // not assumed to know its condition.
  ir::Expr Simplify(const ir::Expr& expr);
  // Every expression of the statement.
  ir::Stmt Simplify(const ir::Stmt& stmt);

  // True only where the condition holds for every value in bounds; false
  // where it does not or cannot be shown.
  bool CanProve(const ir::Expr& condition);
  bool ProveEqual(const ir::Expr& a, const ir::Expr& b);
  bool ProveLE(const ir::Expr& a, const ir::Expr& b);
  bool ProveLT(const ir::Expr& a, const ir::Expr& b);
  // a - b where it is constant.
  std::optional<int64_t> ConstDifference(const ir::Expr& a, const ir::Expr& b);

  ConstBound Bounds(const ir::Expr& expr);
  ModularSet Modular(const ir::Expr& expr);

 private:
  friend class Canonicalizer;
  friend class IndexMath;

  std::unordered_map<const ir::VarNode*, ConstBound> bounds_;
  ir::VarMap values_;
  // Each is known to be >= 0, in canonical form.
  std::vector<ir::Expr> facts_;
};

// Whether `divisor` divides the value of `expr` for every value.
bool Divisible(Analyzer& analyzer, const ir::Expr& expr, int64_t divisor);

}  // namespace tilefarm::arith

#endif  // TILEFARM_COMPILER_ARITH_ANALYZER_H_
