#include "compiler/graph/reorder_dims.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "compiler/graph/nests.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::graph {
namespace {

using ir::As;

class Reorderer : public ir::Mutator {
 public:
  explicit Reorderer(const DimOrders& orders) : orders_(orders) {}
  using ir::Mutator::Mutate;

  ir::Buffer MutateBuffer(const ir::Buffer& buffer) override {
    const auto order = orders_.find(buffer.get());
    if (order == orders_.end()) return buffer;
    ir::Buffer& made = made_[buffer.get()];
    if (made == nullptr) {
      auto copy = std::make_shared<ir::BufferNode>(*buffer);
      copy->shape = InOrder(buffer->shape, order->second);
      made = std::move(copy);
    }
    return made;
  }

 protected:
  ir::Expr MutateLoad(const ir::LoadNode& load, const ir::Expr&) override {
    return ir::Load(MutateBuffer(load.buffer),
                    Reordered(load.buffer, MutateAll(load.indices)));
  }

  ir::Stmt MutateStore(const ir::StoreNode& store, const ir::Stmt&) override {
    return ir::MakeStore(MutateBuffer(store.buffer),
                         Reordered(store.buffer, MutateAll(store.indices)),
                         Mutate(store.value));
  }

  ir::Stmt MutateBlock(const ir::BlockNode& block,
                       const ir::Stmt& self) override {
    ir::BlockNode copy(
        *As<ir::BlockNode>(ir::Mutator::MutateBlock(block, self)));
    for (auto [before, after] : {std::pair(&block.reads, &copy.reads),
                                 std::pair(&block.writes, &copy.writes)}) {
      for (size_t i = 0; i < before->size(); ++i) {
        (*after)[i].region = Reordered((*before)[i].buffer, (*after)[i].region);
      }
    }
    return ir::BlockOf(std::move(copy));
  }

  ir::Stmt MutateFor(const ir::ForNode& loop, const ir::Stmt& self) override {
    // The outermost loop of a nest is seen first.
    std::vector<ir::ForPtr> loops;
    ir::Stmt inner = self;
    while (const auto* next = As<ir::ForNode>(inner)) {
      loops.push_back(std::static_pointer_cast<const ir::ForNode>(inner));
      inner = next->body;
    }
    const auto* block = As<ir::BlockNode>(inner);
    if (block == nullptr) return ir::Mutator::MutateFor(loop, self);
    const auto* store = As<ir::StoreNode>(block->body);
    if (!HasPlainLoops({.loops = self, .block = block, .store = store}) ||
        store == nullptr || !orders_.contains(store->buffer.get())) {
      return ir::Mutator::MutateFor(loop, self);
    }
    ir::BlockNode changed(*As<ir::BlockNode>(Mutate(inner)));
    SortIters(*As<ir::StoreNode>(changed.body), changed.iters);
    const std::vector<ir::IterVar> iters = changed.iters;
    ir::Stmt nest = ir::BlockOf(std::move(changed));
    for (size_t i = iters.size(); i-- > 0;) {
      const auto at = std::find_if(
          loops.begin(), loops.end(),
          [&](const ir::ForPtr& l) { return l->var == iters[i].binding; });
      auto copy = std::make_shared<ir::ForNode>(**at);
      copy->body = std::move(nest);
      nest = std::move(copy);
    }
    return nest;
  }

 private:
  template <typename T>
  std::vector<T> Reordered(const ir::Buffer& buffer,
                           std::vector<T> items) const {
    const auto order = orders_.find(buffer.get());
    return order == orders_.end() ? std::move(items)
                                  : InOrder(items, order->second);
  }

  // Spatial variables in the order of the store's indices that have them, then
  // the others in the order of what a reordered load reads. `store` is the new
  // one.
  void SortIters(const ir::StoreNode& store,
                 std::vector<ir::IterVar>& iters) const {
    const auto first_use = [](const std::vector<ir::Expr>& indices,
                              const ir::IterVar& iter) {
      return std::find_if(indices.begin(), indices.end(),
                          [&](const ir::Expr& index) {
                            return ir::UsesVar(index, iter.var.get());
                          }) -
             indices.begin();
    };
    std::vector<ir::Expr> read;
    ir::PostOrderExprs(store.value, [&](const ir::Expr& expr) {
      const auto* load = As<ir::LoadNode>(expr);
      if (load == nullptr || load->buffer == store.buffer) return;
      for (const auto& [before, after] : made_) {
        if (after == load->buffer && read.empty()) read = load->indices;
      }
    });
    const auto place = [&](const ir::IterVar& iter) {
      const std::ptrdiff_t behind =
          static_cast<std::ptrdiff_t>(store.indices.size()) + 1;
      return iter.type == ir::IterType::kSpatial
                 ? first_use(store.indices, iter)
                 : behind + first_use(read, iter);
    };
    std::stable_sort(iters.begin(), iters.end(),
                     [&](const ir::IterVar& a, const ir::IterVar& b) {
                       return place(a) < place(b);
                     });
  }

  const DimOrders& orders_;
  ir::BufferMap made_;
};

}  // namespace

ir::PrimFuncPtr ReorderDims(const ir::PrimFunc& function,
                            const DimOrders& orders) {
  Reorderer reorderer(orders);
  auto result = std::make_shared<ir::PrimFunc>(function);
  for (ir::Buffer& param : result->params) {
    param = reorderer.MutateBuffer(param);
  }
  result->body = reorderer.Mutate(function.body);
  return result;
}

}  // namespace tilefarm::graph
