#include "compiler/lower/index_math.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "compiler/ir/visitor.h"

namespace tilefarm::lower {
namespace {

using ir::As;
using ir::BinaryNode;
using ir::BinaryOp;
using ir::Expr;
using ir::ExprKind;

int64_t Clamp(__int128 value) {
  if (value >= Interval::kUnbounded) return Interval::kUnbounded;
  if (value <= -Interval::kUnbounded) return -Interval::kUnbounded;
  return static_cast<int64_t>(value);
}

Interval Scaled(const Interval& x, int64_t factor) {
  const auto scale = [factor](int64_t bound) {
    if (bound >= Interval::kUnbounded || bound <= -Interval::kUnbounded) {
      return factor < 0 ? -bound : bound;
    }
    return Clamp(static_cast<__int128>(bound) * factor);
  };
  if (factor == 0) return {0, 0};
  return factor > 0 ? Interval{scale(x.lo), scale(x.hi)}
                    : Interval{scale(x.hi), scale(x.lo)};
}

Interval Sum(const Interval& a, const Interval& b) {
  Interval out;
  if (a.has_lo() && b.has_lo()) {
    out.lo = Clamp(static_cast<__int128>(a.lo) + b.lo);
  }
  if (a.has_hi() && b.has_hi()) {
    out.hi = Clamp(static_cast<__int128>(a.hi) + b.hi);
  }
  return out;
}

Interval Intersect(const Interval& a, const Interval& b) {
  return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)};
}

int64_t FloorDivide(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

int64_t FloorRest(int64_t a, int64_t b) { return a - FloorDivide(a, b) * b; }

Interval DividedBy(const Interval& x, int64_t divisor) {
  Interval out;
  if (x.has_lo()) out.lo = FloorDivide(x.lo, divisor);
  if (x.has_hi()) out.hi = FloorDivide(x.hi, divisor);
  return out;
}

bool IsIndex(const Expr& expr) { return expr->dtype.is_index(); }

// The comparison that holds where `op` does not.
BinaryOp Negated(BinaryOp op) {
  switch (op) {
    case BinaryOp::kEQ:
      return BinaryOp::kNE;
    case BinaryOp::kNE:
      return BinaryOp::kEQ;
    case BinaryOp::kLT:
      return BinaryOp::kGE;
    case BinaryOp::kLE:
      return BinaryOp::kGT;
    case BinaryOp::kGT:
      return BinaryOp::kLE;
    default:
      return BinaryOp::kLT;
  }
}

// Values x for which `x op 0` may hold; nullopt for kNE.
std::optional<Interval> SolutionSet(BinaryOp op) {
  Interval out;
  switch (op) {
    case BinaryOp::kLT:
      out.hi = -1;
      return out;
    case BinaryOp::kLE:
      out.hi = 0;
      return out;
    case BinaryOp::kGT:
      out.lo = 1;
      return out;
    case BinaryOp::kGE:
      out.lo = 0;
      return out;
    case BinaryOp::kEQ:
      return Interval{0, 0};
    default:
      return std::nullopt;
  }
}

}  // namespace

// --- Facts ---------------------------------------------------------------

void IndexMath::Bind(const ir::VarNode* var, int64_t min, int64_t max) {
  Fact fact;
  // The fact borrows the variable: it never outlives the statement at hand.
  fact.terms.terms.emplace_back(Expr(Expr(), var), 1);
  fact.interval = {Clamp(min), Clamp(max)};
  facts_.push_back(std::move(fact));
}

void IndexMath::Assume(const Expr& condition) { AddCondition(condition, true); }
void IndexMath::AssumeNot(const Expr& condition) {
  AddCondition(condition, false);
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
    if (ir::IsComparison(binary->op) && IsIndex(binary->a)) {
      const BinaryOp op = holds ? binary->op : Negated(binary->op);
      Linear difference = Decompose(binary->a);
      difference.Add(Decompose(binary->b), -1);
      if (const auto set = SolutionSet(op)) {
        Fact fact;
        fact.interval = Sum(*set, {-difference.constant, -difference.constant});
        difference.constant = 0;
        fact.terms = std::move(difference);
        if (!fact.terms.is_constant()) facts_.push_back(std::move(fact));
      } else {
        // x != bound narrows an interval whose end is that bound.
        const Interval known = Bounds(difference);
        Interval narrowed = known;
        if (known.lo == 0) narrowed.lo = 1;
        if (known.hi == 0) narrowed.hi = -1;
        Fact fact;
        fact.interval =
            Sum(narrowed, {-difference.constant, -difference.constant});
        difference.constant = 0;
        fact.terms = std::move(difference);
        if (!fact.terms.is_constant()) facts_.push_back(std::move(fact));
      }
      return;
    }
  }
  Fact fact;
  fact.condition = condition;
  fact.holds = holds;
  facts_.push_back(std::move(fact));
}

// --- Bounds --------------------------------------------------------------

Interval IndexMath::Bounds(const Expr& expr) { return Bounds(Decompose(expr)); }

Interval IndexMath::Bounds(const Linear& linear) {
  return BoundsFrom(linear, 0, 3);
}

Interval IndexMath::BoundsFrom(const Linear& linear, size_t first_fact,
                               int depth) {
  Interval sum{linear.constant, linear.constant};
  for (const auto& [atom, coefficient] : linear.terms) {
    sum = Sum(sum, Scaled(AtomBounds(atom), coefficient));
  }
  if (linear.terms.size() < 2 || depth == 0) return sum;
  // A fact about a part of the sum may know more than its atoms do.
  for (size_t i = first_fact; i < facts_.size(); ++i) {
    const Fact& fact = facts_[i];
    const size_t count = fact.terms.terms.size();
    if (count < 2 || count > linear.terms.size()) continue;
    int64_t ratio = 0;
    Linear rest = linear;
    bool matches = true;
    for (const auto& [atom, coefficient] : fact.terms.terms) {
      const auto found = std::find_if(
          rest.terms.begin(), rest.terms.end(),
          [&](const auto& term) { return SameExpr(term.first, atom); });
      if (found == rest.terms.end() || found->second % coefficient != 0 ||
          (ratio != 0 && found->second / coefficient != ratio)) {
        matches = false;
        break;
      }
      ratio = found->second / coefficient;
      rest.terms.erase(found);
    }
    if (!matches || ratio == 0) continue;
    sum = Intersect(sum, Sum(Scaled(fact.interval, ratio),
                             BoundsFrom(rest, i + 1, depth - 1)));
  }
  return sum;
}

Interval IndexMath::AtomBounds(const Expr& atom) {
  Interval out;
  const auto intersect_facts = [&] {
    for (const Fact& fact : facts_) {
      if (fact.terms.terms.size() != 1) continue;
      const auto& [term, coefficient] = fact.terms.terms[0];
      if (!SameExpr(term, atom)) continue;
      Interval known = fact.interval;
      if (coefficient < 0) known = Scaled(known, -1);
      const int64_t scale = std::abs(coefficient);
      if (known.has_lo()) {
        out.lo = std::max(out.lo, -FloorDivide(-known.lo, scale));
      }
      if (known.has_hi()) {
        out.hi = std::min(out.hi, FloorDivide(known.hi, scale));
      }
    }
  };
  if (const auto* binary = As<BinaryNode>(atom)) {
    const auto divisor = ir::AsInt(binary->b);
    switch (binary->op) {
      case BinaryOp::kFloorDiv:
        if (divisor && *divisor > 0) {
          out = DividedBy(Bounds(binary->a), *divisor);
        }
        break;
      case BinaryOp::kFloorMod:
        if (divisor && *divisor > 0) out = {0, *divisor - 1};
        break;
      case BinaryOp::kDiv:
        if (divisor && *divisor > 0) {
          const Interval value = Bounds(binary->a);
          if (value.has_lo()) out.lo = value.lo / *divisor;
          if (value.has_hi()) out.hi = value.hi / *divisor;
        }
        break;
      case BinaryOp::kMod:
        if (divisor && *divisor > 0) {
          out.hi = *divisor - 1;
          out.lo = Bounds(binary->a).lo >= 0 ? 0 : 1 - *divisor;
        }
        break;
      case BinaryOp::kMin:
      case BinaryOp::kMax: {
        const Interval a = Bounds(binary->a), b = Bounds(binary->b);
        out = binary->op == BinaryOp::kMin
                  ? Interval{std::min(a.lo, b.lo), std::min(a.hi, b.hi)}
                  : Interval{std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
        break;
      }
      default:
        break;
    }
  } else if (const auto* cast = As<ir::CastNode>(atom)) {
    const ir::DataType from = cast->value->dtype;
    if (from.is_bool()) {
      out = {0, 1};
    } else if (from.is_uint() && from.bits <= 32) {
      out = {0, (int64_t{1} << from.bits) - 1};
    } else if (from.is_int() && from.bits <= 32) {
      out = {-(int64_t{1} << (from.bits - 1)),
             (int64_t{1} << (from.bits - 1)) - 1};
    }
  } else if (const auto* call = As<ir::CallNode>(atom)) {
    if (call->op == ir::Intrinsic::kIfThenElse) {
      const Interval a = Bounds(call->args[1]), b = Bounds(call->args[2]);
      out = {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
    }
  } else if (const auto* select = As<ir::SelectNode>(atom)) {
    const Interval a = Bounds(select->true_value);
    const Interval b = Bounds(select->false_value);
    out = {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
  }
  intersect_facts();
  return out;
}

// --- Linear forms --------------------------------------------------------

Linear IndexMath::Decompose(const Expr& expr) {
  Linear out;
  if (const auto value = ir::AsInt(expr)) {
    out.constant = *value;
    return out;
  }
  const auto* binary = As<BinaryNode>(expr);
  if (binary == nullptr || !IsIndex(expr)) {
    const Expr atom = expr->kind == ExprKind::kVar ? expr : Simplify(expr);
    if (const auto value = ir::AsInt(atom)) {
      out.constant = *value;
    } else if (atom->kind == ExprKind::kVar) {
      // A variable that can take one value only is that value.
      const Interval known = AtomBounds(atom);
      if (known.lo == known.hi) {
        out.constant = known.lo;
      } else {
        out.AddTerm(atom, 1);
      }
    } else {
      out.AddTerm(atom, 1);
    }
    return out;
  }
  Linear a = Decompose(binary->a);
  Linear b = Decompose(binary->b);
  const auto opaque = [&] {
    out.AddTerm(ir::FoldBinary(binary->op, a.ToExpr(), b.ToExpr()), 1);
    return out;
  };
  switch (binary->op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
      a.Add(b, binary->op == BinaryOp::kAdd ? 1 : -1);
      Recombine(a);
      return a;
    case BinaryOp::kMul:
      if (a.is_constant()) std::swap(a, b);
      if (!b.is_constant()) return opaque();
      out.Add(a, b.constant);
      return out;
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
      if (!b.is_constant() || b.constant <= 0) return opaque();
      return DecomposeDivision(a, b.constant,
                               binary->op == BinaryOp::kFloorMod);
    case BinaryOp::kDiv:
    case BinaryOp::kMod:
      // Truncating and flooring agree where nothing is negative.
      if (b.is_constant() && b.constant > 0 && Bounds(a).lo >= 0) {
        return DecomposeDivision(a, b.constant, binary->op == BinaryOp::kMod);
      }
      return opaque();
    case BinaryOp::kMin:
    case BinaryOp::kMax: {
      Linear difference = a;
      difference.Add(b, -1);
      const Interval bounds = Bounds(difference);
      if (bounds.hi <= 0) return binary->op == BinaryOp::kMin ? a : b;
      if (bounds.lo >= 0) return binary->op == BinaryOp::kMin ? b : a;
      return opaque();
    }
    default: {
      Expr folded = ir::FoldBinary(binary->op, a.ToExpr(), b.ToExpr());
      if (const auto value = ir::AsInt(folded)) {
        out.constant = *value;
      } else {
        out.AddTerm(folded, 1);
      }
      return out;
    }
  }
}

// n = divisor * quotient + rest, with every multiple of the divisor taken out
// of the rest; what remains is decided by its bounds where they allow it.
Linear IndexMath::DecomposeDivision(const Linear& numerator, int64_t divisor,
                                    bool modulo) {
  Linear quotient, rest;
  int64_t common = divisor;
  for (const auto& [atom, coefficient] : numerator.terms) {
    if (coefficient % divisor == 0) {
      quotient.AddTerm(atom, coefficient / divisor);
    } else {
      rest.AddTerm(atom, coefficient);
      common = std::gcd(common, coefficient);
    }
  }
  rest.constant = FloorRest(numerator.constant, divisor);
  quotient.constant = FloorDivide(numerator.constant, divisor);
  const Interval bounds = Bounds(rest);
  if (bounds.bounded() &&
      FloorDivide(bounds.lo, divisor) == FloorDivide(bounds.hi, divisor)) {
    const int64_t whole = FloorDivide(bounds.lo, divisor);
    if (!modulo) {
      quotient.constant += whole;
      return quotient;
    }
    rest.constant -= whole * divisor;
    return rest;
  }
  Linear out;
  // floor((g * x + c) / (g * d)) = floor((x + floor(c / g)) / d), and the
  // remainder g * ((x + floor(c / g)) mod d) + c mod g.
  int64_t leftover = 0;
  if (common > 1) {
    leftover = FloorRest(rest.constant, common);
    Linear reduced;
    for (const auto& [atom, coefficient] : rest.terms) {
      reduced.AddTerm(atom, coefficient / common);
    }
    reduced.constant = FloorDivide(rest.constant, common);
    rest = std::move(reduced);
    divisor /= common;
  }
  if (rest.terms.size() == 1 && rest.constant == 0 &&
      rest.terms[0].second == 1) {
    const auto* inner = As<BinaryNode>(rest.terms[0].first);
    const auto inner_divisor =
        inner != nullptr ? ir::AsInt(inner->b) : std::nullopt;
    if (inner != nullptr && inner_divisor && *inner_divisor > 0) {
      int64_t product;
      if (!modulo && inner->op == BinaryOp::kFloorDiv &&
          !__builtin_mul_overflow(*inner_divisor, divisor, &product)) {
        // (x // a) // b = x // (a * b)
        out.AddTerm(ir::FloorDiv(inner->a, ir::IntConst(product)), 1);
        out.Add(quotient, 1);
        return out;
      }
      if (modulo && inner->op == BinaryOp::kFloorMod &&
          *inner_divisor % divisor == 0) {
        // (x % (a * b)) % b = x % b
        out.Add(DecomposeDivision(Decompose(inner->a), divisor, true), common);
        out.constant += leftover;
        return out;
      }
    }
  }
  const Expr atom =
      ir::FoldBinary(modulo ? BinaryOp::kFloorMod : BinaryOp::kFloorDiv,
                     rest.ToExpr(), ir::IntConst(divisor));
  const Interval known = AtomBounds(atom);
  Linear value;
  if (known.lo == known.hi) {
    value.constant = known.lo;
  } else {
    value.AddTerm(atom, 1);
  }
  out.Add(value, modulo ? common : 1);
  if (modulo) {
    out.constant += leftover;
  } else {
    out.Add(quotient, 1);
  }
  return out;
}

// k * d * (x // d) + k * (x % d)  ->  k * x
void IndexMath::Recombine(Linear& linear) {
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < linear.terms.size() && !changed; ++i) {
      const auto [atom, coefficient] = linear.terms[i];
      const auto* modulo = As<BinaryNode>(atom);
      if (modulo == nullptr || modulo->op != BinaryOp::kFloorMod) continue;
      const auto divisor = ir::AsInt(modulo->b);
      if (!divisor || *divisor <= 0) continue;
      Linear value = Decompose(modulo->a);
      const Linear quotient = DecomposeDivision(value, *divisor, false);
      if (quotient.terms.size() != 1 || quotient.terms[0].second != 1 ||
          quotient.constant != 0) {
        continue;
      }
      for (size_t j = 0; j < linear.terms.size(); ++j) {
        if (linear.terms[j].second != coefficient * *divisor ||
            !SameExpr(linear.terms[j].first, quotient.terms[0].first)) {
          continue;
        }
        linear.terms.erase(linear.terms.begin() + std::max(i, j));
        linear.terms.erase(linear.terms.begin() + std::min(i, j));
        linear.Add(value, coefficient);
        changed = true;
        break;
      }
    }
  }
}

std::optional<int64_t> IndexMath::Difference(const Expr& a, const Expr& b) {
  Linear difference = Decompose(a);
  difference.Add(Decompose(b), -1);
  Recombine(difference);
  if (!difference.is_constant()) return std::nullopt;
  return difference.constant;
}

}  // namespace tilefarm::lower
