// Before allocations are placed, tensors still have their shapes, so that it
// shows which elements exist; after that, accesses have the indices that memory
// is made for. So conditions are marked before and removed after.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "compiler/arith/conjuncts.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/gpu_passes.h"
#include "compiler/lower/index_math.h"

namespace tilefarm::lower {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::Stmt;

// On a block: bit i for part i of its predicate, which may be removed.
constexpr char kPrivateGuards[] = "tilefarm.private_guards";
// Memory may grow by this factor for elements that are never used.
constexpr int64_t kMostGrowth = 2;
constexpr size_t kMostMarks = 62;

// Whether the store can run where the program would not: it reads only memory
// of the block, and cannot fail.
bool MayRunAnywhere(const ir::StoreNode& store) {
  bool can = store.predicate == nullptr;
  const auto check = [&](const Expr& e) {
    if (const auto* load = ir::As<ir::LoadNode>(e)) {
      const ir::MemoryScope scope = ir::ScopeOf(*load->buffer);
      can &= load->predicate == nullptr && (scope == ir::MemoryScope::kLocal ||
                                            scope == ir::MemoryScope::kShared);
      for (const Expr& index : load->indices) {
        ir::PostOrderExprs(index, [&](const Expr& part) {
          can &= part->kind != ir::ExprKind::kLoad;
        });
      }
    } else if (const auto* op = ir::As<ir::BinaryNode>(e)) {
      // Division by zero ends a program on the host.
      const bool divides = op->op == ir::BinaryOp::kFloorDiv ||
                           op->op == ir::BinaryOp::kFloorMod ||
                           op->op == ir::BinaryOp::kDiv ||
                           op->op == ir::BinaryOp::kMod;
      can &= !divides || op->dtype.is_float() || ir::AsInt(op->b).has_value();
    } else {
      can &=
          e->kind != ir::ExprKind::kLet && e->kind != ir::ExprKind::kMachineOp;
    }
  };
  ir::PostOrderExprs(store.value, check);
  for (const Expr& index : store.indices) ir::PostOrderExprs(index, check);
  return can;
}

// The store that the block consists of; null: it is of another form.
const ir::StoreNode* PrivateStore(const ir::BlockNode& block) {
  const auto* store = ir::As<ir::StoreNode>(block.body);
  if (store == nullptr || !MayRunAnywhere(*store) ||
      ir::ScopeOf(*store->buffer) != ir::MemoryScope::kLocal) {
    return nullptr;
  }
  if (block.init != nullptr) {
    const auto* init = ir::As<ir::StoreNode>(block.init);
    if (init == nullptr || init->buffer != store->buffer ||
        !absl::c_equal(init->indices, store->indices, SameExpr) ||
        !MayRunAnywhere(*init)) {
      return nullptr;
    }
  }
  return store;
}

// Whether matrix units of warpgroups compute the nest, which have no conditions
// and whose operands have the tiles' shapes.
bool IsForWarpgroups(const ir::ForNode& nest) {
  bool found = nest.annotations.contains(ir::kWarpgroupStages);
  ir::PreOrder(nest.body, [&](const Stmt& stmt) {
    const auto* loop = ir::As<ir::ForNode>(stmt);
    found |=
        loop != nullptr && loop->annotations.contains(ir::kWarpgroupStages);
    return !found;
  });
  return found;
}

class GuardMarker : public ir::Mutator {
 public:
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }

 protected:
  Stmt MutateFor(const ir::ForNode& s, const Stmt& self) override {
    if (!in_nest_ && IsForWarpgroups(s)) return self;
    const bool outer = std::exchange(in_nest_, true);
    const size_t mark = math_.Mark();
    BindLoop(math_, s);
    Stmt out = Mutator::MutateFor(s, self);
    math_.Restore(mark);
    in_nest_ = outer;
    return out;
  }

  Stmt MutateBlock(const ir::BlockNode& s, const Stmt& self) override {
    const Stmt changed = Mutator::MutateBlock(s, self);
    const ir::StoreNode* store = PrivateStore(s);
    if (store == nullptr || ir::IsConstInt(s.predicate, 1)) return changed;
    int64_t marks = 0;
    const std::vector<Expr> parts = arith::Conjuncts(s.predicate);
    for (size_t i = 0; i < parts.size() && i < kMostMarks; ++i) {
      if (ExcludesOutside(s, *store, parts[i])) marks |= int64_t{1} << i;
    }
    if (marks == 0) return changed;
    ir::BlockNode block(*ir::As<ir::BlockNode>(changed));
    block.annotations[kPrivateGuards] = ir::Attr(marks);
    return ir::BlockOf(std::move(block));
  }

 private:
  // Whether the condition holds wherever the store is to an element of the
  // buffer: it bounds the index of a dimension by no less than the shape.
  bool ExcludesOutside(const ir::BlockNode& block, const ir::StoreNode& store,
                       const Expr& condition) {
    const auto* compare = ir::As<ir::BinaryNode>(condition);
    if (compare == nullptr || compare->op != ir::BinaryOp::kLT) return false;
    const auto bound = ir::AsInt(compare->b);
    if (!bound) return false;
    for (size_t d = 0; d < store.indices.size(); ++d) {
      for (const ir::IterVar& iter : block.iters) {
        if (iter.type == ir::IterType::kSpatial &&
            iter.var.get() == store.indices[d].get() &&
            *bound >= store.buffer->shape[d] &&
            math_.Difference(compare->a, iter.binding) == 0) {
          return true;
        }
      }
    }
    return false;
  }

  IndexMath math_;
  bool in_nest_ = false;
};

class GuardRemover : public ir::Mutator {
 public:
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }

  // The buffers that need more room than they have.
  ir::BufferMap Grown() const {
    ir::BufferMap grown;
    for (const auto& [buffer, shape] : shapes_) {
      ir::BufferNode larger(*buffer);
      larger.shape = shape;
      grown[buffer.get()] =
          std::make_shared<const ir::BufferNode>(std::move(larger));
    }
    return grown;
  }

 protected:
  Stmt MutateFor(const ir::ForNode& s, const Stmt& self) override {
    const size_t mark = math_.Mark();
    BindLoop(math_, s);
    Stmt out = Mutator::MutateFor(s, self);
    math_.Restore(mark);
    return out;
  }

  Stmt MutateBlock(const ir::BlockNode& s, const Stmt& self) override {
    for (const ir::IterVar& iter : s.iters) {
      bindings_[iter.var.get()] = ir::Substitute(iter.binding, bindings_);
    }
    const auto found = s.annotations.find(kPrivateGuards);
    if (found == s.annotations.end()) return Mutator::MutateBlock(s, self);
    ir::BlockNode block(s);
    block.annotations.erase(kPrivateGuards);
    ir::BlockNode relaxed(block);
    const int64_t marks = std::get<int64_t>(found->second.value);
    Expr rest = ir::BoolConst(true);
    const std::vector<Expr> parts = arith::Conjuncts(s.predicate);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i < kMostMarks && (marks >> i & 1) != 0) continue;
      rest = ir::IsConstInt(rest, 1) ? parts[i] : ir::And(rest, parts[i]);
    }
    const size_t mark = math_.Mark();
    math_.Assume(ir::Substitute(rest, bindings_));
    const bool relaxes = Widen(relaxed) && FindRoom(s);
    relaxed.predicate = std::move(rest);
    math_.Restore(mark);
    return ir::BlockOf(std::move(relaxes ? relaxed : block));
  }

 private:
  // Whether all accesses are to memory, which may have to grow.
  bool FindRoom(const ir::BlockNode& block) {
    std::vector<std::pair<Buffer, std::vector<int64_t>>> wanted;
    bool fits = true;
    for (const Stmt& part : {block.init, block.body}) {
      const auto* store = ir::As<ir::StoreNode>(part);
      if (store == nullptr) continue;
      fits &= AddAccess(store->buffer, store->indices, wanted);
      ir::PostOrderExprs(store->value, [&](const Expr& e) {
        const auto* load = ir::As<ir::LoadNode>(e);
        if (load == nullptr) return;
        fits &= AddAccess(load->buffer, load->indices, wanted);
      });
    }
    if (!fits) return false;
    for (auto& [buffer, shape] : wanted) {
      const auto at = absl::c_find_if(
          shapes_, [&](const auto& known) { return known.first == buffer; });
      if (at == shapes_.end()) {
        shapes_.emplace_back(buffer, std::move(shape));
        continue;
      }
      for (size_t d = 0; d < shape.size(); ++d) {
        at->second[d] = std::max(at->second[d], shape[d]);
      }
    }
    return true;
  }

  bool AddAccess(const Buffer& buffer, const std::vector<Expr>& indices,
                 std::vector<std::pair<Buffer, std::vector<int64_t>>>& wanted) {
    std::vector<int64_t> shape = buffer->shape;
    for (size_t d = 0; d < indices.size(); ++d) {
      const Interval reach =
          math_.Bounds(ir::Substitute(indices[d], bindings_));
      if (reach.lo < 0 || reach.hi >= kMostGrowth * shape[d]) return false;
      shape[d] = std::max(shape[d], reach.hi + 1);
    }
    if (shape == buffer->shape) return true;
    if (!buffer->is_dense()) return false;
    wanted.emplace_back(buffer, std::move(shape));
    return true;
  }

  // The block's variables have the values that their bindings have.
  bool Widen(ir::BlockNode& block) {
    for (ir::IterVar& iter : block.iters) {
      const auto min = ir::AsInt(iter.dom.min);
      const auto extent = ir::AsInt(iter.dom.extent);
      const Interval values = math_.Bounds(bindings_[iter.var.get()]);
      if (!min || !extent || !values.bounded() || values.lo < *min)
        return false;
      iter.dom.extent = ir::IntConst(std::max(*extent, values.hi + 1 - *min));
    }
    return true;
  }

  IndexMath math_;
  ir::VarMap bindings_;
  std::vector<std::pair<Buffer, std::vector<int64_t>>> shapes_;
};

}  // namespace

Stmt MarkPrivateGuards(const Stmt& stmt) { return GuardMarker().Mutate(stmt); }

Stmt RemovePrivateGuards(const Stmt& stmt) {
  GuardRemover remover;
  const Stmt changed = remover.Mutate(stmt);
  const ir::BufferMap grown = remover.Grown();
  return grown.empty() ? changed : ir::ReplaceBuffers(changed, grown);
}

}  // namespace tilefarm::lower
