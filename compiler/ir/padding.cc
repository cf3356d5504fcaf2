#include "compiler/ir/padding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "compiler/ir/identity.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::ir {
namespace {

// The value without its choice between itself and the identity of `op`; adds
// the conditions to `inside`. Null if there is no such choice.
Expr WithoutChoice(BinaryOp op, const Expr& e, Expr& inside) {
  const auto* call = As<CallNode>(e);
  if (call == nullptr || call->op != Intrinsic::kIfThenElse ||
      !IsIdentity(op, call->args[2])) {
    return nullptr;
  }
  inside = inside == nullptr ? call->args[0] : And(inside, call->args[0]);
  return call->args[1];
}

// The same for a term of a sum, of which a factor has the choice.
Expr Factor(const Expr& e, Expr& inside) {
  if (e->kind == ExprKind::kCall) {
    return WithoutChoice(BinaryOp::kAdd, e, inside);
  }
  if (const auto* cast = As<CastNode>(e)) {
    Expr value = Factor(cast->value, inside);
    return value == nullptr ? nullptr : MakeCast(e->dtype, std::move(value));
  }
  const auto* product = As<BinaryNode>(e);
  if (product == nullptr || product->op != BinaryOp::kMul) return nullptr;
  Expr a = Factor(product->a, inside);
  Expr b = Factor(product->b, inside);
  if (a == nullptr && b == nullptr) return nullptr;
  return MakeBinary(BinaryOp::kMul, a == nullptr ? product->a : std::move(a),
                    b == nullptr ? product->b : std::move(b));
}

bool IsOwnElement(const Expr& e, const StoreNode& store) {
  const auto* load = As<LoadNode>(e);
  if (load == nullptr || load->buffer != store.buffer ||
      load->predicate != nullptr) {
    return false;
  }
  for (size_t d = 0; d < store.indices.size(); ++d) {
    if (!StructuralEqual(load->indices[d], store.indices[d])) return false;
  }
  return true;
}

// No value of the expression is larger in magnitude; infinity where that is not
// known, and where a value may be infinite or not a number.
double Magnitude(const Expr& e) {
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  if (!e->dtype.is_float()) return std::ldexp(1.0, e->dtype.bits);
  double result = kUnknown;
  if (const auto* value = As<FloatConstNode>(e)) {
    result = std::abs(value->value);
  } else if (const auto* cast = As<CastNode>(e)) {
    result = Magnitude(cast->value);
  } else if (const auto* select = As<SelectNode>(e)) {
    result =
        std::max(Magnitude(select->true_value), Magnitude(select->false_value));
  } else if (const auto* binary = As<BinaryNode>(e)) {
    const double a = Magnitude(binary->a), b = Magnitude(binary->b);
    if (binary->op == BinaryOp::kMul) result = a * b;
    if (binary->op == BinaryOp::kAdd || binary->op == BinaryOp::kSub) {
      result = a + b;
    }
  } else if (const auto* call = As<CallNode>(e);
             call != nullptr && call->op == Intrinsic::kIfThenElse) {
    result = std::max(Magnitude(call->args[1]), Magnitude(call->args[2]));
  }
  // Compared so that a NaN is unknown, too.
  return result <= HighestFloat(e->dtype) ? result : kUnknown;
}

bool IsFinite(const Expr& e) { return std::isfinite(Magnitude(e)); }

bool HasChoice(const Expr& e) {
  Expr inside;
  return Factor(e, inside) != nullptr;
}

// A maximum or minimum of the block starts from a constant that what the choice
// puts outside, `outside`, does not change.
bool StartsBeyond(const BlockNode& block, BinaryOp op, const Expr& outside) {
  const auto* padding = As<FloatConstNode>(outside);
  if (padding == nullptr || std::isinf(padding->value)) return true;
  const auto* init =
      block.init == nullptr ? nullptr : As<StoreNode>(block.init);
  const auto* start =
      init == nullptr ? nullptr : As<FloatConstNode>(init->value);
  if (start == nullptr) return false;
  return op == BinaryOp::kMax ? start->value >= padding->value
                              : start->value <= padding->value;
}

// The stores that the annotation of a block is about: those of blocks inside it
// have their own.
class FindInexact : public Visitor {
 public:
  explicit FindInexact(const BlockNode& block) : block_(block) {
    Visit(block.body);
  }
  bool found = false;

 protected:
  using Visitor::Visit;
  void Visit(const Expr&) override {}
  void VisitBlock(const BlockNode&) override {}
  void VisitStore(const StoreNode& s) override {
    if (!MatchPaddedTerm(s)) return;
    const auto& whole = static_cast<const BinaryNode&>(*s.value);
    for (const Expr& side : {whole.a, whole.b}) {
      const auto* choice = As<CallNode>(side);
      found |= whole.op == BinaryOp::kAdd
                   ? !VanishesWithItsFactors(side)
                   : choice != nullptr &&
                         choice->op == Intrinsic::kIfThenElse &&
                         !StartsBeyond(block_, whole.op, choice->args[2]);
    }
  }

 private:
  const BlockNode& block_;
};

}  // namespace

bool VanishesWithItsFactors(const Expr& term) {
  if (!term->dtype.is_float()) return true;
  if (const auto* cast = As<CastNode>(term)) {
    return VanishesWithItsFactors(cast->value);
  }
  const auto* product = As<BinaryNode>(term);
  if (product == nullptr || product->op != BinaryOp::kMul) return true;
  return (!HasChoice(product->a) || IsFinite(product->b)) &&
         (!HasChoice(product->b) || IsFinite(product->a)) &&
         VanishesWithItsFactors(product->a) &&
         VanishesWithItsFactors(product->b);
}

bool SkipsExactly(const BlockNode& block) { return !FindInexact(block).found; }

std::optional<PaddedTerm> MatchPaddedTerm(const StoreNode& store) {
  const auto* whole = As<BinaryNode>(store.value);
  if (whole == nullptr || store.predicate != nullptr) return std::nullopt;
  const BinaryOp op = whole->op;
  if (op != BinaryOp::kAdd && op != BinaryOp::kMax && op != BinaryOp::kMin) {
    return std::nullopt;
  }
  const bool first = IsOwnElement(whole->a, store);
  if (!first && !IsOwnElement(whole->b, store)) return std::nullopt;
  const Expr& other = first ? whole->b : whole->a;
  PaddedTerm out;
  Expr term = op == BinaryOp::kAdd ? Factor(other, out.inside)
                                   : WithoutChoice(op, other, out.inside);
  if (term == nullptr) return std::nullopt;
  out.value = first ? MakeBinary(op, whole->a, std::move(term))
                    : MakeBinary(op, std::move(term), whole->b);
  return out;
}

}  // namespace tilefarm::ir
