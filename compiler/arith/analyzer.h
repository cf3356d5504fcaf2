// The simplifier and prover for integer index expressions.
//
//   Analyzer analyzer;
//   analyzer.Bind(i, 0, 4);              // 0 <= i < 4
//   analyzer.Simplify((i + j * 4) / 4)   // j
//   analyzer.CanProve(LT(i, IntConst(4)))  // true
//
// Simplify brings int64 expressions into one canonical form: a sum of
// `constant * atom` terms in descending order of the constants. An atom is a
// variable, `(index % upper) // lower` of another sum, or an opaque expression.
// Expressions of other types keep their structure and only their operands are
// simplified, so no floating-point value ever changes.
// Index arithmetic is assumed not to overflow int64.
//
// The canonical form follows the canonical simplifier of Chen et al., TVM
// (OSDI 2018). Equal input gives equal results on every platform.
#ifndef TILEFARM_COMPILER_ARITH_ANALYZER_H_
#define TILEFARM_COMPILER_ARITH_ANALYZER_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::arith {

// min <= value <= max, both inclusive; kNegInf / kPosInf if unknown.
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

// The ranges of loop variables; lists of iterators are ordered from the
// outermost to the innermost.
using VarRanges = std::vector<std::pair<ir::Var, ir::Range>>;

// Equal trees; variables and buffers by pointer.
bool ExprEqual(const ir::Expr& a, const ir::Expr& b);

// Stores bounds of variables and facts about them. A value type; not
// thread-safe. Binding a variable again replaces its bounds.
class Analyzer {
 public:
  Analyzer() = default;
  explicit Analyzer(const VarRanges& ranges);

  // The ends of the range may be expressions; only their bounds are stored.
  void Bind(const ir::Var& var, const ir::Range& range);
  // min <= var < min + extent.
  void Bind(const ir::Var& var, int64_t min, int64_t extent);
  // The variable equals the expression: Simplify substitutes it.
  void BindValue(const ir::Var& var, const ir::Expr& value);
  // Assumes comparisons, or conjunctions of them, from now on.
  void Assume(const ir::Expr& condition);
  // Forgets every assumption made since `mark` (from NumAssumptions()).
  size_t NumAssumptions() const { return facts_.size(); }
  void DropAssumptions(size_t mark) { facts_.resize(mark); }

  // The canonical form. The operands of a `Select` or `if_then_else` are
  // simplified without assuming its condition.
  ir::Expr Simplify(const ir::Expr& expr);
  // Simplifies every expression of the statement.
  ir::Stmt Simplify(const ir::Stmt& stmt);

  // True only if the condition holds for all values within bounds; false if it
  // does not hold or cannot be proven.
  bool CanProve(const ir::Expr& condition);
  bool ProveEqual(const ir::Expr& a, const ir::Expr& b);
  bool ProveLE(const ir::Expr& a, const ir::Expr& b);
  // a - b if that is a constant.
  std::optional<int64_t> ConstDifference(const ir::Expr& a, const ir::Expr& b);

  ConstBound Bounds(const ir::Expr& expr);
  ModularSet Modular(const ir::Expr& expr);

 private:
  friend class Canonicalizer;
  friend class IndexMath;

  absl::flat_hash_map<const ir::VarNode*, ConstBound> bounds_;
  ir::VarMap values_;
  // Each fact is an expression >= 0 in canonical form.
  std::vector<ir::Expr> facts_;
};

// Whether `divisor` divides the value of `expr` for every value.
bool Divisible(Analyzer& analyzer, const ir::Expr& expr, int64_t divisor);

}  // namespace tilefarm::arith

#endif  // TILEFARM_COMPILER_ARITH_ANALYZER_H_
