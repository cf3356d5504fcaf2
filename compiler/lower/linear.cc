#include <algorithm>
#include <utility>

#include "compiler/lower/index_math.h"

namespace tilefarm::lower {
namespace {

using ir::As;
using ir::BinaryNode;
using ir::Expr;
using ir::ExprKind;

bool SameExprs(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), SameExpr);
}

}  // namespace

bool SameExpr(const Expr& a, const Expr& b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr || a->kind != b->kind ||
      a->dtype != b->dtype) {
    return false;
  }
  switch (a->kind) {
    case ExprKind::kVar:
      return false;
    case ExprKind::kIntConst:
      return As<ir::IntConstNode>(a)->value == As<ir::IntConstNode>(b)->value;
    case ExprKind::kFloatConst:
      return As<ir::FloatConstNode>(a)->value ==
             As<ir::FloatConstNode>(b)->value;
    case ExprKind::kBinary: {
      const auto *x = As<BinaryNode>(a), *y = As<BinaryNode>(b);
      return x->op == y->op && SameExpr(x->a, y->a) && SameExpr(x->b, y->b);
    }
    case ExprKind::kNot:
      return SameExpr(As<ir::NotNode>(a)->a, As<ir::NotNode>(b)->a);
    case ExprKind::kCast:
      return SameExpr(As<ir::CastNode>(a)->value, As<ir::CastNode>(b)->value);
    case ExprKind::kSelect: {
      const auto *x = As<ir::SelectNode>(a), *y = As<ir::SelectNode>(b);
      return SameExpr(x->condition, y->condition) &&
             SameExpr(x->true_value, y->true_value) &&
             SameExpr(x->false_value, y->false_value);
    }
    case ExprKind::kCall: {
      const auto *x = As<ir::CallNode>(a), *y = As<ir::CallNode>(b);
      return x->op == y->op && SameExprs(x->args, y->args);
    }
    case ExprKind::kLoad: {
      const auto *x = As<ir::LoadNode>(a), *y = As<ir::LoadNode>(b);
      return x->buffer == y->buffer && SameExprs(x->indices, y->indices) &&
             SameExpr(x->predicate, y->predicate);
    }
    case ExprKind::kLet:
      return false;
    case ExprKind::kRamp: {
      const auto *x = As<ir::RampNode>(a), *y = As<ir::RampNode>(b);
      return SameExpr(x->base, y->base) && SameExpr(x->stride, y->stride);
    }
    case ExprKind::kBroadcast:
      return SameExpr(As<ir::BroadcastNode>(a)->value,
                      As<ir::BroadcastNode>(b)->value);
  }
  return false;
}

// --- Linear --------------------------------------------------------------

void Linear::AddTerm(const Expr& atom, int64_t coefficient) {
  if (coefficient == 0) return;
  for (auto it = terms.begin(); it != terms.end(); ++it) {
    if (!SameExpr(it->first, atom)) continue;
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

Expr Linear::ToExpr() const {
  Expr out;
  for (const auto& [atom, coefficient] : terms) {
    if (coefficient < 0) continue;
    Expr term = atom * coefficient;
    out = out == nullptr ? std::move(term) : std::move(out) + std::move(term);
  }
  int64_t rest = constant;
  if (out == nullptr) {
    out = ir::IntConst(constant);
    rest = 0;
  }
  for (const auto& [atom, coefficient] : terms) {
    if (coefficient > 0) continue;
    out = std::move(out) - atom * -coefficient;
  }
  if (rest == 0) return out;
  return rest > 0 ? std::move(out) + rest : std::move(out) - -rest;
}

}  // namespace tilefarm::lower
