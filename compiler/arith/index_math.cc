#include "compiler/arith/index_math.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "compiler/arith/canonical.h"

namespace tilefarm::arith {
namespace {

using ir::As;
using ir::BinaryNode;
using ir::BinaryOp;
using ir::Expr;

constexpr int64_t kUnbounded = Interval::kUnbounded;

Interval ToInterval(const ConstBound& bound) {
  return {std::clamp(bound.min, -kUnbounded, kUnbounded),
          std::clamp(bound.max, -kUnbounded, kUnbounded)};
}

// The values x for which `x op 0` holds; nullopt for kNE.
std::optional<ConstBound> SolutionSet(BinaryOp op) {
  ConstBound out;
  switch (op) {
    case BinaryOp::kLT:
      out.max = -1;
      return out;
    case BinaryOp::kLE:
      out.max = 0;
      return out;
    case BinaryOp::kGT:
      out.min = 1;
      return out;
    case BinaryOp::kGE:
      out.min = 0;
      return out;
    case BinaryOp::kEQ:
      return ConstBound{0, 0};
    default:
      return std::nullopt;
  }
}

Sum ToSum(const Linear& linear) {
  Sum sum;
  sum.base = linear.constant;
  for (const auto& [atom, coefficient] : linear.terms) {
    sum.terms.push_back(Canonicalizer::ToTerm(atom, coefficient));
  }
  return sum;
}

}  // namespace

// --- Linear --------------------------------------------------------------

void Linear::AddTerm(const Expr& atom, int64_t coefficient) {
  if (coefficient == 0) return;
  for (auto it = terms.begin(); it != terms.end(); ++it) {
    if (!ExprEqual(it->first, atom)) continue;
    it->second += coefficient;
    if (it->second == 0) terms.erase(it);
    return;
  }
  terms.emplace_back(atom, coefficient);
}

void Linear::Add(const Linear& other, int64_t scale) {
  for (const auto& [atom, coefficient] : other.terms) {
    AddTerm(atom, coefficient * scale);
  }
  constant += other.constant * scale;
}

int64_t Linear::CoefficientOf(const ir::ExprNode* atom) const {
  for (const auto& [term, coefficient] : terms) {
    if (term.get() == atom) return coefficient;
  }
  return 0;
}

Expr Linear::ToExpr() const { return Canonicalizer::ToExpr(ToSum(*this)); }

// --- Scopes --------------------------------------------------------------

IndexMath::IndexMath() : facts_(std::make_unique<ScopedFacts>()) {
  facts_->owner = this;
}

IndexMath::~IndexMath() = default;

void IndexMath::Bind(const ir::VarNode* var, int64_t min, int64_t max) {
  ConstBound bound;
  if (min > -kUnbounded) bound.min = min;
  if (max < kUnbounded) bound.max = max;
  Narrow(var, bound);
}

void IndexMath::Narrow(const ir::VarNode* var, ConstBound bound) {
  const auto [it, added] = analyzer_.bounds_.try_emplace(var, bound);
  Step step{Step::kVariable, var};
  if (!added) {
    step.old = it->second;
    it->second.min = std::max(it->second.min, bound.min);
    it->second.max = std::min(it->second.max, bound.max);
  }
  log_.push_back(std::move(step));
}

void IndexMath::Restore(size_t mark) {
  while (log_.size() > mark) {
    const Step& step = log_.back();
    switch (step.kind) {
      case Step::kVariable:
        if (step.old.has_value()) {
          analyzer_.bounds_[step.var] = *step.old;
        } else {
          analyzer_.bounds_.erase(step.var);
        }
        break;
      case Step::kRange:
        facts_->ranges.pop_back();
        break;
      case Step::kCondition:
        facts_->conditions.pop_back();
        break;
    }
    log_.pop_back();
  }
}

void IndexMath::AddCondition(const Expr& condition, bool holds) {
  if (condition->dtype.is_vector() || As<ir::IntConstNode>(condition)) return;
  if (const auto* negation = As<ir::NotNode>(condition)) {
    return AddCondition(negation->a, !holds);
  }
  if (const auto* binary = As<BinaryNode>(condition)) {
    if (binary->op == (holds ? BinaryOp::kAnd : BinaryOp::kOr)) {
      AddCondition(binary->a, holds);
      AddCondition(binary->b, holds);
      return;
    }
    if (ir::IsComparison(binary->op) && binary->a->dtype.is_index()) {
      return AddComparison(*binary, holds);
    }
  }
  facts_->conditions.emplace_back(condition, holds);
  log_.push_back({Step::kCondition});
}

void IndexMath::AddComparison(const BinaryNode& comparison, bool holds) {
  Canonicalizer canonicalizer(analyzer_, facts_.get());
  if (canonicalizer.MayWrap(comparison.a) ||
      canonicalizer.MayWrap(comparison.b)) {
    return;
  }
  Sum sum = canonicalizer.Difference(canonicalizer.ToSum(comparison.a),
                                     canonicalizer.ToSum(comparison.b));
  if (sum.is_const()) return;
  const BinaryOp op = holds ? comparison.op : Negated(comparison.op);
  ConstBound bound;
  if (const auto solutions = SolutionSet(op)) {
    bound = *solutions;
  } else {
    // x != 0 narrows an interval that starts or ends at 0.
    bound = canonicalizer.BoundOf(sum);
    if (bound.min == 0) bound.min = 1;
    if (bound.max == 0) bound.max = -1;
  }
  if (canonicalizer.overflow()) return;
  // min <= g * x + base <= max  ->  ceil((min - base) / g) <= x <= ...
  int64_t gcd = 0;
  for (const Term& term : sum.terms) gcd = std::gcd(gcd, term.scale);
  if (sum.terms.size() == 1 && sum.terms[0].scale < 0) gcd = -gcd;
  bound = Divided(bound, sum.base, gcd);
  sum.base = 0;
  for (Term& term : sum.terms) term.scale /= gcd;
  const auto* var = sum.terms.size() == 1 && sum.terms[0].is_plain()
                        ? As<ir::VarNode>(sum.terms[0].index)
                        : nullptr;
  if (var != nullptr) return Narrow(var, bound);
  facts_->ranges.push_back({std::move(sum), bound});
  log_.push_back({Step::kRange});
}

// --- Answers -------------------------------------------------------------

Expr IndexMath::Simplify(const Expr& expr) {
  Canonicalizer canonicalizer(analyzer_, facts_.get());
  Expr out = canonicalizer.Simplify(expr);
  return canonicalizer.overflow() ? expr : out;
}

Interval IndexMath::Bounds(const Expr& expr) {
  Canonicalizer canonicalizer(analyzer_, facts_.get());
  const ConstBound bound = canonicalizer.BoundOf(canonicalizer.ToSum(expr));
  return canonicalizer.overflow() ? Interval() : ToInterval(bound);
}

Interval IndexMath::Bounds(const Linear& linear) {
  Canonicalizer canonicalizer(analyzer_, facts_.get());
  const ConstBound bound = canonicalizer.BoundOf(ToSum(linear));
  return canonicalizer.overflow() ? Interval() : ToInterval(bound);
}

Linear IndexMath::Decompose(const Expr& expr) {
  Canonicalizer canonicalizer(analyzer_, facts_.get());
  const Sum sum = canonicalizer.ToSum(expr);
  Linear out;
  if (canonicalizer.overflow()) {
    out.AddTerm(expr, 1);
    return out;
  }
  out.constant = sum.base;
  out.terms.reserve(sum.terms.size());
  for (const Term& term : sum.terms) {
    out.terms.emplace_back(Canonicalizer::ToExpr(term, 1), term.scale);
  }
  return out;
}

std::optional<int64_t> IndexMath::Difference(const Expr& a, const Expr& b) {
  Canonicalizer canonicalizer(analyzer_, facts_.get());
  const Sum difference =
      canonicalizer.Difference(canonicalizer.ToSum(a), canonicalizer.ToSum(b));
  if (canonicalizer.overflow() || !difference.is_const()) return std::nullopt;
  return difference.base;
}

bool IndexMath::CanProve(const Expr& condition) {
  return ir::IsConstInt(Simplify(condition), 1);
}

}  // namespace tilefarm::arith
