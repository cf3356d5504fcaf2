#include "compiler/ir/padding.h"

#include <utility>

#include "compiler/ir/identity.h"
#include "compiler/ir/structural.h"

namespace tilefarm::ir {
namespace {

// The value without its choice between itself and the identity of `op`;
// `inside` gathers the conditions. Null where there is no such choice.
Expr WithoutChoice(BinaryOp op, const Expr& e, Expr& inside) {
  const auto* call = As<CallNode>(e);
  if (call == nullptr || call->op != Intrinsic::kIfThenElse ||
      !IsIdentity(op, call->args[2])) {
    return nullptr;
  }
  inside = inside == nullptr ? call->args[0] : And(inside, call->args[0]);
  return call->args[1];
}

// The same of a term of a sum: a factor of it has the choice.
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

}  // namespace

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
