#include "compiler/arith/analyzer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compiler/arith/canonical.h"
#include "compiler/ir/machine_op.h"

namespace tilefarm::arith {
namespace {

using ir::BinaryNode;
using ir::BinaryOp;
using ir::Expr;
using ir::ExprKind;

bool AllEqual(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!ExprEqual(a[i], b[i])) return false;
  }
  return true;
}

class StmtSimplifier : public ir::Mutator {
 public:
  explicit StmtSimplifier(Analyzer& analyzer) : analyzer_(analyzer) {}
  using ir::Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return analyzer_.Simplify(expr); }

 private:
  Analyzer& analyzer_;
};

}  // namespace

bool ExprEqual(const Expr& a, const Expr& b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr) return false;
  if (a->kind != b->kind || a->dtype != b->dtype) return false;
  switch (a->kind) {
    case ExprKind::kVar:
      return false;  // by pointer, and they differ
    case ExprKind::kIntConst:
      return static_cast<const ir::IntConstNode&>(*a).value ==
             static_cast<const ir::IntConstNode&>(*b).value;
    case ExprKind::kFloatConst: {
      const double x = static_cast<const ir::FloatConstNode&>(*a).value;
      const double y = static_cast<const ir::FloatConstNode&>(*b).value;
      return x == y && std::signbit(x) == std::signbit(y);
    }
    case ExprKind::kBinary: {
      const auto& x = static_cast<const BinaryNode&>(*a);
      const auto& y = static_cast<const BinaryNode&>(*b);
      return x.op == y.op && ExprEqual(x.a, y.a) && ExprEqual(x.b, y.b);
    }
    case ExprKind::kNot:
      return ExprEqual(static_cast<const ir::NotNode&>(*a).a,
                       static_cast<const ir::NotNode&>(*b).a);
    case ExprKind::kCast:
      return ExprEqual(static_cast<const ir::CastNode&>(*a).value,
                       static_cast<const ir::CastNode&>(*b).value);
    case ExprKind::kSelect: {
      const auto& x = static_cast<const ir::SelectNode&>(*a);
      const auto& y = static_cast<const ir::SelectNode&>(*b);
      return ExprEqual(x.condition, y.condition) &&
             ExprEqual(x.true_value, y.true_value) &&
             ExprEqual(x.false_value, y.false_value);
    }
    case ExprKind::kCall: {
      const auto& x = static_cast<const ir::CallNode&>(*a);
      const auto& y = static_cast<const ir::CallNode&>(*b);
      return x.op == y.op && AllEqual(x.args, y.args);
    }
    case ExprKind::kMachineOp: {
      const auto& x = static_cast<const ir::MachineOpNode&>(*a);
      const auto& y = static_cast<const ir::MachineOpNode&>(*b);
      return x.op == y.op && AllEqual(x.args, y.args);
    }
    case ExprKind::kLoad: {
      const auto& x = static_cast<const ir::LoadNode&>(*a);
      const auto& y = static_cast<const ir::LoadNode&>(*b);
      return x.buffer == y.buffer && AllEqual(x.indices, y.indices) &&
             ExprEqual(x.predicate, y.predicate);
    }
    case ExprKind::kLet: {
      const auto& x = static_cast<const ir::LetNode&>(*a);
      const auto& y = static_cast<const ir::LetNode&>(*b);
      return x.var == y.var && ExprEqual(x.value, y.value) &&
             ExprEqual(x.body, y.body);
    }
    case ExprKind::kRamp: {
      const auto& x = static_cast<const ir::RampNode&>(*a);
      const auto& y = static_cast<const ir::RampNode&>(*b);
      return ExprEqual(x.base, y.base) && ExprEqual(x.stride, y.stride);
    }
    case ExprKind::kBroadcast:
      return ExprEqual(static_cast<const ir::BroadcastNode&>(*a).value,
                       static_cast<const ir::BroadcastNode&>(*b).value);
  }
  return false;
}

Analyzer::Analyzer(const VarRanges& ranges) {
  for (const auto& [var, range] : ranges) Bind(var, range);
}

void Analyzer::Bind(const ir::Var& var, const ir::Range& range) {
  const ConstBound min = Bounds(range.min);
  const ConstBound extent = Bounds(range.extent);
  ConstBound bound;
  bound.min = min.min;
  int64_t last = 0;
  if (min.max != ConstBound::kPosInf && extent.max != ConstBound::kPosInf &&
      !__builtin_add_overflow(min.max, extent.max - 1, &last)) {
    bound.max = last;
  }
  values_.erase(var.get());
  bounds_[var.get()] = bound;
}

void Analyzer::Bind(const ir::Var& var, int64_t min, int64_t extent) {
  values_.erase(var.get());
  bounds_[var.get()] = {min, min + extent - 1};
}

void Analyzer::BindValue(const ir::Var& var, const Expr& value) {
  Expr simple = Simplify(value);
  bounds_.erase(var.get());
  values_[var.get()] = std::move(simple);
}

void Analyzer::Assume(const Expr& condition) {
  const auto* node = ir::As<BinaryNode>(condition);
  if (node == nullptr) return;
  if (node->op == BinaryOp::kAnd) {
    Assume(node->a);
    Assume(node->b);
    return;
  }
  if (!ir::IsComparison(node->op) || !node->a->dtype.is_index()) return;
  const auto fact = [&](const Expr& expr) { facts_.push_back(Simplify(expr)); };
  switch (node->op) {
    case BinaryOp::kLT:
      return fact(node->b - node->a - 1);
    case BinaryOp::kLE:
      return fact(node->b - node->a);
    case BinaryOp::kGT:
      return fact(node->a - node->b - 1);
    case BinaryOp::kGE:
      return fact(node->a - node->b);
    case BinaryOp::kEQ:
      fact(node->a - node->b);
      return fact(node->b - node->a);
    default:
      return;
  }
}

Expr Analyzer::Simplify(const Expr& expr) {
  Canonicalizer canonicalizer(*this);
  Expr out = canonicalizer.Simplify(expr);
  return canonicalizer.overflow() ? expr : out;
}

ir::Stmt Analyzer::Simplify(const ir::Stmt& stmt) {
  return StmtSimplifier(*this).Mutate(stmt);
}

bool Analyzer::CanProve(const Expr& condition) {
  if (const auto* node = ir::As<BinaryNode>(condition)) {
    if (node->op == BinaryOp::kAnd) {
      return CanProve(node->a) && CanProve(node->b);
    }
  }
  Canonicalizer canonicalizer(*this);
  const Expr out = canonicalizer.Simplify(condition);
  return !canonicalizer.overflow() && ir::IsConstInt(out, 1);
}

bool Analyzer::ProveEqual(const Expr& a, const Expr& b) {
  if (ExprEqual(a, b)) return true;
  if (!a->dtype.is_index() || !b->dtype.is_index()) {
    return ExprEqual(Simplify(a), Simplify(b));
  }
  return ConstDifference(a, b) == 0;
}

bool Analyzer::ProveLE(const Expr& a, const Expr& b) {
  Canonicalizer canonicalizer(*this);
  const Sum diff =
      canonicalizer.Difference(canonicalizer.ToSum(b), canonicalizer.ToSum(a));
  return canonicalizer.NonNegative(diff);
}

std::optional<int64_t> Analyzer::ConstDifference(const Expr& a, const Expr& b) {
  Canonicalizer canonicalizer(*this);
  const Sum diff =
      canonicalizer.Difference(canonicalizer.ToSum(a), canonicalizer.ToSum(b));
  if (canonicalizer.overflow()) return std::nullopt;
  if (!diff.is_const()) {
    const ConstBound bound = canonicalizer.BoundOf(diff);
    if (bound.is_single()) return bound.min;
    return std::nullopt;
  }
  return diff.base;
}

ConstBound Analyzer::Bounds(const Expr& expr) {
  Canonicalizer canonicalizer(*this);
  const ConstBound direct = canonicalizer.Bounds(expr);
  if (!expr->dtype.is_index() || expr->kind != ExprKind::kBinary) {
    return direct;
  }
  const ConstBound sum = canonicalizer.BoundOf(canonicalizer.ToSum(expr));
  if (canonicalizer.overflow()) return direct;
  return {std::max(direct.min, sum.min), std::min(direct.max, sum.max)};
}

ModularSet Analyzer::Modular(const Expr& expr) {
  if (!expr->dtype.is_index()) return {};
  Canonicalizer canonicalizer(*this);
  const Sum sum = canonicalizer.ToSum(expr);
  if (canonicalizer.overflow()) return {};
  int64_t gcd = 0;
  for (const Term& term : sum.terms) gcd = std::gcd(gcd, term.scale);
  return {gcd, gcd == 0 ? sum.base : FloorModInt(sum.base, gcd)};
}

bool Divisible(Analyzer& analyzer, const Expr& expr, int64_t divisor) {
  if (divisor <= 0) return false;
  const ModularSet set = analyzer.Modular(expr);
  return set.coeff % divisor == 0 && set.base % divisor == 0;
}

}  // namespace tilefarm::arith
