#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "compiler/ir/visitor.h"
#include "compiler/lower/index_math.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::Stmt;

// Consecutive elements that a loop accesses in every iteration.
struct Slot {
  Expr base;  // index of the first element
  int lanes = 1;
  Expr predicate;      // lanes that exist; null: all
  int64_t offset = 0;  // from the first slot of the buffer
  bool loaded = false, stored = false;
  // Some access runs in every iteration; else all are under `guard`.
  bool always = false;
  Expr guard;
  int64_t local_offset = 0;
};

struct Candidate {
  Buffer buffer;
  std::vector<Slot> slots;
  bool legal = true;
  size_t order = 0;
};

int64_t VectorsOf(const Slot& slot, const Buffer& buffer,
                  const target::Target& target) {
  const int64_t bits = int64_t{8} * slot.lanes * buffer->dtype.bytes();
  return (bits + target.vector_bits - 1) / target.vector_bits;
}

// The first index of a scalar or contiguous access; null for other accesses.
Expr BaseOf(const Expr& index) {
  if (!index->dtype.is_vector()) return index;
  const auto* ramp = ir::As<ir::RampNode>(index);
  return ramp != nullptr && ir::IsConstInt(ramp->stride, 1) ? ramp->base
                                                            : nullptr;
}

// Finds the slots of all buffers that a loop accesses.
class SlotCollector : public ir::Visitor {
 public:
  SlotCollector(IndexMath& math, const ir::ForNode& loop) : math_(math) {
    variant_.insert(loop.var.get());
    Visit(loop.body);
  }
  using Visitor::Visit;

  std::map<const ir::BufferNode*, Candidate>& candidates() {
    return candidates_;
  }

 protected:
  void VisitFor(const ir::ForNode& s) override {
    variant_.insert(s.var.get());
    // A loop may run zero times.
    const bool maybe = math_.Bounds(s.extent).lo < 1;
    const size_t mark = math_.Mark();
    BindLoop(math_, s);
    if (maybe) conditions_.push_back(nullptr);
    const bool outer = in_parallel_;
    in_parallel_ |= s.for_kind == ir::ForKind::kParallel;
    Visitor::VisitFor(s);
    in_parallel_ = outer;
    math_.Restore(mark);
    if (maybe) conditions_.pop_back();
  }
  void VisitLetStmt(const ir::LetStmtNode& s) override {
    variant_.insert(s.var.get());
    Visitor::VisitLetStmt(s);
  }
  void VisitLet(const ir::LetNode& e) override {
    variant_.insert(e.var.get());
    Visitor::VisitLet(e);
  }
  void VisitAlloc(const ir::AllocNode& s) override {
    inner_.insert(s.buffer.get());
    Visitor::VisitAlloc(s);
  }
  void VisitIf(const ir::IfNode& s) override {
    Visit(s.condition);
    conditions_.push_back(s.condition);
    Visit(s.then_case);
    if (s.else_case != nullptr) {
      conditions_.back() = ir::MakeNot(s.condition);
      Visit(s.else_case);
    }
    conditions_.pop_back();
  }
  void VisitCall(const ir::CallNode& e) override {
    if (e.op != ir::Intrinsic::kIfThenElse) return Visitor::VisitCall(e);
    Visit(e.args[0]);
    conditions_.push_back(nullptr);
    Visit(e.args[1]);
    Visit(e.args[2]);
    conditions_.pop_back();
  }
  void VisitBinary(const ir::BinaryNode& e) override {
    Visit(e.a);
    const bool lazy = e.op == ir::BinaryOp::kAnd || e.op == ir::BinaryOp::kOr;
    if (lazy) conditions_.push_back(nullptr);
    Visit(e.b);
    if (lazy) conditions_.pop_back();
  }
  void VisitLoad(const ir::LoadNode& e) override {
    Visitor::VisitLoad(e);
    Access(e.buffer, e.indices[0], e.predicate, /*store=*/false);
  }
  void VisitStore(const ir::StoreNode& s) override {
    Visitor::VisitStore(s);
    Access(s.buffer, s.indices[0], s.predicate, /*store=*/true);
  }

 private:
  bool Invariant(const Expr& e) const {
    bool invariant = true;
    ir::PostOrderExprs(e, [&](const Expr& x) {
      if (x->kind == ir::ExprKind::kLoad) invariant = false;
      if (x->kind == ir::ExprKind::kVar &&
          variant_.count(static_cast<const ir::VarNode*>(x.get()))) {
        invariant = false;
      }
    });
    return invariant;
  }

  void Access(const Buffer& buffer, const Expr& index, const Expr& predicate,
              bool store) {
    Candidate& candidate = candidates_[buffer.get()];
    if (candidate.buffer == nullptr) {
      candidate.buffer = buffer;
      candidate.order = candidates_.size();
    }
    if (!candidate.legal) return;
    const Expr base = BaseOf(index);
    if (base == nullptr || inner_.count(buffer.get()) || !Invariant(base) ||
        (predicate != nullptr && !Invariant(predicate)) ||
        buffer->scope == "local" || in_parallel_) {
      candidate.legal = false;
      return;
    }
    Slot slot;
    slot.base = base;
    slot.lanes = index->dtype.lanes;
    slot.predicate = predicate;
    slot.always = conditions_.empty();
    if (!slot.always) {
      slot.guard = ir::BoolConst(true);
      for (const Expr& condition : conditions_) {
        if (condition == nullptr || !Invariant(condition)) {
          slot.guard = nullptr;
          break;
        }
        slot.guard = ir::And(slot.guard, condition);
      }
    }
    (store ? slot.stored : slot.loaded) = true;
    if (!candidate.slots.empty()) {
      const auto offset = math_.Difference(base, candidate.slots.front().base);
      if (!offset) {
        candidate.legal = false;
        return;
      }
      slot.offset = *offset;
    }
    for (Slot& known : candidate.slots) {
      if (known.offset >= slot.offset + slot.lanes ||
          slot.offset >= known.offset + known.lanes) {
        continue;
      }
      if (known.offset != slot.offset || known.lanes != slot.lanes ||
          !SameExpr(known.predicate, slot.predicate)) {
        candidate.legal = false;
        return;
      }
      known.loaded |= slot.loaded;
      known.stored |= slot.stored;
      if (!known.always && !slot.always && !SameExpr(known.guard, slot.guard)) {
        known.guard = nullptr;
      }
      known.always |= slot.always;
      return;
    }
    candidate.slots.push_back(std::move(slot));
  }

  IndexMath& math_;
  std::map<const ir::BufferNode*, Candidate> candidates_;
  std::set<const ir::VarNode*> variant_;
  std::set<const ir::BufferNode*> inner_;
  // The conditions around the access; null if one is not a plain condition.
  std::vector<Expr> conditions_;
  // Threads do not share registers.
  bool in_parallel_ = false;
};

bool Worthwhile(const Candidate& candidate) {
  bool updated = false;
  for (const Slot& slot : candidate.slots) {
    // A promotion must not access memory that the program might not access.
    if (!slot.always && slot.guard == nullptr) return false;
    updated |= slot.loaded && slot.stored;
  }
  return candidate.legal && updated;
}

// Redirects accesses of promoted buffers to their local buffers.
class AccessRewriter : public ir::Mutator {
 public:
  AccessRewriter(IndexMath& math,
                 const std::map<const ir::BufferNode*,
                                std::pair<Candidate, Buffer>>& promoted)
      : math_(math), promoted_(promoted) {}
  using Mutator::Mutate;

 protected:
  Expr MutateLoad(const ir::LoadNode& e, const Expr& self) override {
    const auto found = promoted_.find(e.buffer.get());
    if (found == promoted_.end()) return Mutator::MutateLoad(e, self);
    const auto& [candidate, local] = found->second;
    return ir::Load(local, {LocalIndex(candidate, e.indices[0])});
  }
  Stmt MutateStore(const ir::StoreNode& s, const Stmt& self) override {
    const auto found = promoted_.find(s.buffer.get());
    if (found == promoted_.end()) return Mutator::MutateStore(s, self);
    const auto& [candidate, local] = found->second;
    // No mask: lanes that do not exist are never written back.
    return ir::MakeStore(local, {LocalIndex(candidate, s.indices[0])},
                         Mutate(s.value));
  }

 private:
  Expr LocalIndex(const Candidate& candidate, const Expr& index) {
    const int64_t offset =
        *math_.Difference(BaseOf(index), candidate.slots.front().base);
    const auto slot =
        std::find_if(candidate.slots.begin(), candidate.slots.end(),
                     [&](const Slot& s) { return s.offset == offset; });
    Expr base = ir::IntConst(slot->local_offset);
    return slot->lanes == 1 ? base
                            : ir::MakeRamp(base, ir::IntConst(1), slot->lanes);
  }

  IndexMath& math_;
  const std::map<const ir::BufferNode*, std::pair<Candidate, Buffer>>&
      promoted_;
};

// One vector access with the slot's mask.
Stmt Copy(const Slot& slot, const Buffer& buffer, const Buffer& local,
          bool into_local) {
  const auto index = [&](const Expr& base) {
    return slot.lanes == 1 ? base
                           : ir::MakeRamp(base, ir::IntConst(1), slot.lanes);
  };
  const Expr local_index = index(ir::IntConst(slot.local_offset));
  const Expr global_index = index(slot.base);
  Stmt copy =
      into_local
          ? ir::MakeStore(
                local, {local_index},
                std::make_shared<const ir::LoadNode>(
                    buffer, std::vector<Expr>{global_index},
                    buffer->dtype.with_lanes(slot.lanes), slot.predicate))
          : ir::MakeStore(buffer, {global_index},
                          ir::Load(local, {local_index}), slot.predicate);
  return slot.always ? copy : ir::MakeIf(slot.guard, std::move(copy));
}

class Promoter : public ir::Mutator {
 public:
  explicit Promoter(const target::Target& target) : target_(target) {}
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }

 protected:
  // Outermost loops first: fewer copies run further out.
  Stmt MutateFor(const ir::ForNode& s, const Stmt& self) override {
    const bool runs = math_.Bounds(s.extent).lo >= 1;
    const size_t mark = math_.Mark();
    BindLoop(math_, s);
    Stmt out = Promote(s, self, runs);
    math_.Restore(mark);
    return out;
  }

 private:
  Stmt Promote(const ir::ForNode& s, const Stmt& self, bool runs) {
    if (s.for_kind != ir::ForKind::kSerial) return Mutator::MutateFor(s, self);
    std::vector<Candidate> chosen;
    SlotCollector collector(math_, s);
    for (auto& [node, candidate] : collector.candidates()) {
      if (Worthwhile(candidate)) chosen.push_back(std::move(candidate));
    }
    std::sort(chosen.begin(), chosen.end(),
              [](const auto& a, const auto& b) { return a.order < b.order; });
    int64_t budget = 2 * target_.vector_registers;
    std::map<const ir::BufferNode*, std::pair<Candidate, Buffer>> promoted;
    std::vector<const ir::BufferNode*> order;
    for (Candidate& candidate : chosen) {
      int64_t vectors = 0, elements = 0;
      for (Slot& slot : candidate.slots) {
        vectors += VectorsOf(slot, candidate.buffer, target_);
        slot.local_offset = elements;
        elements += slot.lanes;
      }
      if (vectors > budget) continue;
      budget -= vectors;
      Buffer local =
          ir::MakeBuffer(candidate.buffer->name + "_acc",
                         candidate.buffer->dtype, {elements}, "local");
      order.push_back(candidate.buffer.get());
      const ir::BufferNode* key = candidate.buffer.get();
      promoted.emplace(key, std::make_pair(std::move(candidate), local));
    }
    if (promoted.empty()) return Mutator::MutateFor(s, self);
    Stmt body = Mutate(AccessRewriter(math_, promoted).Mutate(s.body));
    std::vector<Stmt> stmts;
    for (const ir::BufferNode* node : order) {
      const auto& [candidate, local] = promoted.at(node);
      for (const Slot& slot : candidate.slots) {
        stmts.push_back(Copy(slot, candidate.buffer, local, true));
      }
    }
    stmts.push_back(std::make_shared<const ir::ForNode>(
        s.var, s.min, s.extent, s.for_kind, std::move(body), s.annotations));
    for (const ir::BufferNode* node : order) {
      const auto& [candidate, local] = promoted.at(node);
      for (const Slot& slot : candidate.slots) {
        if (slot.stored) {
          stmts.push_back(Copy(slot, candidate.buffer, local, false));
        }
      }
    }
    Stmt out = ir::MakeSeq(std::move(stmts));
    // Without an iteration, nothing may be accessed.
    if (!runs) out = ir::MakeIf(ir::GT(s.extent, ir::IntConst(0)), out);
    for (size_t i = order.size(); i-- > 0;) {
      out = ir::MakeAlloc(promoted.at(order[i]).second, std::move(out));
    }
    return out;
  }

  const target::Target& target_;
  IndexMath math_;
};

}  // namespace

Stmt PromoteAccumulators(const Stmt& stmt, const target::Target& target) {
  return Promoter(target).Mutate(stmt);
}

}  // namespace tilefarm::lower
