// IndexMath::Simplify.
#include <optional>
#include <utility>

#include "compiler/ir/visitor.h"
#include "compiler/lower/index_math.h"

namespace tilefarm::lower {
namespace {

using ir::BinaryNode;
using ir::BinaryOp;
using ir::Expr;

bool IsIndex(const Expr& expr) { return expr->dtype.is_index(); }

std::optional<bool> Decide(BinaryOp op, const Interval& difference) {
  switch (op) {
    case BinaryOp::kLT:
      if (difference.hi < 0) return true;
      if (difference.lo >= 0) return false;
      break;
    case BinaryOp::kLE:
      if (difference.hi <= 0) return true;
      if (difference.lo > 0) return false;
      break;
    case BinaryOp::kGT:
      if (difference.lo > 0) return true;
      if (difference.hi <= 0) return false;
      break;
    case BinaryOp::kGE:
      if (difference.lo >= 0) return true;
      if (difference.hi < 0) return false;
      break;
    case BinaryOp::kEQ:
    case BinaryOp::kNE:
      if (difference.lo > 0 || difference.hi < 0) return op == BinaryOp::kNE;
      if (difference.lo == 0 && difference.hi == 0) return op == BinaryOp::kEQ;
      break;
    default:
      break;
  }
  return std::nullopt;
}

}  // namespace

class IndexMath::Rewriter : public ir::Mutator {
 public:
  explicit Rewriter(IndexMath& math) : math_(math) {}
  using Mutator::Mutate;

 protected:
  Expr MutateVar(const ir::VarNode& var, const Expr& self) override {
    if (!var.dtype.is_index()) return self;
    const Interval known = math_.AtomBounds(self);
    return known.lo == known.hi ? ir::IntConst(known.lo) : self;
  }

  Expr MutateBinary(const BinaryNode& e, const Expr& self) override {
    if (IsIndex(self)) {
      Expr out = math_.Decompose(self).ToExpr();
      return SameExpr(out, self) ? self : out;
    }
    if (ir::IsComparison(e.op) && IsIndex(e.a)) {
      Linear a = math_.Decompose(e.a);
      const Linear b = math_.Decompose(e.b);
      Linear difference = a;
      difference.Add(b, -1);
      if (const auto known = Decide(e.op, math_.Bounds(difference))) {
        return ir::BoolConst(*known);
      }
      Expr out = ir::FoldBinary(e.op, a.ToExpr(), b.ToExpr());
      return SameExpr(out, self) ? self : out;
    }
    if (self->dtype.is_bool() && !self->dtype.is_vector() &&
        (e.op == BinaryOp::kAnd || e.op == BinaryOp::kOr)) {
      Expr a = Mutate(e.a);
      const size_t mark = math_.Mark();
      // The right side matters only where the left one leaves it open.
      math_.AddCondition(a, e.op == BinaryOp::kAnd);
      Expr b = Mutate(e.b);
      math_.Restore(mark);
      // Nothing has effects, so the left side need not run either.
      if (ir::IsConstInt(b, e.op == BinaryOp::kAnd ? 0 : 1)) return b;
      if (a == e.a && b == e.b) return self;
      return ir::FoldBinary(e.op, std::move(a), std::move(b));
    }
    return Known(Mutator::MutateBinary(e, self));
  }

  Expr MutateNot(const ir::NotNode& e, const Expr& self) override {
    return Mutator::MutateNot(e, self);
  }

  Expr MutateSelect(const ir::SelectNode& e, const Expr& self) override {
    Expr condition = Mutate(e.condition);
    if (const auto known = ir::AsInt(condition)) {
      return Mutate(*known != 0 ? e.true_value : e.false_value);
    }
    return Mutator::MutateSelect(e, self);
  }

  Expr MutateCall(const ir::CallNode& e, const Expr& self) override {
    if (e.op != ir::Intrinsic::kIfThenElse || e.args[0]->dtype.is_vector()) {
      return Mutator::MutateCall(e, self);
    }
    Expr condition = Mutate(e.args[0]);
    if (const auto known = ir::AsInt(condition)) {
      return Mutate(e.args[*known != 0 ? 1 : 2]);
    }
    const size_t mark = math_.Mark();
    math_.Assume(condition);
    Expr then_value = Mutate(e.args[1]);
    math_.Restore(mark);
    math_.AssumeNot(condition);
    Expr else_value = Mutate(e.args[2]);
    math_.Restore(mark);
    if (condition == e.args[0] && then_value == e.args[1] &&
        else_value == e.args[2]) {
      return self;
    }
    return ir::IfThenElseExpr(std::move(condition), std::move(then_value),
                              std::move(else_value));
  }

 private:
  // A condition that a surrounding one decides.
  Expr Known(Expr expr) {
    if (!expr->dtype.is_bool() || expr->dtype.is_vector()) return expr;
    for (const Fact& fact : math_.facts_) {
      if (fact.condition != nullptr && SameExpr(fact.condition, expr)) {
        return ir::BoolConst(fact.holds);
      }
    }
    return expr;
  }

  IndexMath& math_;
};

Expr IndexMath::Simplify(const Expr& expr) {
  return Rewriter(*this).Mutate(expr);
}

bool IndexMath::CanProve(const Expr& condition) {
  return ir::IsConstInt(Simplify(condition), 1);
}

}  // namespace tilefarm::lower
