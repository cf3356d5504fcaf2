#include "compiler/ir/affine.h"

#include <vector>

#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::ir {
namespace {

// sum(coefficient * term) + constant; a term is a variable or any expression
// that is not linear.
struct Affine {
  std::vector<std::pair<Expr, int64_t>> terms;
  int64_t constant = 0;
  bool overflow = false;

  void AddConstant(int64_t value) {
    overflow |= __builtin_add_overflow(constant, value, &constant);
  }
  void AddTerm(const Expr& term, int64_t coefficient) {
    for (auto& [known, count] : terms) {
      if (known == term || StructuralEqual(known, term)) {
        overflow |= __builtin_add_overflow(count, coefficient, &count);
        return;
      }
    }
    terms.emplace_back(term, coefficient);
  }
};

void Accumulate(const Expr& expr, int64_t scale, Affine& out) {
  if (const auto value = AsInt(expr)) {
    int64_t product;
    out.overflow |= __builtin_mul_overflow(*value, scale, &product);
    if (!out.overflow) out.AddConstant(product);
    return;
  }
  if (const auto* binary = As<BinaryNode>(expr)) {
    if (binary->op == BinaryOp::kAdd) {
      Accumulate(binary->a, scale, out);
      Accumulate(binary->b, scale, out);
      return;
    }
    if (binary->op == BinaryOp::kSub && scale != INT64_MIN) {
      Accumulate(binary->a, scale, out);
      Accumulate(binary->b, -scale, out);
      return;
    }
    if (binary->op == BinaryOp::kMul) {
      const auto left = AsInt(binary->a);
      const auto right = AsInt(binary->b);
      if (left || right) {
        int64_t product;
        out.overflow |=
            __builtin_mul_overflow(left ? *left : *right, scale, &product);
        if (!out.overflow) {
          Accumulate(left ? binary->b : binary->a, product, out);
        }
        return;
      }
    }
  }
  out.AddTerm(expr, scale);
}

bool UsesAny(const Expr& expr, const VarBounds& bounds) {
  bool found = false;
  PostOrderExprs(expr, [&](const Expr& e) {
    const auto* var = As<VarNode>(e);
    found |= var != nullptr && bounds.contains(var);
  });
  return found;
}

}  // namespace

std::optional<int64_t> ConstDifference(const Expr& a, const Expr& b) {
  if (a == b) return 0;
  if (!a->dtype.is_integral() || a->dtype != b->dtype) return std::nullopt;
  Affine sum;
  Accumulate(a, 1, sum);
  Accumulate(b, -1, sum);
  if (sum.overflow) return std::nullopt;
  for (const auto& [term, count] : sum.terms) {
    if (count != 0) return std::nullopt;
  }
  return sum.constant;
}

std::optional<std::pair<Expr, Expr>> BoundsOver(const Expr& expr,
                                                const VarBounds& bounds) {
  if (!UsesAny(expr, bounds)) return std::pair(expr, expr);
  if (const auto* var = As<VarNode>(expr)) {
    const auto& [low, high] = bounds.at(var);
    return std::pair(IntConst(low, var->dtype), IntConst(high, var->dtype));
  }
  if (const auto* cast = As<CastNode>(expr)) {
    if (!cast->dtype.is_index() || !cast->value->dtype.is_int()) {
      return std::nullopt;
    }
    auto inner = BoundsOver(cast->value, bounds);
    if (!inner) return std::nullopt;
    return std::pair(MakeCast(cast->dtype, inner->first),
                     MakeCast(cast->dtype, inner->second));
  }
  if (const auto* select = As<SelectNode>(expr)) {
    const auto a = BoundsOver(select->true_value, bounds);
    const auto b = BoundsOver(select->false_value, bounds);
    if (!a || !b || !AsInt(a->first) || !AsInt(a->second) || !AsInt(b->first) ||
        !AsInt(b->second)) {
      return std::nullopt;
    }
    return std::pair(Min(a->first, b->first), Max(a->second, b->second));
  }
  const auto* binary = As<BinaryNode>(expr);
  if (binary == nullptr || !binary->dtype.is_integral()) return std::nullopt;
  const auto a = BoundsOver(binary->a, bounds);
  const auto b = BoundsOver(binary->b, bounds);
  if (!a || !b) return std::nullopt;
  const auto build = [&](const Expr& x, const Expr& y) {
    return FoldBinary(binary->op, x, y);
  };
  const auto constant = AsInt(binary->b);
  switch (binary->op) {
    case BinaryOp::kAdd:
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      return std::pair(build(a->first, b->first), build(a->second, b->second));
    case BinaryOp::kSub:
      return std::pair(build(a->first, b->second), build(a->second, b->first));
    case BinaryOp::kMul: {
      const auto left = AsInt(binary->a);
      if (!constant && !left) return std::nullopt;
      const Expr low = build(a->first, b->first);
      const Expr high = build(a->second, b->second);
      return (constant ? *constant : *left) >= 0 ? std::pair(low, high)
                                                 : std::pair(high, low);
    }
    case BinaryOp::kFloorDiv:
      if (!constant || *constant <= 0) return std::nullopt;
      return std::pair(build(a->first, binary->b), build(a->second, binary->b));
    case BinaryOp::kFloorMod: {
      if (!constant || *constant <= 0) return std::nullopt;
      const auto low = AsInt(a->first);
      const auto high = AsInt(a->second);
      if (low && high && *low >= 0 && *high < *constant) return a;
      return std::pair(IntConst(0, binary->dtype),
                       IntConst(*constant - 1, binary->dtype));
    }
    default:
      return std::nullopt;
  }
}

}  // namespace tilefarm::ir
