#include "compiler/lower/element_update.h"

#include <utility>

#include "compiler/ir/identity.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/index_math.h"

namespace tilefarm::lower {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::Stmt;

// What is left of a chain of `op`, such as (B[i] + x) + y, without the store's
// element: nothing if that is the element alone. No value: it is not in there.
std::optional<Expr> WithoutElement(const Expr& e, ir::BinaryOp op,
                                   const ir::StoreNode& store) {
  if (IsElementOf(e, store)) return Expr();
  const auto* chain = ir::As<ir::BinaryNode>(e);
  if (chain == nullptr) return std::nullopt;
  const bool subtracts =
      op == ir::BinaryOp::kAdd && chain->op == ir::BinaryOp::kSub;
  if (chain->op != op && !subtracts) return std::nullopt;
  if (const auto rest = WithoutElement(chain->a, op, store)) {
    if (*rest != nullptr) return ir::MakeBinary(chain->op, *rest, chain->b);
    if (!subtracts) return chain->b;
    return ir::MakeBinary(chain->op, ir::IdentityOf(op, e->dtype), chain->b);
  }
  if (subtracts) return std::nullopt;
  const auto rest = WithoutElement(chain->b, op, store);
  if (!rest) return std::nullopt;
  return *rest == nullptr ? chain->a : ir::MakeBinary(op, chain->a, *rest);
}

class PartialUpdater : public ir::Mutator {
 public:
  PartialUpdater(const ElementUpdate& update, Buffer partial)
      : update_(update), partial_(std::move(partial)) {}
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }

 protected:
  Stmt MutateStore(const ir::StoreNode& s, const Stmt&) override {
    const Expr zero = ir::IntConst(0);
    return ir::MakeStore(
        partial_, {zero},
        ir::MakeBinary(update_.op, ir::Load(partial_, {zero}), update_.term),
        s.predicate);
  }

 private:
  const ElementUpdate& update_;
  const Buffer partial_;
};

Expr ElementOf(const Buffer& partial) {
  return ir::Load(partial, {ir::IntConst(0)});
}

}  // namespace

std::optional<ElementUpdate> AsElementUpdate(const ir::StoreNode& store) {
  const auto* value = ir::As<ir::BinaryNode>(store.value);
  if (value == nullptr) return std::nullopt;
  ElementUpdate update{&store, value->op};
  if (update.op == ir::BinaryOp::kSub) update.op = ir::BinaryOp::kAdd;
  if (ir::IdentityOf(update.op, store.buffer->dtype) == nullptr) {
    return std::nullopt;
  }
  const auto term = WithoutElement(store.value, update.op, store);
  if (!term) return std::nullopt;
  update.term = *term;
  update.element_first = !IsElementOf(value->b, store);
  bool reads = false;
  ir::PostOrderExprs(update.term, [&](const Expr& e) {
    const auto* load = ir::As<ir::LoadNode>(e);
    reads |= load != nullptr && load->buffer == store.buffer;
  });
  return reads ? std::nullopt : std::optional(update);
}

Stmt StartPartial(const ElementUpdate& update, const Buffer& partial) {
  return ir::MakeStore(partial, {ir::IntConst(0)},
                       ir::IdentityOf(update.op, partial->dtype));
}

Stmt IntoPartial(const ElementUpdate& update, const Buffer& partial,
                 const Stmt& nest) {
  return PartialUpdater(update, partial).Mutate(nest);
}

Stmt CombinePartial(const ElementUpdate& update, const Buffer& partial,
                    Expr other) {
  return ir::MakeStore(
      partial, {ir::IntConst(0)},
      ir::MakeBinary(update.op, ElementOf(partial), std::move(other)));
}

void CombineInGroup(const ElementUpdate& update, const Buffer& partial,
                    int64_t group, std::vector<Stmt>& stmts) {
  for (int64_t mask = group / 2; mask > 0; mask /= 2) {
    stmts.push_back(CombinePartial(
        update, partial,
        ir::MakeMachineOp(
            ir::MachineOp::kShuffleXor,
            {ElementOf(partial), ir::IntConst(mask), ir::IntConst(group)})));
  }
}

Stmt FinishUpdate(const ElementUpdate& update, const Buffer& partial) {
  const ir::StoreNode& store = *update.store;
  const Expr element = ir::Load(store.buffer, store.indices);
  const Expr mine = ElementOf(partial);
  return ir::MakeStore(store.buffer, store.indices,
                       update.element_first
                           ? ir::MakeBinary(update.op, element, mine)
                           : ir::MakeBinary(update.op, mine, element));
}

}  // namespace tilefarm::lower
