#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "compiler/ir/machine_op.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/index_math.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::Stmt;

// Consecutive elements that a region accesses: a loop in every iteration, or a
// sequence of stores.
struct Slot {
  Expr base;  // index of the first element
  int lanes = 1;
  Expr predicate;      // lanes that exist; null: all
  int64_t reach = 1;   // lanes past this number never exist
  int64_t offset = 0;  // from the first slot of the buffer
  bool loaded = false;
  int stores = 0;
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

// The number of leading lanes outside of which the predicate is false.
int64_t ReachOf(IndexMath& math, const Expr& predicate, int lanes) {
  const auto* compare = ir::As<ir::BinaryNode>(predicate);
  if (compare == nullptr) return lanes;
  if (compare->op == ir::BinaryOp::kAnd) {
    return std::min(ReachOf(math, compare->a, lanes),
                    ReachOf(math, compare->b, lanes));
  }
  const auto* lane = ir::As<ir::RampNode>(compare->a);
  const auto* end = ir::As<ir::BroadcastNode>(compare->b);
  if (compare->op != ir::BinaryOp::kLT || lane == nullptr || end == nullptr ||
      !ir::IsConstInt(lane->stride, 1)) {
    return lanes;
  }
  return std::clamp<int64_t>(math.Bounds(end->value - lane->base).hi, 0, lanes);
}

// Finds the slots of all buffers that a region accesses.
class SlotCollector : public ir::Visitor {
 public:
  // `var`: of the loop whose body the region is; null: it is none.
  SlotCollector(IndexMath& math, const Stmt& region, const ir::VarNode* var)
      : math_(math) {
    if (var != nullptr) variant_.insert(var);
    Visit(region);
  }
  using Visitor::Visit;

  std::map<const ir::BufferNode*, Candidate>& candidates() {
    if (has_barrier_) candidates_.clear();
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
  // Other threads see what was stored before a barrier.
  void VisitEvaluate(const ir::EvaluateNode& s) override {
    const auto* op = ir::As<ir::MachineOpNode>(s.value);
    has_barrier_ |= op != nullptr && (op->op == ir::MachineOp::kBarrier ||
                                      op->op == ir::MachineOp::kClusterBarrier);
    Visitor::VisitEvaluate(s);
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
        buffer->scope == "local" || ir::IsInShared(*buffer) || in_parallel_) {
      candidate.legal = false;
      return;
    }
    Slot slot;
    slot.base = base;
    slot.lanes = index->dtype.lanes;
    slot.predicate = predicate;
    slot.reach = predicate == nullptr ? slot.lanes
                                      : ReachOf(math_, predicate, slot.lanes);
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
    slot.loaded = !store;
    slot.stores = store ? 1 : 0;
    if (!candidate.slots.empty()) {
      const auto offset = math_.Difference(base, candidate.slots.front().base);
      if (!offset) {
        candidate.legal = false;
        return;
      }
      slot.offset = *offset;
    }
    for (Slot& known : candidate.slots) {
      // Vectors in memory may overlap where lanes do not exist.
      if (known.offset != slot.offset &&
          (known.offset >= slot.offset + slot.reach ||
           slot.offset >= known.offset + known.reach)) {
        continue;
      }
      if (known.offset != slot.offset || known.lanes != slot.lanes ||
          !SameExpr(known.predicate, slot.predicate)) {
        candidate.legal = false;
        return;
      }
      known.loaded |= slot.loaded;
      known.stores += slot.stores;
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
  bool has_barrier_ = false;
};

bool IsLegal(const Candidate& candidate) {
  for (const Slot& slot : candidate.slots) {
    // A promotion must not access memory that the program might not access.
    if (!slot.always && slot.guard == nullptr) return false;
  }
  return candidate.legal;
}

// A loop repeats its updates.
bool IsUpdated(const Slot& slot) { return slot.loaded && slot.stores > 0; }
// In a sequence, code generators forward what was stored to the next load, but
// not under a mask.
bool IsUpdatedUnderMask(const Slot& slot) {
  return slot.loaded && slot.stores > 1 && slot.predicate != nullptr;
}

bool AreStores(const ir::SeqNode& seq) {
  return std::ranges::all_of(seq.stmts, [](const Stmt& stmt) {
    return stmt->kind == ir::StmtKind::kStore;
  });
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

// What is promoted around a region, with the buffers that hold it.
struct Promotion {
  std::map<const ir::BufferNode*, std::pair<Candidate, Buffer>> promoted;
  std::vector<const ir::BufferNode*> order;
};

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
  Stmt MutateSeq(const ir::SeqNode& s, const Stmt& self) override {
    if (!AreStores(s)) return Mutator::MutateSeq(s, self);
    SlotCollector collector(math_, self, nullptr);
    const Promotion promotion = Choose(collector, IsUpdatedUnderMask);
    if (promotion.order.empty()) return self;
    return WithAllocations(
        promotion,
        WithCopies(promotion,
                   AccessRewriter(math_, promotion.promoted).Mutate(self)));
  }

 private:
  Stmt Promote(const ir::ForNode& s, const Stmt& self, bool runs) {
    if (s.for_kind != ir::ForKind::kSerial) return Mutator::MutateFor(s, self);
    SlotCollector collector(math_, s.body, s.var.get());
    const Promotion promotion = Choose(collector, IsUpdated);
    if (promotion.order.empty()) return Mutator::MutateFor(s, self);
    Stmt body =
        Mutate(AccessRewriter(math_, promotion.promoted).Mutate(s.body));
    Stmt out = WithCopies(promotion, std::make_shared<const ir::ForNode>(
                                         s.var, s.min, s.extent, s.for_kind,
                                         std::move(body), s.annotations));
    // Without an iteration, nothing may be accessed.
    if (!runs) out = ir::MakeIf(ir::GT(s.extent, ir::IntConst(0)), out);
    return WithAllocations(promotion, std::move(out));
  }

  // Of the buffers that may be promoted, those with a slot that gains by it,
  // as far as there are registers.
  Promotion Choose(SlotCollector& collector, bool (*gains)(const Slot&)) const {
    std::vector<Candidate> chosen;
    for (auto& [node, candidate] : collector.candidates()) {
      if (IsLegal(candidate) && std::ranges::any_of(candidate.slots, gains)) {
        chosen.push_back(std::move(candidate));
      }
    }
    std::ranges::sort(chosen, {}, &Candidate::order);
    int64_t budget = 2 * target_.vector_registers;
    Promotion promotion;
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
      const ir::BufferNode* key = candidate.buffer.get();
      promotion.order.push_back(key);
      promotion.promoted.emplace(key,
                                 std::make_pair(std::move(candidate), local));
    }
    return promotion;
  }

  // The region between copies into the local buffers and back.
  static Stmt WithCopies(const Promotion& promotion, Stmt region) {
    std::vector<Stmt> stmts;
    for (const ir::BufferNode* node : promotion.order) {
      const auto& [candidate, local] = promotion.promoted.at(node);
      for (const Slot& slot : candidate.slots) {
        stmts.push_back(Copy(slot, candidate.buffer, local, true));
      }
    }
    stmts.push_back(std::move(region));
    for (const ir::BufferNode* node : promotion.order) {
      const auto& [candidate, local] = promotion.promoted.at(node);
      for (const Slot& slot : candidate.slots) {
        if (slot.stores > 0) {
          stmts.push_back(Copy(slot, candidate.buffer, local, false));
        }
      }
    }
    return ir::MakeSeq(std::move(stmts));
  }

  static Stmt WithAllocations(const Promotion& promotion, Stmt region) {
    for (size_t i = promotion.order.size(); i-- > 0;) {
      region = ir::MakeAlloc(promotion.promoted.at(promotion.order[i]).second,
                             std::move(region));
    }
    return region;
  }

  const target::Target& target_;
  IndexMath math_;
};

}  // namespace

Stmt PromoteAccumulators(const Stmt& stmt, const target::Target& target) {
  return Promoter(target).Mutate(stmt);
}

}  // namespace tilefarm::lower
