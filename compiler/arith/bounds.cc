// Constant bounds of expressions and canonical sums.
#include <algorithm>
#include <limits>

#include "compiler/arith/canonical.h"

namespace tilefarm::arith {
namespace {

using ir::BinaryOp;
using ir::Expr;

constexpr int64_t kPosInf = ConstBound::kPosInf;
constexpr int64_t kNegInf = ConstBound::kNegInf;

bool IsInf(int64_t x) { return x == kPosInf || x == kNegInf; }

int64_t Clamp(__int128 value) {
  if (value >= kPosInf) return kPosInf;
  if (value <= kNegInf) return kNegInf;
  return static_cast<int64_t>(value);
}

// `a` and `b` are both lower or both upper ends, so infinities of opposite sign
// do not occur together.
int64_t AddEnd(int64_t a, int64_t b) {
  if (IsInf(a)) return a;
  if (IsInf(b)) return b;
  return Clamp(static_cast<__int128>(a) + b);
}

int64_t MulEnd(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (IsInf(a) || IsInf(b)) return (a < 0) != (b < 0) ? kNegInf : kPosInf;
  return Clamp(static_cast<__int128>(a) * b);
}

int64_t NegEnd(int64_t a) {
  if (a == kPosInf) return kNegInf;
  if (a == kNegInf) return kPosInf;
  return -a;
}

int64_t DivEnd(int64_t a, int64_t divisor) {
  return IsInf(a) ? a : FloorDivInt(a, divisor);
}

ConstBound Plus(ConstBound a, ConstBound b) {
  return {AddEnd(a.min, b.min), AddEnd(a.max, b.max)};
}

ConstBound Negate(ConstBound a) { return {NegEnd(a.max), NegEnd(a.min)}; }

ConstBound Mul(ConstBound a, ConstBound b) {
  const int64_t ends[] = {MulEnd(a.min, b.min), MulEnd(a.min, b.max),
                          MulEnd(a.max, b.min), MulEnd(a.max, b.max)};
  return {*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4)};
}

ConstBound Div(ConstBound a, int64_t divisor) {
  return {DivEnd(a.min, divisor), DivEnd(a.max, divisor)};
}

ConstBound Mod(ConstBound a, int64_t divisor) {
  if (a.is_bounded() &&
      FloorDivInt(a.min, divisor) == FloorDivInt(a.max, divisor)) {
    return {FloorModInt(a.min, divisor), FloorModInt(a.max, divisor)};
  }
  return {0, divisor - 1};
}

ConstBound Hull(ConstBound a, ConstBound b) {
  return {std::min(a.min, b.min), std::max(a.max, b.max)};
}

ConstBound Intersected(ConstBound a, ConstBound b) {
  return {std::max(a.min, b.min), std::min(a.max, b.max)};
}

bool SameAtom(const Term& a, const Term& b) {
  return a.lower == b.lower && a.upper == b.upper &&
         ExprEqual(a.index, b.index);
}

// The bounds implied by the type alone.
ConstBound TypeBound(ir::DataType dtype) {
  if (dtype.is_bool()) return {0, 1};
  if (!dtype.is_integral() || dtype.bits >= 64) return {};
  if (dtype.is_uint()) return {0, (int64_t{1} << dtype.bits) - 1};
  const int64_t half = int64_t{1} << (dtype.bits - 1);
  return {-half, half - 1};
}

}  // namespace

ConstBound Divided(ConstBound bound, int64_t base, int64_t factor) {
  bound = Plus(bound, {NegEnd(base), NegEnd(base)});
  if (factor < 0) {
    bound = Negate(bound);
    factor = -factor;
  }
  // Rounded inwards.
  return {NegEnd(DivEnd(NegEnd(bound.min), factor)), DivEnd(bound.max, factor)};
}

ConstBound Canonicalizer::BoundOfAtom(const Term& term) {
  ConstBound bound = Bounds(term.index);
  const bool facts = scoped_ != nullptr && !scoped_->ranges.empty();
  if (facts && IsArithmetic(term.index)) {
    bound = Intersected(bound, BoundOf(ToSum(term.index)));
  }
  if (term.upper != Term::kNoUpper) bound = Mod(bound, term.upper);
  if (term.lower != 1) bound = Div(bound, term.lower);
  if (!facts || (term.is_plain() && ir::As<ir::VarNode>(term.index))) {
    return bound;
  }
  for (const ScopedFacts::Range& fact : scoped_->ranges) {
    if (fact.sum.terms.size() != 1) continue;
    const Term& known = fact.sum.terms[0];
    if (SameAtom(known, term)) bound = Intersected(bound, fact.bound);
  }
  return bound;
}

ConstBound Canonicalizer::BoundOf(const Term& term) {
  return Mul(BoundOfAtom(term), {term.scale, term.scale});
}

ConstBound Canonicalizer::BoundOf(const Sum& sum) {
  ConstBound bound{sum.base, sum.base};
  for (const Term& term : sum.terms) bound = Plus(bound, BoundOf(term));
  if (scoped_ == nullptr || scoped_->ranges.empty()) return bound;
  constexpr int kFactsOfOneSum = 3;
  return NarrowedBy(0, kFactsOfOneSum, sum, bound);
}

ConstBound Canonicalizer::NarrowedBy(size_t first, int depth, const Sum& sum,
                                     ConstBound bound) {
  if (depth == 0 || sum.terms.size() < 2) return bound;
  const auto& ranges = scoped_->ranges;
  for (size_t i = first; i < ranges.size(); ++i) {
    const auto& parts = ranges[i].sum.terms;
    if (parts.size() < 2 || parts.size() > sum.terms.size()) continue;
    // Check whether this sum contains a multiple of the fact's sum.
    int64_t ratio = 0;
    Sum rest = sum;
    for (const Term& part : parts) {
      const auto found =
          std::find_if(rest.terms.begin(), rest.terms.end(),
                       [&](const Term& term) { return SameAtom(term, part); });
      if (found == rest.terms.end() || found->scale % part.scale != 0 ||
          (ratio != 0 && found->scale / part.scale != ratio)) {
        ratio = 0;
        break;
      }
      ratio = found->scale / part.scale;
      rest.terms.erase(found);
    }
    if (ratio == 0) continue;
    ConstBound others{rest.base, rest.base};
    for (const Term& term : rest.terms) others = Plus(others, BoundOf(term));
    others = NarrowedBy(i + 1, depth - 1, rest, others);
    bound =
        Intersected(bound, Plus(Mul(ranges[i].bound, {ratio, ratio}), others));
  }
  return bound;
}

ConstBound Canonicalizer::Bounds(const Expr& expr) {
  switch (expr->kind) {
    case ir::ExprKind::kIntConst: {
      const int64_t value = static_cast<const ir::IntConstNode&>(*expr).value;
      return {value, value};
    }
    case ir::ExprKind::kVar: {
      const auto* var = static_cast<const ir::VarNode*>(expr.get());
      const auto found = analyzer_.bounds_.find(var);
      if (found != analyzer_.bounds_.end()) return found->second;
      const auto value = analyzer_.values_.find(var);
      if (value != analyzer_.values_.end()) return Bounds(value->second);
      return TypeBound(expr->dtype);
    }
    case ir::ExprKind::kBinary: {
      const auto& node = static_cast<const ir::BinaryNode&>(*expr);
      if (node.dtype.is_bool()) return {0, 1};
      if (!node.dtype.is_index()) return TypeBound(node.dtype);
      const ConstBound a = Bounds(node.a);
      const ConstBound b = Bounds(node.b);
      const bool const_divisor = b.is_single() && b.min > 0;
      switch (node.op) {
        case BinaryOp::kAdd:
          return Plus(a, b);
        case BinaryOp::kSub:
          return Plus(a, Negate(b));
        case BinaryOp::kMul:
          return Mul(a, b);
        case BinaryOp::kFloorDiv:
          if (const_divisor) return Div(a, b.min);
          if (b.min > 0)
            return {std::min<int64_t>(a.min, 0), std::max<int64_t>(a.max, 0)};
          return {};
        case BinaryOp::kFloorMod:
          if (const_divisor) return Mod(a, b.min);
          if (b.min > 0) {
            return {0, IsInf(b.max) ? kPosInf : b.max - 1};
          }
          return {};
        case BinaryOp::kDiv:
          if (!const_divisor) return {};
          return {IsInf(a.min) ? a.min : a.min / b.min,
                  IsInf(a.max) ? a.max : a.max / b.min};
        case BinaryOp::kMod:
          if (!const_divisor) return {};
          if (a.min >= 0) return Mod(a, b.min);
          return {1 - b.min, b.min - 1};
        case BinaryOp::kMin:
          return {std::min(a.min, b.min), std::min(a.max, b.max)};
        case BinaryOp::kMax:
          return {std::max(a.min, b.min), std::max(a.max, b.max)};
        default:
          return {};
      }
    }
    case ir::ExprKind::kSelect: {
      const auto& node = static_cast<const ir::SelectNode&>(*expr);
      return Hull(Bounds(node.true_value), Bounds(node.false_value));
    }
    case ir::ExprKind::kCall: {
      const auto& node = static_cast<const ir::CallNode&>(*expr);
      if (node.op == ir::Intrinsic::kIfThenElse) {
        return Hull(Bounds(node.args[1]), Bounds(node.args[2]));
      }
      return TypeBound(expr->dtype);
    }
    case ir::ExprKind::kCast: {
      const auto& node = static_cast<const ir::CastNode&>(*expr);
      const ConstBound type = TypeBound(expr->dtype);
      if (!node.value->dtype.is_integral() && !node.value->dtype.is_bool()) {
        return type;
      }
      if (node.value->dtype.is_uint() && node.value->dtype.bits == 64) {
        return type;
      }
      const ConstBound value = Bounds(node.value);
      // If the value may not fit, the cast wraps.
      return value.min >= type.min && value.max <= type.max ? value : type;
    }
    default:
      return TypeBound(expr->dtype);
  }
}

}  // namespace tilefarm::arith
