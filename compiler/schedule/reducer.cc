#include "compiler/schedule/reducer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/identity.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::schedule {
namespace {

bool SameElement(const ir::Expr& expr, const ir::StoreNode& store) {
  const auto* load = ir::As<ir::LoadNode>(expr);
  if (load == nullptr || load->buffer != store.buffer) return false;
  for (size_t i = 0; i < store.indices.size(); ++i) {
    if (!arith::ExprEqual(load->indices[i], store.indices[i])) return false;
  }
  return true;
}

bool Commutes(ir::BinaryOp op) {
  switch (op) {
    case ir::BinaryOp::kAdd:
    case ir::BinaryOp::kMul:
    case ir::BinaryOp::kMin:
    case ir::BinaryOp::kMax:
    case ir::BinaryOp::kAnd:
    case ir::BinaryOp::kOr:
    case ir::BinaryOp::kBitAnd:
    case ir::BinaryOp::kBitOr:
    case ir::BinaryOp::kBitXor:
      return true;
    default:
      return false;
  }
}

// Looks for stores and loads that make the order of updates matter.
class UpdateVisitor : public ir::Visitor {
 public:
  explicit UpdateVisitor(const ir::BlockNode& block) : block_(block) {}
  using Visitor::Visit;
  bool commute = true;

 protected:
  void VisitStore(const ir::StoreNode& store) override {
    const auto* update = ir::As<ir::BinaryNode>(store.value);
    const bool left = update != nullptr && SameElement(update->a, store);
    const bool right = update != nullptr && SameElement(update->b, store);
    const bool takes =
        left != right &&
        (Commutes(update->op) || (left && update->op == ir::BinaryOp::kSub));
    if (!takes) {
      commute = false;
      return;
    }
    Visit(left ? update->b : update->a);
    for (const ir::Expr& index : store.indices) Visit(index);
  }
  void VisitLoad(const ir::LoadNode& load) override {
    for (const ir::BufferRegion& write : block_.writes) {
      commute = commute && write.buffer != load.buffer;
    }
    Visitor::VisitLoad(load);
  }
  // Ignore the declared regions of nested blocks: they are not accesses.
  void VisitBlock(const ir::BlockNode& nested) override {
    commute = commute && nested.init == nullptr;
    Visit(nested.predicate);
    Visit(nested.body);
  }

 private:
  const ir::BlockNode& block_;
};

// Of the block's body alone.
std::optional<arith::TupleReducer> MatchTupleOf(const ir::BlockNode& block) {
  arith::IndexMath math;
  for (const ir::IterVar& iter : block.iters) {
    const auto min = ir::AsInt(iter.dom.min);
    const auto extent = ir::AsInt(iter.dom.extent);
    if (min && extent) {
      math.Bind(iter.var.get(), *min, *min + *extent - 1);
    }
  }
  return arith::MatchTupleReducer(block.body, math);
}

}  // namespace

const ir::StoreNode* InitOf(const ir::StoreNode& store,
                            const ir::BlockNode& block) {
  std::vector<ir::Stmt> inits = {block.init};
  if (const auto* seq = ir::As<ir::SeqNode>(block.init)) inits = seq->stmts;
  for (const ir::Stmt& stmt : inits) {
    const auto* init = ir::As<ir::StoreNode>(stmt);
    if (init != nullptr && init->buffer == store.buffer &&
        std::ranges::equal(init->indices, store.indices, arith::ExprEqual)) {
      return init;
    }
  }
  return nullptr;
}

bool UpdatesCommute(const ir::BlockNode& block) {
  UpdateVisitor visitor(block);
  visitor.Visit(block.body);
  return visitor.commute || MatchTupleOf(block).has_value();
}

ir::Expr Reducer::Combine(ir::Expr accumulator, ir::Expr other) const {
  return ir::MakeBinary(op, std::move(accumulator), std::move(other));
}

std::optional<Reducer> MatchReducer(const ir::BlockNode& block) {
  const auto* init = ir::As<ir::StoreNode>(block.init);
  const auto* update = ir::As<ir::StoreNode>(block.body);
  if (init == nullptr || update == nullptr || init->buffer != update->buffer ||
      block.writes.size() != 1) {
    return std::nullopt;
  }
  for (size_t i = 0; i < init->indices.size(); ++i) {
    if (!arith::ExprEqual(init->indices[i], update->indices[i])) {
      return std::nullopt;
    }
  }
  const auto* binary = ir::As<ir::BinaryNode>(update->value);
  if (binary == nullptr || !ir::IsIdentity(binary->op, init->value)) {
    return std::nullopt;
  }
  const bool left = SameElement(binary->a, *update);
  const bool right = SameElement(binary->b, *update);
  if (left == right) return std::nullopt;
  const ir::Expr& value = left ? binary->b : binary->a;
  if (ir::Loads(value, update->buffer.get())) return std::nullopt;
  return Reducer{binary->op, value};
}

std::optional<arith::TupleReducer> MatchTuple(const ir::BlockNode& block) {
  if (const auto single = MatchReducer(block)) {
    arith::TupleReducer reducer;
    const auto* store = ir::As<ir::StoreNode>(block.body);
    const ir::DataType type = store->buffer->dtype;
    reducer.stores = {store};
    reducer.terms = {single->value};
    reducer.ops = {single->op};
    reducer.left = {ir::MakeVar("left", type)};
    reducer.right = {ir::MakeVar("right", type)};
    reducer.combined = {single->Combine(reducer.left[0], reducer.right[0])};
    return reducer;
  }
  auto reducer = MatchTupleOf(block);
  if (!reducer || block.init == nullptr) return std::nullopt;
  // Each element has one init.
  const auto* inits = ir::As<ir::SeqNode>(block.init);
  if (reducer->stores.size() != (inits ? inits->stmts.size() : 1)) {
    return std::nullopt;
  }
  for (size_t k = 0; k < reducer->stores.size(); ++k) {
    const ir::StoreNode* init = InitOf(*reducer->stores[k], block);
    if (init == nullptr || (reducer->ops[k].has_value() &&
                            !ir::IsIdentity(*reducer->ops[k], init->value))) {
      return std::nullopt;
    }
    for (const ir::StoreNode* store : reducer->stores) {
      if (ir::Loads(init->value, store->buffer.get())) return std::nullopt;
    }
  }
  return reducer;
}

}  // namespace tilefarm::schedule
