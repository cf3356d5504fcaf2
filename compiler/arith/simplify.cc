// Simplification of expressions of any type: comparisons, logic, and operands
// of opaque nodes.
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "compiler/arith/canonical.h"
#include "compiler/arith/index_math.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::arith {
namespace {

using ir::BinaryNode;
using ir::BinaryOp;
using ir::Expr;
using ir::ExprKind;

// The mirrored comparison: a op b is b Mirrored(op) a.
BinaryOp Mirrored(BinaryOp op) {
  switch (op) {
    case BinaryOp::kLT:
      return BinaryOp::kGT;
    case BinaryOp::kLE:
      return BinaryOp::kGE;
    case BinaryOp::kGT:
      return BinaryOp::kLT;
    case BinaryOp::kGE:
      return BinaryOp::kLE;
    default:
      return op;
  }
}

}  // namespace

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

bool Canonicalizer::MayWrap(const Expr& expr) {
  bool has_data = false;
  ir::PostOrderExprs(expr, [&](const Expr& e) {
    const auto* var = ir::As<ir::VarNode>(e);
    has_data |= e->kind == ExprKind::kLoad || (var != nullptr && var->of_let);
  });
  if (!has_data) return false;
  bool wraps = false;
  ir::PostOrderExprs(expr, [&](const Expr& e) {
    const auto* node = ir::As<BinaryNode>(e);
    if (wraps || node == nullptr || !e->dtype.is_index() ||
        (node->op != BinaryOp::kAdd && node->op != BinaryOp::kSub &&
         node->op != BinaryOp::kMul)) {
      return;
    }
    const ConstBound bound = Bounds(e);
    wraps =
        bound.min == ConstBound::kNegInf || bound.max == ConstBound::kPosInf;
  });
  return wraps;
}

Expr Canonicalizer::SimplifyCompare(const BinaryNode& node, const Expr& self) {
  if (MayWrap(node.a) || MayWrap(node.b)) return SimplifyChildren(self);
  const Sum a = ToSum(node.a);
  const Sum b = ToSum(node.b);
  const Sum diff = Difference(a, b);
  const auto minus = [&](const Sum& sum, int64_t offset) {
    Sum out;
    out.base = offset;
    Add(out, sum, -1);
    return out;
  };
  const auto plus = [](Sum sum, int64_t offset) {
    sum.base += offset;
    return sum;
  };
  // Handles a - b >= 0, > 0, <= 0, < 0.
  switch (node.op) {
    case BinaryOp::kLT:
      if (NonNegative(minus(diff, -1))) return ir::BoolConst(true);
      if (NonNegative(diff)) return ir::BoolConst(false);
      break;
    case BinaryOp::kLE:
      if (NonNegative(minus(diff, 0))) return ir::BoolConst(true);
      if (NonNegative(plus(diff, -1))) return ir::BoolConst(false);
      break;
    case BinaryOp::kGT:
      if (NonNegative(plus(diff, -1))) return ir::BoolConst(true);
      if (NonNegative(minus(diff, 0))) return ir::BoolConst(false);
      break;
    case BinaryOp::kGE:
      if (NonNegative(diff)) return ir::BoolConst(true);
      if (NonNegative(minus(diff, -1))) return ir::BoolConst(false);
      break;
    default: {
      const bool is_eq = node.op == BinaryOp::kEQ;
      if (diff.is_const()) return ir::BoolConst((diff.base == 0) == is_eq);
      if (NonNegative(plus(diff, -1)) || NonNegative(minus(diff, -1))) {
        return ir::BoolConst(!is_eq);
      }
      if (NonNegative(diff) && NonNegative(minus(diff, 0))) {
        return ir::BoolConst(is_eq);
      }
      int64_t gcd = 0;
      for (const Term& term : diff.terms) gcd = std::gcd(gcd, term.scale);
      if (diff.base % gcd != 0) return ir::BoolConst(!is_eq);
      break;
    }
  }
  // Constants move to one side; terms on both sides cancel.
  Sum left = a;
  Sum right = b;
  if (b.is_const() || a.is_const()) {
    bool terms_left = b.is_const();
    if (const Sum& sum = terms_left ? left : right;
        !sum.is_const() &&
        std::all_of(sum.terms.begin(), sum.terms.end(),
                    [](const Term& t) { return t.scale < 0; })) {
      // c - x < d is -d < x - c.
      for (Sum* side : {&left, &right}) {
        Sum negated;
        Add(negated, *side, -1);
        *side = std::move(negated);
      }
      if (node.op != BinaryOp::kEQ && node.op != BinaryOp::kNE) {
        std::swap(left, right);
        terms_left = !terms_left;
      }
    }
    Sum& terms = terms_left ? left : right;
    Sum& constant = terms_left ? right : left;
    constant.base = AddChecked(constant.base, -terms.base);
    terms.base = 0;
    int64_t gcd = 0;
    for (const Term& term : terms.terms) gcd = std::gcd(gcd, term.scale);
    if (gcd > 1) {
      // g * x < c is x < ceil(c / g), g * x <= c is x <= floor(c / g).
      const BinaryOp op = terms_left ? node.op : Mirrored(node.op);
      const bool up = op == BinaryOp::kLT || op == BinaryOp::kGE;
      for (Term& term : terms.terms) term.scale /= gcd;
      constant.base = up ? -FloorDivInt(-constant.base, gcd)
                         : FloorDivInt(constant.base, gcd);
    }
  } else if (diff.terms.size() < a.terms.size() + b.terms.size()) {
    left = Sum{};
    right = Sum{};
    for (const Term& term : diff.terms) {
      if (term.scale > 0) {
        left.terms.push_back(term);
      } else {
        Term positive = term;
        positive.scale = -term.scale;
        right.terms.push_back(std::move(positive));
      }
    }
    (diff.base > 0 ? left : right).base = std::abs(diff.base);
  }
  Expr x = ToExpr(left);
  Expr y = ToExpr(right);
  if (ExprEqual(x, node.a) && ExprEqual(y, node.b)) return self;
  return ir::MakeBinary(node.op, std::move(x), std::move(y));
}

Expr Canonicalizer::SimplifyBool(const BinaryNode& node, const Expr& self) {
  Expr a = Simplify(node.a);
  Expr b;
  if (scoped_ != nullptr && !self->dtype.is_vector()) {
    // The right side is evaluated only if the left one does not decide.
    const bool is_and = node.op == BinaryOp::kAnd;
    const size_t mark = scoped_->owner->Mark();
    if (is_and) {
      scoped_->owner->Assume(a);
    } else {
      scoped_->owner->AssumeNot(a);
    }
    b = Simplify(node.b);
    scoped_->owner->Restore(mark);
    // Expressions have no side effects, so the left side can be dropped.
    if (ir::IsConstInt(b, is_and ? 0 : 1)) return b;
  } else {
    b = Simplify(node.b);
  }
  if (ExprEqual(a, b)) return a;
  if (a == node.a && b == node.b) return self;
  return ir::FoldBinary(node.op, std::move(a), std::move(b));
}

Expr Canonicalizer::SimplifyIfThenElse(const ir::CallNode& node,
                                       const Expr& self) {
  Expr condition = Simplify(node.args[0]);
  if (const auto known = ir::AsInt(condition)) {
    return Simplify(node.args[*known != 0 ? 1 : 2]);
  }
  const bool learns = scoped_ != nullptr && !condition->dtype.is_vector();
  const size_t mark = learns ? scoped_->owner->Mark() : 0;
  if (learns) scoped_->owner->Assume(condition);
  Expr then_value = Simplify(node.args[1]);
  if (learns) {
    scoped_->owner->Restore(mark);
    scoped_->owner->AssumeNot(condition);
  }
  Expr else_value = Simplify(node.args[2]);
  if (learns) scoped_->owner->Restore(mark);
  if (condition == node.args[0] && then_value == node.args[1] &&
      else_value == node.args[2]) {
    return self;
  }
  return ir::MakeCall(
      ir::Intrinsic::kIfThenElse,
      {std::move(condition), std::move(then_value), std::move(else_value)});
}

Expr Canonicalizer::Known(Expr expr) const {
  if (scoped_ == nullptr || !expr->dtype.is_bool() || expr->dtype.is_vector()) {
    return expr;
  }
  for (const auto& [condition, holds] : scoped_->conditions) {
    if (ExprEqual(condition, expr)) return ir::BoolConst(holds);
  }
  return expr;
}

Expr Canonicalizer::SimplifyChildren(const Expr& expr) {
  const auto all = [this](const std::vector<Expr>& exprs) {
    std::vector<Expr> out;
    out.reserve(exprs.size());
    for (const Expr& e : exprs) out.push_back(Simplify(e));
    return out;
  };
  switch (expr->kind) {
    case ExprKind::kBinary: {
      const auto& node = static_cast<const BinaryNode&>(*expr);
      Expr a = Simplify(node.a);
      Expr b = Simplify(node.b);
      if (a == node.a && b == node.b) return expr;
      return ir::FoldBinary(node.op, std::move(a), std::move(b));
    }
    case ExprKind::kCast: {
      const auto& node = static_cast<const ir::CastNode&>(*expr);
      Expr value = Simplify(node.value);
      return value == node.value ? expr
                                 : ir::MakeCast(node.dtype, std::move(value));
    }
    case ExprKind::kSelect: {
      const auto& node = static_cast<const ir::SelectNode&>(*expr);
      Expr condition = Simplify(node.condition);
      if (const auto known = ir::AsUniformInt(condition)) {
        return Simplify(*known != 0 ? node.true_value : node.false_value);
      }
      Expr x = Simplify(node.true_value);
      Expr y = Simplify(node.false_value);
      if (condition == node.condition && x == node.true_value &&
          y == node.false_value) {
        return expr;
      }
      return ir::MakeSelect(std::move(condition), std::move(x), std::move(y));
    }
    case ExprKind::kCall: {
      const auto& node = static_cast<const ir::CallNode&>(*expr);
      if (node.op == ir::Intrinsic::kIfThenElse) {
        return SimplifyIfThenElse(node, expr);
      }
      std::vector<Expr> args = all(node.args);
      return args == node.args ? expr : ir::MakeCallLike(node, std::move(args));
    }
    case ExprKind::kMachineOp: {
      const auto& node = static_cast<const ir::MachineOpNode&>(*expr);
      std::vector<Expr> args = all(node.args);
      return args == node.args ? expr
                               : ir::MakeMachineOp(node.op, std::move(args));
    }
    case ExprKind::kLoad: {
      const auto& node = static_cast<const ir::LoadNode&>(*expr);
      std::vector<Expr> indices = all(node.indices);
      Expr predicate =
          node.predicate == nullptr ? nullptr : Simplify(node.predicate);
      if (indices == node.indices && predicate == node.predicate) return expr;
      return std::make_shared<const ir::LoadNode>(
          node.buffer, std::move(indices), node.dtype, std::move(predicate));
    }
    case ExprKind::kLet: {
      const auto& node = static_cast<const ir::LetNode&>(*expr);
      Expr value = Simplify(node.value);
      Expr body = Simplify(node.body);
      if (value == node.value && body == node.body) return expr;
      return ir::MakeLet(node.var, std::move(value), std::move(body));
    }
    case ExprKind::kRamp: {
      const auto& node = static_cast<const ir::RampNode&>(*expr);
      Expr base = Simplify(node.base);
      Expr stride = Simplify(node.stride);
      if (base == node.base && stride == node.stride) return expr;
      return ir::MakeRamp(std::move(base), std::move(stride), node.dtype.lanes);
    }
    case ExprKind::kBroadcast: {
      const auto& node = static_cast<const ir::BroadcastNode&>(*expr);
      Expr value = Simplify(node.value);
      return value == node.value
                 ? expr
                 : ir::MakeBroadcast(std::move(value), node.dtype.lanes);
    }
    default:
      return expr;
  }
}

Expr Canonicalizer::Simplify(const Expr& expr) {
  if (expr->kind == ExprKind::kIntConst ||
      expr->kind == ExprKind::kFloatConst) {
    return expr;
  }
  if (expr->dtype.is_index()) {
    if (expr->kind == ExprKind::kVar && analyzer_.values_.empty()) {
      const ConstBound bound = Bounds(expr);
      return bound.is_single() ? ir::IntConst(bound.min) : expr;
    }
    Expr out = ToExpr(ToSum(expr));
    // Keep the pointer if nothing changed: callers compare pointers.
    return ExprEqual(out, expr) ? expr : out;
  }
  if (const auto* node = ir::As<BinaryNode>(expr)) {
    if (ir::IsComparison(node->op) && node->a->dtype.is_index()) {
      return SimplifyCompare(*node, expr);
    }
    if (node->op == BinaryOp::kAnd || node->op == BinaryOp::kOr) {
      return SimplifyBool(*node, expr);
    }
  }
  if (const auto* node = ir::As<ir::NotNode>(expr)) {
    const auto* compare = ir::As<BinaryNode>(node->a);
    if (compare != nullptr && ir::IsComparison(compare->op) &&
        compare->a->dtype.is_index()) {
      return Simplify(
          ir::MakeBinary(Negated(compare->op), compare->a, compare->b));
    }
    Expr a = Simplify(node->a);
    return a == node->a ? expr : ir::MakeNot(std::move(a));
  }
  if (expr->kind == ExprKind::kVar && !analyzer_.values_.empty()) {
    const auto found =
        analyzer_.values_.find(static_cast<const ir::VarNode*>(expr.get()));
    if (found != analyzer_.values_.end()) return Simplify(found->second);
  }
  return Known(SimplifyChildren(expr));
}

}  // namespace tilefarm::arith
