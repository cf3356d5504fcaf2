#include "compiler/ir/padding.h"

#include <utility>

#include "compiler/ir/structural.h"

namespace tilefarm::ir {
namespace {

bool IsZero(const Expr& e) {
  if (const auto* value = As<FloatConstNode>(e)) return value->value == 0;
  if (const auto* value = As<IntConstNode>(e)) return value->value == 0;
  return false;
}

// The factor without its choice; `inside` gathers the conditions. Null where
// the expression has no such choice.
Expr Factor(const Expr& e, Expr& inside) {
  if (const auto* call = As<CallNode>(e)) {
    if (call->op != Intrinsic::kIfThenElse || !IsZero(call->args[2])) {
      return nullptr;
    }
    inside = inside == nullptr ? call->args[0] : And(inside, call->args[0]);
    return call->args[1];
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
  const auto* sum = As<BinaryNode>(store.value);
  if (sum == nullptr || sum->op != BinaryOp::kAdd ||
      store.predicate != nullptr) {
    return std::nullopt;
  }
  const bool first = IsOwnElement(sum->a, store);
  if (!first && !IsOwnElement(sum->b, store)) return std::nullopt;
  PaddedTerm out;
  Expr term = Factor(first ? sum->b : sum->a, out.inside);
  if (term == nullptr) return std::nullopt;
  out.value = first ? MakeBinary(BinaryOp::kAdd, sum->a, std::move(term))
                    : MakeBinary(BinaryOp::kAdd, std::move(term), sum->b);
  return out;
}

}  // namespace tilefarm::ir
