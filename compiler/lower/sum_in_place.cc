// A part of a sum that is added up on its own is added to the sum at once:
//
//   for i: part[i] = 0
//   for i, k: part[i] = part[i] + x[i, k]     for i: sum[i] = sum[i] * f[i]
//   for i: sum[i] = sum[i] * f[i] + part[i] ->  for i, k: sum[i] = sum[i] +
//   x[i, k]
//
// The terms of a sum may be added in any order. It saves the registers of the
// parts: attention has one for each element of its results.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "compiler/arith/scaled_sum.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/gpu_passes.h"
#include "compiler/lower/index_math.h"
#include "compiler/lower/store_nest.h"

namespace tilefarm::lower {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::Stmt;

bool IsLocal(const ir::BufferNode& buffer) {
  return ir::ScopeOf(buffer) == ir::MemoryScope::kLocal;
}

// nullopt: the nest is something else, or not of registers.
std::optional<arith::ScaledSum> AsScaledSum(const StoreNest& nest) {
  if (nest.store == nullptr || !nest.conditions.empty() ||
      !IsLocal(*nest.store->buffer)) {
    return std::nullopt;
  }
  std::optional<arith::ScaledSum> sum = arith::AsScaledSum(*nest.store);
  return sum && IsLocal(*sum->part->buffer) ? sum : std::nullopt;
}

bool Writes(const Stmt& stmt, const ir::BufferNode* buffer) {
  bool writes = false;
  ir::PreOrder(stmt, [&](const Stmt& s) {
    const auto* store = ir::As<ir::StoreNode>(s);
    writes |= store != nullptr && store->buffer.get() == buffer;
    return !writes;
  });
  return writes;
}

bool Uses(const Stmt& stmt, const ir::BufferNode* buffer) {
  return Writes(stmt, buffer) || ir::Loads(stmt, buffer);
}

// Whether the two buffers have the same dimensions, but for those of one
// element.
bool HaveSameElements(const ir::BufferNode& a, const ir::BufferNode& b) {
  const auto wide = [](const ir::BufferNode& buffer) {
    std::vector<int64_t> shape = buffer.shape;
    std::erase(shape, 1);
    return shape;
  };
  return wide(a) == wide(b);
}

// Accesses of a buffer as those of another one with the same elements.
class BufferChanger : public ir::Mutator {
 public:
  BufferChanger(const Buffer& from, const Buffer& to) : from_(from), to_(to) {}
  using Mutator::Mutate;

 protected:
  Expr MutateLoad(const ir::LoadNode& e, const Expr& self) override {
    return e.buffer == from_ ? ir::Load(to_, Indices(e.indices))
                             : Mutator::MutateLoad(e, self);
  }
  Stmt MutateStore(const ir::StoreNode& s, const Stmt& self) override {
    return s.buffer == from_
               ? ir::MakeStore(to_, Indices(s.indices), Mutate(s.value))
               : Mutator::MutateStore(s, self);
  }

 private:
  std::vector<Expr> Indices(const std::vector<Expr>& indices) const {
    std::vector<Expr> out;
    size_t next = 0;
    for (const int64_t extent : to_->shape) {
      if (extent == 1) {
        out.push_back(ir::IntConst(0));
        continue;
      }
      while (from_->shape[next] == 1) ++next;
      out.push_back(indices[next++]);
    }
    return out;
  }

  const Buffer from_, to_;
};

class InPlaceMutator : public ir::Mutator {
 public:
  explicit InPlaceMutator(const Stmt& root) : root_(root) {}
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }

 protected:
  Stmt MutateSeq(const ir::SeqNode& seq, const Stmt& self) override {
    std::vector<Stmt> stmts = seq.stmts;
    bool changed = false;
    for (size_t last = 2; last < stmts.size(); ++last) {
      changed |= InPlace(stmts, last);
    }
    if (!changed) return Mutator::MutateSeq(seq, self);
    for (Stmt& stmt : stmts) stmt = Mutate(stmt);
    return ir::MakeSeq(std::move(stmts));
  }

  Stmt MutateAlloc(const ir::AllocNode& s, const Stmt& self) override {
    Stmt out = Mutator::MutateAlloc(s, self);
    return gone_.contains(s.buffer.get()) ? ir::As<ir::AllocNode>(out)->body
                                          : out;
  }

 private:
  // Of the sum at `last`, whether its part is made in the same sequence, by two
  // statements, and used by nothing else.
  bool InPlace(std::vector<Stmt>& stmts, size_t last) {
    const StoreNest nest = NestOf(stmts[last]);
    const std::optional<arith::ScaledSum> sum = AsScaledSum(nest);
    if (!sum) return false;
    const Buffer part = sum->part->buffer, total = nest.store->buffer;
    std::vector<size_t> makers;
    for (size_t i = 0; i < stmts.size(); ++i) {
      if (i != last && Uses(stmts[i], part.get())) makers.push_back(i);
    }
    if (makers.size() != 2 || makers[1] >= last || CountUses(part.get()) != 4) {
      return false;
    }
    const StoreNest init = NestOf(stmts[makers[0]]),
                    add = NestOf(stmts[makers[1]]);
    if (!IsZero(init, part) || !IsAddition(add, part) ||
        !HaveSameElements(*part, *total) ||
        !CoversBuffer(nest, *total, nest.store->indices) ||
        !CoversBuffer(nest, *part, sum->part->indices) ||
        !AtSamePlace(*nest.store, *sum->part)) {
      return false;
    }
    for (size_t i = makers[0]; i < last; ++i) {
      bool changes = Uses(stmts[i], total.get());
      ir::PostOrderExprs(sum->factor, [&](const Expr& e) {
        const auto* load = ir::As<ir::LoadNode>(e);
        changes |= load != nullptr && Writes(stmts[i], load->buffer.get());
      });
      if (changes) return false;
    }
    stmts[makers[0]] = ScaleOnly(stmts[last], *sum);
    stmts[makers[1]] = BufferChanger(part, total).Mutate(stmts[makers[1]]);
    stmts[last] = ir::NoOp();
    gone_.insert(part.get());
    return true;
  }

  static bool AtSamePlace(const ir::StoreNode& sum, const ir::LoadNode& part) {
    const auto to = WideIndices(*sum.buffer, sum.indices);
    const auto from = WideIndices(*part.buffer, part.indices);
    return to && from && std::ranges::equal(*to, *from, SameExpr);
  }

  static bool IsZero(const StoreNest& nest, const Buffer& part) {
    if (nest.store == nullptr || nest.store->buffer != part ||
        nest.store->predicate != nullptr || !nest.conditions.empty()) {
      return false;
    }
    const auto* value = ir::As<ir::FloatConstNode>(nest.store->value);
    return (value != nullptr ? value->value == 0
                             : ir::IsConstInt(nest.store->value, 0)) &&
           CoversBuffer(nest, *part, nest.store->indices);
  }

  static bool IsAddition(const StoreNest& nest, const Buffer& part) {
    if (nest.store == nullptr || nest.store->buffer != part ||
        nest.store->predicate != nullptr) {
      return false;
    }
    const auto* sum = ir::As<ir::BinaryNode>(nest.store->value);
    if (sum == nullptr || sum->op != ir::BinaryOp::kAdd) return false;
    const bool first = IsElementOf(sum->a, *nest.store);
    return first || IsElementOf(sum->b, *nest.store);
  }

  // Stores and loads of the buffer.
  int CountUses(const ir::BufferNode* buffer) const {
    int count = 0;
    ir::PreOrder(root_, [&](const Stmt& s) {
      const auto* store = ir::As<ir::StoreNode>(s);
      count += store != nullptr && store->buffer.get() == buffer;
      return true;
    });
    ir::PostOrderExprs(root_, [&](const Expr& e) {
      const auto* load = ir::As<ir::LoadNode>(e);
      count += load != nullptr && load->buffer.get() == buffer;
    });
    return count;
  }

  static Stmt ScaleOnly(const Stmt& stmt, const arith::ScaledSum& sum) {
    class Scaler : public ir::Mutator {
     public:
      explicit Scaler(const arith::ScaledSum& sum) : sum_(sum) {}
      using Mutator::Mutate;
      Expr Mutate(const Expr& expr) override { return expr; }

     protected:
      Stmt MutateStore(const ir::StoreNode& s, const Stmt&) override {
        return ir::MakeStore(s.buffer, s.indices, sum_.scaled);
      }

     private:
      const arith::ScaledSum& sum_;
    };
    return Scaler(sum).Mutate(stmt);
  }

  const Stmt root_;
  std::set<const ir::BufferNode*> gone_;
};

}  // namespace

Stmt SumInPlace(const Stmt& root) { return InPlaceMutator(root).Mutate(root); }

}  // namespace tilefarm::lower
