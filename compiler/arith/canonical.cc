#include "compiler/arith/canonical.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

namespace tilefarm::arith {
namespace {

using ir::BinaryNode;
using ir::BinaryOp;
using ir::Expr;
using ir::ExprKind;

bool SameSplit(const Term& a, const Term& b) {
  return a.lower == b.lower && a.upper == b.upper;
}

bool Order(const Term& a, const Term& b) {
  if (a.scale != b.scale) return a.scale > b.scale;
  if (a.lower != b.lower) return a.lower > b.lower;
  const uint64_t x = static_cast<uint64_t>(a.upper) - 1;
  const uint64_t y = static_cast<uint64_t>(b.upper) - 1;
  return x > y;
}

// One value: a variable, an opaque expression, or a part of either.
bool IsAtom(const Sum& sum) {
  return sum.base == 0 && sum.terms.size() == 1 && sum.terms[0].scale == 1;
}

}  // namespace

bool IsArithmetic(const Expr& expr) {
  const auto* node = ir::As<BinaryNode>(expr);
  if (node == nullptr || !node->dtype.is_index()) return false;
  switch (node->op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
      return true;
    case BinaryOp::kMul:
      return ir::As<ir::IntConstNode>(node->b) != nullptr;
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod: {
      const auto* constant = ir::As<ir::IntConstNode>(node->b);
      return constant != nullptr && constant->value > 0;
    }
    default:
      return false;
  }
}

int64_t Canonicalizer::MulChecked(int64_t a, int64_t b) {
  int64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out) || out == INT64_MIN) overflow_ = true;
  return out;
}

int64_t Canonicalizer::AddChecked(int64_t a, int64_t b) {
  int64_t out = 0;
  if (__builtin_add_overflow(a, b, &out) || out == INT64_MIN) overflow_ = true;
  return out;
}

bool Canonicalizer::Completes(const Term& high, const Term& low) {
  const bool clean =
      high.upper == Term::kNoUpper || high.upper % high.lower == 0;
  return low.upper == high.lower && clean && high.lower % low.lower == 0 &&
         high.scale == MulChecked(low.scale, high.lower / low.lower);
}

bool Canonicalizer::Congruent(const Expr& a, const Expr& b, int64_t divisor) {
  const Sum difference = Difference(ToSum(a), ToSum(b));
  // x % u is x, modulo what divides u.
  Sum rest;
  rest.base = difference.base;
  for (Term term : difference.terms) {
    if (term.lower == 1 && term.upper != Term::kNoUpper &&
        MulChecked(term.scale, term.upper) % divisor == 0) {
      term.upper = Term::kNoUpper;
    }
    AddTerm(rest, std::move(term));
  }
  Normalize(rest);
  return rest.base % divisor == 0 &&
         std::ranges::all_of(rest.terms, [&](const Term& term) {
           return term.scale % divisor == 0;
         });
}

void Canonicalizer::AddTerm(Sum& to, Term term) {
  if (term.scale == 0) return;
  for (size_t i = 0; i < to.terms.size(); ++i) {
    Term& other = to.terms[i];
    if (other.index != term.index && !ExprEqual(other.index, term.index)) {
      // (8 * i + j) % 3 has become (2 * i + j) % 3.
      for (const auto& [high, low] :
           {std::pair{&other, &term}, std::pair{&term, &other}}) {
        if (Completes(*high, *low) &&
            Congruent(high->index, low->index, high->lower)) {
          Term merged{high->index, low->scale, low->lower, high->upper};
          to.terms.erase(to.terms.begin() + i);
          return AddTerm(to, std::move(merged));
        }
      }
      continue;
    }
    if (SameSplit(other, term)) {
      other.scale = AddChecked(other.scale, term.scale);
      if (other.scale == 0) to.terms.erase(to.terms.begin() + i);
      return;
    }
    for (int swap = 0; swap < 2; ++swap) {
      const Term& high = swap == 0 ? other : term;
      const Term& low = swap == 0 ? term : other;
      if (Completes(high, low)) {
        Term merged{low.index, low.scale, low.lower, high.upper};
        to.terms.erase(to.terms.begin() + i);
        return AddTerm(to, std::move(merged));
      }
      // whole: (x % u) // m * t; part: (x % u) // l * s, s == -t * (l / m).
      const Term& whole = high;
      const Term& part = low;
      if (whole.upper == part.upper && part.lower > whole.lower &&
          part.lower % whole.lower == 0 &&
          (whole.upper == Term::kNoUpper || whole.upper % part.lower == 0) &&
          part.scale == -MulChecked(whole.scale, part.lower / whole.lower)) {
        Term rest{whole.index, whole.scale, whole.lower, part.lower};
        to.terms.erase(to.terms.begin() + i);
        return AddTerm(to, std::move(rest));
      }
    }
  }
  to.terms.push_back(std::move(term));
}

void Canonicalizer::Add(Sum& to, const Sum& from, int64_t scale) {
  to.base = AddChecked(to.base, MulChecked(from.base, scale));
  for (const Term& term : from.terms) {
    Term scaled = term;
    scaled.scale = MulChecked(term.scale, scale);
    AddTerm(to, std::move(scaled));
  }
  Normalize(to);
}

Sum Canonicalizer::Difference(const Sum& a, const Sum& b) {
  Sum out = a;
  Add(out, b, -1);
  return out;
}

void Canonicalizer::Normalize(Sum& sum) {
  for (size_t i = 0; i < sum.terms.size(); ++i) {
    if (!IsArithmetic(sum.terms[i].index)) continue;
    const Term term = sum.terms[i];
    if (term.is_plain()) {
      sum.terms.erase(sum.terms.begin() + i);
      return Add(sum, ToSum(term.index), term.scale);
    }
    // k * x + ... - k * l * (x // l) for an x that is a sum.
    if (term.upper != Term::kNoUpper || term.scale % term.lower != 0) continue;
    const int64_t k = -(term.scale / term.lower);
    const Sum index = ToSum(term.index);
    bool contained = !index.terms.empty();
    for (const Term& part : index.terms) {
      const int64_t scale = MulChecked(part.scale, k);
      contained &= std::any_of(
          sum.terms.begin(), sum.terms.end(), [&](const Term& have) {
            return have.scale == scale && SameSplit(have, part) &&
                   ExprEqual(have.index, part.index);
          });
    }
    if (!contained) continue;
    sum.terms.erase(sum.terms.begin() + i);
    Add(sum, index, -k);
    AddTerm(sum, Term{term.index, k, 1, term.lower});
    return Normalize(sum);
  }
}

Expr Canonicalizer::ToExpr(const Term& term, int64_t scale) {
  Expr out = term.index;
  if (term.upper != Term::kNoUpper) {
    out = ir::FloorMod(std::move(out), ir::IntConst(term.upper));
  }
  if (term.lower != 1) {
    out = ir::FloorDiv(std::move(out), ir::IntConst(term.lower));
  }
  return scale == 1 ? out : std::move(out) * scale;
}

Term Canonicalizer::ToTerm(const Expr& atom, int64_t scale) {
  Term term{atom, scale};
  const auto split = [&term](BinaryOp op) -> int64_t {
    const auto* node = ir::As<BinaryNode>(term.index);
    if (node == nullptr || node->op != op) return 0;
    const auto* constant = ir::As<ir::IntConstNode>(node->b);
    if (constant == nullptr || constant->value <= 0) return 0;
    const int64_t value = constant->value;
    term.index = Expr(node->a);
    return value;
  };
  if (const int64_t lower = split(BinaryOp::kFloorDiv)) term.lower = lower;
  if (const int64_t upper = split(BinaryOp::kFloorMod)) term.upper = upper;
  return term;
}

Expr Canonicalizer::ToExpr(const Sum& sum) {
  if (sum.terms.empty()) return ir::IntConst(sum.base);
  if (sum.terms.size() == 1 && sum.base == 0 && sum.terms[0].scale > 0) {
    return ToExpr(sum.terms[0], sum.terms[0].scale);
  }
  absl::InlinedVector<Term, 4> terms = sum.terms;
  std::stable_sort(terms.begin(), terms.end(), Order);
  Expr out;
  for (const Term& term : terms) {
    if (term.scale <= 0) break;
    Expr value = ToExpr(term, term.scale);
    out = out == nullptr ? value : std::move(out) + std::move(value);
  }
  if (sum.base > 0) {
    Expr base = ir::IntConst(sum.base);
    out = out == nullptr ? base : std::move(out) + std::move(base);
  }
  for (const Term& term : terms) {
    if (term.scale > 0) continue;
    if (out == nullptr) {
      // No positive term: x * -1 is more readable than 0 - x.
      out = ToExpr(term, term.scale);
    } else {
      out = std::move(out) - ToExpr(term, -term.scale);
    }
  }
  if (sum.base < 0) out = std::move(out) - ir::IntConst(-sum.base);
  return out;
}

void Canonicalizer::FoldKnown(Sum& sum) {
  for (size_t i = 0; i < sum.terms.size();) {
    const Term& term = sum.terms[i];
    // Variables with one value were already replaced.
    const bool is_variable =
        term.is_plain() && term.index->kind == ExprKind::kVar;
    const ConstBound bound = is_variable ? ConstBound() : BoundOfAtom(term);
    if (!bound.is_single()) {
      ++i;
      continue;
    }
    sum.base = AddChecked(sum.base, MulChecked(bound.min, term.scale));
    sum.terms.erase(sum.terms.begin() + i);
  }
}

Sum Canonicalizer::Opaque(const Expr& expr) {
  Sum out;
  out.terms.push_back(Term{expr});
  return out;
}

// (index % upper) // lower for a sum of several terms.
Sum Canonicalizer::Split(const Sum& index, int64_t lower, int64_t upper) {
  Sum out;
  out.terms.push_back(Term{ToExpr(index), 1, lower, upper});
  return out;
}

Sum Canonicalizer::DivConst(Sum sum, int64_t divisor) {
  if (divisor == 1) return sum;
  if (sum.is_const()) {
    Sum out;
    out.base = FloorDivInt(sum.base, divisor);
    return out;
  }
  // Terms that the divisor divides leave the quotient; the rest stays.
  Sum whole;
  Sum rest;
  for (const Term& term : sum.terms) {
    if (term.scale % divisor == 0) {
      Term part = term;
      part.scale /= divisor;
      whole.terms.push_back(std::move(part));
    } else {
      rest.terms.push_back(term);
    }
  }
  // Keep a constant with the rest as [0, divisor): x + 5 over 4 is
  // (x + 1) // 4 + 1.
  whole.base = FloorDivInt(sum.base, divisor);
  rest.base = FloorModInt(sum.base, divisor);
  ConstBound bound = BoundOf(rest);
  if (bound.is_bounded() &&
      FloorDivInt(bound.min, divisor) == FloorDivInt(bound.max, divisor)) {
    whole.base = AddChecked(whole.base, FloorDivInt(bound.min, divisor));
    return whole;
  }
  if (whole.terms.empty()) {
    whole.base = 0;
    rest.base = sum.base;
    if (std::abs(sum.base) >= divisor || sum.base < 0) {
      whole.base = FloorDivInt(sum.base, divisor);
      rest.base = FloorModInt(sum.base, divisor);
    }
  }
  // (g * e + r) // (g * d) is (e + r // g) // d, r // g being constant.
  int64_t gcd = divisor;
  absl::InlinedVector<Term, 4> terms = rest.terms;
  std::stable_sort(terms.begin(), terms.end(),
                   [](const Term& a, const Term& b) {
                     return std::abs(a.scale) > std::abs(b.scale);
                   });
  size_t best_count = 0;
  int64_t best_gcd = 1;
  for (size_t count = 1; count <= terms.size(); ++count) {
    gcd = std::gcd(gcd, terms[count - 1].scale);
    if (gcd == 1) break;
    Sum low;
    low.base = FloorModInt(rest.base, gcd);
    low.terms.assign(terms.begin() + count, terms.end());
    const ConstBound low_bound = BoundOf(low);
    if (low_bound.min >= 0 && low_bound.max < gcd) {
      best_count = count;
      best_gcd = gcd;
      break;
    }
  }
  if (best_gcd > 1) {
    Sum reduced;
    reduced.base = FloorDivInt(rest.base, best_gcd);
    for (size_t i = 0; i < best_count; ++i) {
      Term term = terms[i];
      term.scale /= best_gcd;
      reduced.terms.push_back(std::move(term));
    }
    Normalize(reduced);
    Add(whole, DivConst(std::move(reduced), divisor / best_gcd), 1);
    return whole;
  }
  if (IsAtom(rest)) {
    Term term = rest.terms[0];
    term.lower = MulChecked(term.lower, divisor);
    AddTerm(whole, std::move(term));
    Normalize(whole);
    return whole;
  }
  Add(whole, Split(rest, divisor, Term::kNoUpper), 1);
  return whole;
}

Sum Canonicalizer::ModConst(Sum sum, int64_t divisor) {
  Sum rest;
  rest.base = FloorModInt(sum.base, divisor);
  for (const Term& term : sum.terms) {
    Term part = term;
    // Small negative scales stay as they are, so that x - y keeps its form.
    if (std::abs(part.scale) >= divisor) {
      part.scale = FloorModInt(part.scale, divisor);
    }
    if (part.scale != 0) rest.terms.push_back(std::move(part));
  }
  if (rest.is_const()) return rest;
  const ConstBound bound = BoundOf(rest);
  if (bound.is_bounded() &&
      FloorDivInt(bound.min, divisor) == FloorDivInt(bound.max, divisor)) {
    rest.base = AddChecked(
        rest.base, -MulChecked(FloorDivInt(bound.min, divisor), divisor));
    return rest;
  }
  // (g * e + r) % (g * d) is g * (e % d) + r for 0 <= r < g.
  int64_t gcd = divisor;
  absl::InlinedVector<Term, 4> terms = rest.terms;
  std::stable_sort(terms.begin(), terms.end(),
                   [](const Term& a, const Term& b) {
                     return std::abs(a.scale) > std::abs(b.scale);
                   });
  for (size_t count = 1; count <= terms.size(); ++count) {
    gcd = std::gcd(gcd, terms[count - 1].scale);
    if (gcd == 1) break;
    Sum low;
    low.base = FloorModInt(rest.base, gcd);
    low.terms.assign(terms.begin() + count, terms.end());
    const ConstBound low_bound = BoundOf(low);
    if (low_bound.min < 0 || low_bound.max >= gcd) continue;
    Sum reduced;
    reduced.base = FloorDivInt(rest.base, gcd);
    for (size_t i = 0; i < count; ++i) {
      Term term = terms[i];
      term.scale /= gcd;
      reduced.terms.push_back(std::move(term));
    }
    Normalize(reduced);
    Sum out;
    Add(out, ModConst(std::move(reduced), divisor / gcd), gcd);
    Add(out, low, 1);
    return out;
  }
  if (IsAtom(rest)) {
    Term term = rest.terms[0];
    const int64_t upper = MulChecked(term.lower, divisor);
    if (term.upper == Term::kNoUpper || term.upper % upper == 0) {
      term.upper = upper;
      Sum out;
      out.terms.push_back(std::move(term));
      return out;
    }
  }
  return Split(rest, 1, divisor);
}

bool Canonicalizer::NonNegative(const Sum& sum) {
  if (BoundOf(sum).min >= 0) return !overflow_;
  // A fact that contains a minimum would use facts again, endlessly.
  if (in_fact_) return false;
  for (const Expr& fact : analyzer_.facts_) {
    in_fact_ = true;
    const Sum known = ToSum(fact);
    in_fact_ = false;
    const Sum rest = Difference(sum, known);
    if (BoundOf(rest).min >= 0) return !overflow_;
  }
  return false;
}

Sum Canonicalizer::MinMax(const BinaryNode& node, const Expr& self) {
  const bool is_min = node.op == BinaryOp::kMin;
  Sum a = ToSum(node.a);
  Sum b = ToSum(node.b);
  const bool wraps = MayWrap(node.a) || MayWrap(node.b);
  if (!wraps) {
    const Sum a_minus_b = Difference(a, b);
    if (NonNegative(a_minus_b)) return is_min ? b : a;
    Sum b_minus_a;
    Add(b_minus_a, a_minus_b, -1);
    if (NonNegative(b_minus_a)) return is_min ? a : b;
  }
  // Factor out common terms: min(x + y, x + z) is x + min(y, z).
  Sum common;
  for (size_t i = 0; !wraps && i < a.terms.size();) {
    const auto twin =
        std::find_if(b.terms.begin(), b.terms.end(), [&](const Term& other) {
          return other.scale == a.terms[i].scale &&
                 SameSplit(other, a.terms[i]) &&
                 ExprEqual(other.index, a.terms[i].index);
        });
    if (twin == b.terms.end()) {
      ++i;
      continue;
    }
    common.terms.push_back(a.terms[i]);
    b.terms.erase(twin);
    a.terms.erase(a.terms.begin() + i);
  }
  const Expr x = ToExpr(a);
  const Expr y = ToExpr(b);
  const bool same = ExprEqual(x, node.a) && ExprEqual(y, node.b);
  Add(common, Opaque(same ? self : ir::MakeBinary(node.op, x, y)), 1);
  return common;
}

Sum Canonicalizer::BinarySum(const BinaryNode& node, const Expr& self) {
  switch (node.op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub: {
      Sum out = ToSum(node.a);
      Add(out, ToSum(node.b), node.op == BinaryOp::kAdd ? 1 : -1);
      return out;
    }
    case BinaryOp::kMul: {
      const Sum a = ToSum(node.a);
      const Sum b = ToSum(node.b);
      Sum out;
      if (b.is_const()) {
        Add(out, a, b.base);
        return out;
      }
      if (a.is_const()) {
        Add(out, b, a.base);
        return out;
      }
      return Opaque(ToExpr(a) * ToExpr(b));
    }
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
    case BinaryOp::kDiv:
    case BinaryOp::kMod: {
      const bool is_div =
          node.op == BinaryOp::kFloorDiv || node.op == BinaryOp::kDiv;
      const bool truncates =
          node.op == BinaryOp::kDiv || node.op == BinaryOp::kMod;
      Sum a = ToSum(node.a);
      const Sum b = ToSum(node.b);
      if (b.is_const() && b.base > 0 && (!truncates || NonNegative(a))) {
        // What may wrap is one value, which has no parts to divide.
        if (b.base > 1 && !IsAtom(a) && MayWrap(node.a)) {
          return is_div ? Split(a, b.base, Term::kNoUpper)
                        : Split(a, 1, b.base);
        }
        return is_div ? DivConst(std::move(a), b.base)
                      : ModConst(std::move(a), b.base);
      }
      Expr x = ToExpr(a);
      Expr y = ToExpr(b);
      if (ExprEqual(x, node.a) && ExprEqual(y, node.b)) return Opaque(self);
      return Opaque(ir::FoldBinary(node.op, std::move(x), std::move(y)));
    }
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      return MinMax(node, self);
    default:
      return Opaque(SimplifyChildren(self));
  }
}

Sum Canonicalizer::ToSum(const Expr& expr) {
  switch (expr->kind) {
    case ExprKind::kIntConst: {
      Sum out;
      out.base = static_cast<const ir::IntConstNode&>(*expr).value;
      if (out.base == INT64_MIN) overflow_ = true;
      return out;
    }
    case ExprKind::kVar: {
      const auto* var = static_cast<const ir::VarNode*>(expr.get());
      if (!analyzer_.values_.empty()) {
        const auto value = analyzer_.values_.find(var);
        if (value != analyzer_.values_.end()) return ToSum(value->second);
      }
      const auto bound = analyzer_.bounds_.find(var);
      if (bound != analyzer_.bounds_.end() && bound->second.is_single()) {
        Sum out;
        out.base = bound->second.min;
        return out;
      }
      return Opaque(expr);
    }
    case ExprKind::kBinary: {
      Sum out = BinarySum(static_cast<const BinaryNode&>(*expr), expr);
      if (scoped_ != nullptr && !scoped_->ranges.empty()) FoldKnown(out);
      return out;
    }
    default: {
      const Expr simple = SimplifyChildren(expr);
      if (simple->kind == ExprKind::kIntConst ||
          simple->kind == ExprKind::kVar || IsArithmetic(simple)) {
        return ToSum(simple);
      }
      return Opaque(simple);
    }
  }
}

}  // namespace tilefarm::arith
