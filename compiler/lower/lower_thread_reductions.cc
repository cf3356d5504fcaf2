// A reduction whose terms are divided among threads:
//
//   for k:                              for t in threadIdx.x(T):
//     for t in threadIdx.x(T):            acc = 0
//       B[i] = B[i] + f(t, k)             for k: acc = acc + f(t, k)
//                                  ->     acc = acc + shuffle_xor(acc, 16) ...
//                                         partial[t // 32] = acc
//                                         acc = partial[0] + partial[1] + ...
//                                         B[i] = B[i] + acc     first thread
//
// Every thread then has the sum, so that a local B gets it in each of them.
// Without shuffles, threads add pairs of partial results in shared memory.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/arith/conjuncts.h"
#include "compiler/ir/identity.h"
#include "compiler/ir/matrix_units.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/element_update.h"
#include "compiler/lower/gpu_passes.h"
#include "compiler/lower/index_math.h"

namespace tilefarm::lower {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ForNode;
using ir::Stmt;

// Every thread reads so many values of others rather than wait for one more
// barrier for each halving of their number.
constexpr int64_t kFewReads = 8;

// The only store of the nest; null if there are several.
const ir::StoreNode* OnlyStore(const Stmt& stmt) {
  const ir::StoreNode* only = nullptr;
  int stores = 0;
  ir::PreOrder(stmt, [&](const Stmt& s) {
    if (const auto* store = ir::As<ir::StoreNode>(s)) {
      only = store;
      ++stores;
    }
    return true;
  });
  return stores == 1 ? only : nullptr;
}

// Whether the loop's threads all write elements that do not depend on which of
// them does.
bool WritesOneElement(const ForNode& loop, const ir::StoreNode& store) {
  return std::ranges::none_of(store.indices, [&](const Expr& index) {
    return ir::UsesVar(index, loop.var.get());
  });
}

// The updates of elements that are there before and after a loop of threads and
// that all of these have in common.
class SharedUpdates : public ir::Visitor {
 public:
  // `math` knows the loop and those around; it gets those inside.
  SharedUpdates(const ForNode& loop, IndexMath& math)
      : loop_(loop), math_(math) {}
  using Visitor::Visit;
  void Visit(const Expr&) override {}
  std::vector<const ir::StoreNode*> updates;
  // Stores that may read what they have written for another thread, and are no
  // updates that threads can share.
  std::vector<const ir::StoreNode*> repeated;
  // Some thread other than one makes a store.
  bool several = false;

 protected:
  void VisitFor(const ForNode& s) override {
    BindLoop(math_, s);
    Visitor::VisitFor(s);
  }
  void VisitIf(const ir::IfNode& s) override {
    conditions_.push_back(&s);
    const size_t mark = math_.Mark();
    math_.Assume(s.condition);
    Visit(s.then_case);
    math_.Restore(mark);
    if (s.else_case != nullptr) Visit(s.else_case);
    conditions_.pop_back();
  }
  void VisitAlloc(const ir::AllocNode& s) override {
    begins_.insert({s.buffer.get(), {}});
    Visitor::VisitAlloc(s);
  }
  void VisitStore(const ir::StoreNode& s) override {
    const Interval threads = math_.Bounds(math_.Decompose(loop_.var));
    if (threads.bounded() && threads.lo >= threads.hi) return;
    several = true;
    const auto begin = begins_.find(s.buffer.get());
    if (!AsElementUpdate(s)) {
      if (begin == begins_.end()) {
        // Begins anew in each thread.
        begins_[s.buffer.get()] = conditions_;
        if (WritesOneElement(loop_, s) && ReadsItself(s)) {
          repeated.push_back(&s);
        }
      }
      return;
    }
    // If each thread that makes the update has begun anew.
    const bool own = begin != begins_.end() &&
                     begin->second.size() <= conditions_.size() &&
                     std::equal(begin->second.begin(), begin->second.end(),
                                conditions_.begin());
    if (!own && WritesOneElement(loop_, s)) updates.push_back(&s);
  }

 private:
  // Whether the value may have the element that is written.
  bool ReadsItself(const ir::StoreNode& s) {
    bool reads = false;
    ir::PostOrderExprs(s.value, [&](const Expr& e) {
      const auto* load = ir::As<ir::LoadNode>(e);
      if (load == nullptr || load->buffer != s.buffer) return;
      bool differs = false;
      for (size_t d = 0; d < s.indices.size(); ++d) {
        const Interval distance =
            math_.Bounds(math_.Decompose(load->indices[d] - s.indices[d]));
        differs |= distance.lo > 0 || distance.hi < 0;
      }
      reads |= !differs;
    });
    return reads;
  }

  const ForNode& loop_;
  IndexMath& math_;
  std::vector<const ir::IfNode*> conditions_;
  // The conditions under which a buffer gets its first values.
  std::map<const ir::BufferNode*, std::vector<const ir::IfNode*>> begins_;
};

bool IsPowerOfTwo(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

class ThreadReducer : public ir::Mutator {
 public:
  explicit ThreadReducer(bool shuffles) : shuffles_(shuffles) {}
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }
  absl::Status status;

 protected:
  Stmt MutateFor(const ForNode& s, const Stmt& self) override {
    const size_t mark = math_.Mark();
    if (!IsThreadLoop(s)) {
      const Stmt inside = WithThreadsOutside(s);
      if (inside != nullptr) return Mutate(inside);
      BindLoop(math_, s);
      Stmt out = Mutator::MutateFor(s, self);
      math_.Restore(mark);
      return out;
    }
    threads_.push_back(&s);
    BindLoop(math_, s);
    Stmt out = MutateThreads(s, self);
    math_.Restore(mark);
    threads_.pop_back();
    return out;
  }

 private:
  Stmt MutateThreads(const ForNode& s, const Stmt& self) {
    const ir::StoreNode* store = OnlyStore(s.body);
    const size_t mark = math_.Mark();
    SharedUpdates found(s, math_);
    found.Visit(s.body);
    math_.Restore(mark);
    if (!found.several) return Mutator::MutateFor(s, self);
    if (!found.repeated.empty()) {
      Refuse(s, *found.repeated.front());
      return self;
    }
    if (store == nullptr) {
      if (found.updates.empty()) return Mutator::MutateFor(s, self);
      Refuse(s, *found.updates.front());
      return self;
    }
    if (!WritesOneElement(s, *store) || !UsesThread(s, *store) ||
        Allocates(s.body, store->buffer)) {
      return Mutator::MutateFor(s, self);
    }
    const std::optional<ElementUpdate> update = AsElementUpdate(*store);
    if (!update || HasThreadLoop(s.body)) {
      Refuse(s, *store);
      return self;
    }
    // Which element it is may depend on loops inside of that of the threads.
    if (const auto* inner = ir::As<ForNode>(s.body);
        inner != nullptr && !IsOneElement(s.body, *store)) {
      if (inner->for_kind != ir::ForKind::kThreadBinding &&
          !ir::UsesVar(inner->min, s.var.get()) &&
          !ir::UsesVar(inner->extent, s.var.get())) {
        return Mutate(Exchanged(s, *inner));
      }
    }
    if (!IsOneElement(s.body, *store)) {
      Refuse(s, *store);
      return self;
    }
    return Combine(s, *update);
  }

  // Whether each iteration has its own.
  static bool Allocates(const Stmt& stmt, const Buffer& buffer) {
    bool allocates = false;
    ir::PreOrder(stmt, [&](const Stmt& s) {
      const auto* alloc = ir::As<ir::AllocNode>(s);
      allocates |= alloc != nullptr && alloc->buffer == buffer;
      return !allocates;
    });
    return allocates;
  }

  // Whether no variable of the nest says which element the store accesses.
  static bool IsOneElement(const Stmt& nest, const ir::StoreNode& store) {
    bool one = true;
    const auto look = [&](const ir::VarNode* var) {
      one &= std::ranges::none_of(store.indices, [&](const Expr& index) {
        return ir::UsesVar(index, var);
      });
    };
    ir::PreOrder(nest, [&](const Stmt& s) {
      if (const auto* loop = ir::As<ForNode>(s)) look(loop->var.get());
      if (const auto* let = ir::As<ir::LetStmtNode>(s)) look(let->var.get());
      return true;
    });
    return one;
  }

  // Both loops in the other order.
  static Stmt Exchanged(const ForNode& outer, const ForNode& inner) {
    return std::make_shared<const ForNode>(
        inner.var, inner.min, inner.extent, inner.for_kind,
        std::make_shared<const ForNode>(outer.var, outer.min, outer.extent,
                                        outer.for_kind, inner.body,
                                        outer.annotations, outer.thread_tag),
        inner.annotations, inner.thread_tag);
  }

  void Refuse(const ForNode& s, const ir::StoreNode& store) {
    if (!status.ok()) return;
    status = absl::InvalidArgumentError(absl::StrCat(
        "loop ", s.var->name, " is bound to ", s.thread_tag,
        ": its threads write the same element of ", store.buffer->name,
        ", and not by a sum, product, minimum or maximum of that element "
        "alone"));
  }

  // A serial loop around a loop of threads that all update one element, the
  // same one in each of its iterations, as the loop of threads around it: each
  // thread then has one partial result of all. Null for other loops.
  static Stmt WithThreadsOutside(const ForNode& s) {
    const auto* inner = ir::As<ForNode>(s.body);
    if (s.for_kind == ir::ForKind::kThreadBinding || inner == nullptr ||
        inner->for_kind == ir::ForKind::kVectorized ||
        ir::UsesVar(inner->extent, s.var.get())) {
      return nullptr;
    }
    Stmt threads;
    if (!IsThreadLoop(*inner)) {
      // Several serial loops.
      threads = WithThreadsOutside(*inner);
      if (threads == nullptr) return nullptr;
      inner = ir::As<ForNode>(threads);
    }
    const ir::StoreNode* store = OnlyStore(inner->body);
    if (store == nullptr || !WritesOneElement(s, *store) ||
        !WritesOneElement(*inner, *store) || !AsElementUpdate(*store) ||
        !IsOneElement(inner->body, *store)) {
      return nullptr;
    }
    return std::make_shared<const ForNode>(
        inner->var, inner->min, inner->extent, inner->for_kind,
        std::make_shared<const ForNode>(s.var, s.min, s.extent, s.for_kind,
                                        inner->body, s.annotations),
        inner->annotations, inner->thread_tag);
  }

  // Not a copy that every thread makes of the same value.
  static bool UsesThread(const ForNode& loop, const ir::StoreNode& store) {
    if (!AsElementUpdate(store)) {
      bool uses = false;
      ir::PostOrderExprs(
          loop.body, [&](const Expr& e) { uses |= e.get() == loop.var.get(); });
      return uses;
    }
    return true;
  }

  static bool HasThreadLoop(const Stmt& stmt) {
    bool has = false;
    ir::PreOrder(stmt, [&](const Stmt& s) {
      const auto* loop = ir::As<ForNode>(s);
      has |= loop != nullptr && IsThreadLoop(*loop);
      return !has;
    });
    return has;
  }

  // The conditions around the store that are the same for all terms: without
  // them there is no element.
  static Expr ElementExists(const ForNode& s, const ir::StoreNode& store) {
    std::set<const ir::VarNode*> inner = {s.var.get()};
    std::vector<Expr> conditions;
    ir::PreOrder(s.body, [&](const Stmt& stmt) {
      if (const auto* loop = ir::As<ForNode>(stmt)) {
        inner.insert(loop->var.get());
      } else if (const auto* let = ir::As<ir::LetStmtNode>(stmt)) {
        inner.insert(let->var.get());
      } else if (const auto* branch = ir::As<ir::IfNode>(stmt)) {
        const bool then = OnlyStore(branch->then_case) == &store;
        for (const Expr& part : arith::Conjuncts(
                 then ? branch->condition : ir::MakeNot(branch->condition))) {
          conditions.push_back(part);
        }
      }
      return true;
    });
    Expr exists = ir::BoolConst(true);
    for (const Expr& condition : conditions) {
      const bool of_term = std::ranges::any_of(
          inner,
          [&](const ir::VarNode* var) { return ir::UsesVar(condition, var); });
      if (!of_term) exists = ir::And(exists, condition);
    }
    return exists;
  }

  Stmt Combine(const ForNode& s, const ElementUpdate& update) {
    const Buffer& target = update.store->buffer;
    const ir::BinaryOp op = update.op;
    const Expr zero = ir::IntConst(0);
    const Buffer partial =
        ir::MakeBuffer(target->name + "_partial", target->dtype, {1}, "local");
    const auto combine = [&](Expr other) {
      return CombinePartial(update, partial, std::move(other));
    };
    const Expr identity = ir::IdentityOf(op, target->dtype);
    std::vector<Stmt> stmts = {StartPartial(update, partial),
                               IntoPartial(update, partial, s.body)};
    const int64_t threads = *ir::AsInt(s.extent);
    // Threads of one group lie side by side in warps.
    const bool in_warps =
        s.thread_tag == ir::ThreadTag(ir::ThreadAxis::kThreadX) &&
        (threads % ir::kWarpLanes == 0 ||
         (threads < ir::kWarpLanes && IsPowerOfTwo(threads)));
    const int64_t group =
        in_warps && shuffles_ ? std::min<int64_t>(threads, ir::kWarpLanes) : 1;
    CombineInGroup(update, partial, group, stmts);
    std::optional<Buffer> shared;
    if (group < threads) {
      AddExchange(s, partial, threads / group, group, op, identity, combine,
                  stmts, shared);
    }
    Stmt result = FinishUpdate(update, partial);
    Expr exists = ElementExists(s, *update.store);
    if (ir::ScopeOf(*target) != ir::MemoryScope::kLocal) {
      exists = ir::And(ir::EQ(Expr(s.var), zero), exists);
    }
    if (!ir::IsConstInt(exists, 1)) {
      result = ir::MakeIf(std::move(exists), std::move(result));
    }
    stmts.push_back(std::move(result));
    Stmt body = ir::MakeAlloc(partial, ir::MakeSeq(std::move(stmts)));
    Stmt out = std::make_shared<const ForNode>(s.var, s.min, s.extent,
                                               s.for_kind, std::move(body),
                                               s.annotations, s.thread_tag);
    return shared ? ir::MakeAlloc(*shared, std::move(out)) : out;
  }

  // Each group writes its partial result to shared memory; every thread reads
  // those of all groups. Threads that other loops tell apart have results of
  // their own.
  template <typename CombineWith>
  void AddExchange(const ForNode& s, const Buffer& partial, int64_t groups,
                   int64_t group, ir::BinaryOp op, const Expr& identity,
                   const CombineWith& combine, std::vector<Stmt>& stmts,
                   std::optional<Buffer>& shared) {
    const Expr zero = ir::IntConst(0);
    std::vector<int64_t> shape;
    std::vector<Expr> write, read;
    for (const ForNode* outer : threads_) {
      if (outer == &s || outer->thread_tag == s.thread_tag) continue;
      shape.push_back(*ir::AsInt(outer->extent));
      write.push_back(outer->var);
    }
    read = write;
    shape.push_back(groups);
    write.push_back(ir::FloorDiv(s.var, ir::IntConst(group)));
    const ir::Var other = ir::MakeVar("group");
    read.push_back(other);
    shared =
        ir::MakeBuffer(partial->name + "s", partial->dtype, shape, "shared");
    Stmt publish = ir::MakeStore(*shared, write, ir::Load(partial, {zero}));
    if (group > 1) {
      publish = ir::MakeIf(
          ir::EQ(ir::FloorMod(s.var, ir::IntConst(group)), zero), publish);
    }
    stmts.push_back(std::move(publish));
    if (group == 1 && groups > kFewReads) {
      AddPairs(s.var, groups, *shared, write, op, stmts);
      read.back() = zero;
      const Expr first = ir::Load(*shared, read);
      read.back() = ir::IntConst(1);
      stmts.push_back(ir::MakeStore(
          partial, {zero}, ir::MakeBinary(op, first, ir::Load(*shared, read))));
      return;
    }
    stmts.push_back(ir::MakeStore(partial, {zero}, identity));
    stmts.push_back(ir::MakeFor(other, ir::IntConst(groups),
                                combine(ir::Load(*shared, read))));
  }

  // The first two of the elements, one of each thread along the loop, become
  // sums of all: each thread of the lower half adds an element of the upper
  // half, then again in that half.
  static void AddPairs(const ir::Var& thread, int64_t threads,
                       const Buffer& shared, const std::vector<Expr>& mine,
                       ir::BinaryOp op, std::vector<Stmt>& stmts) {
    for (int64_t left = threads; left > 2; left = (left + 1) / 2) {
      const int64_t half = (left + 1) / 2;
      std::vector<Expr> other = mine;
      other.back() = thread + half;
      // The form in which one thread alone is recognised.
      const Expr adds = left - half == 1
                            ? ir::EQ(Expr(thread), ir::IntConst(0))
                            : ir::LT(Expr(thread), ir::IntConst(left - half));
      stmts.push_back(ir::MakeIf(
          adds, ir::MakeStore(shared, mine,
                              ir::MakeBinary(op, ir::Load(shared, mine),
                                             ir::Load(shared, other)))));
    }
  }

  const bool shuffles_;
  std::vector<const ForNode*> threads_;  // around the statement
  IndexMath math_;                       // knows all loops around it
};

// Buffers that are allocated around kernels are in global memory, whatever
// scope they have.
Stmt WithGlobalWorkspaces(const Stmt& root) {
  if (const auto* alloc = ir::As<ir::AllocNode>(root)) {
    ir::BufferNode workspace(*alloc->buffer);
    workspace.scope = "global";
    const Buffer buffer =
        std::make_shared<const ir::BufferNode>(std::move(workspace));
    return ir::MakeAlloc(buffer,
                         WithGlobalWorkspaces(ir::ReplaceBuffers(
                             alloc->body, {{alloc->buffer.get(), buffer}})));
  }
  if (const auto* seq = ir::As<ir::SeqNode>(root)) {
    std::vector<Stmt> kernels;
    for (const Stmt& stmt : seq->stmts) {
      kernels.push_back(WithGlobalWorkspaces(stmt));
    }
    return ir::MakeSeq(std::move(kernels));
  }
  return root;
}

}  // namespace

bool IsThreadLoop(const ForNode& loop) {
  if (loop.for_kind != ir::ForKind::kThreadBinding) return false;
  const auto axis = ir::ParseThreadAxis(loop.thread_tag);
  return axis && ir::IsThreadIdx(*axis);
}

absl::StatusOr<Stmt> LowerThreadReductions(const Stmt& stmt,
                                           const target::GpuLimits& limits) {
  ThreadReducer reducer(limits.shuffles);
  Stmt out = reducer.Mutate(WithGlobalWorkspaces(stmt));
  if (!reducer.status.ok()) return reducer.status;
  return out;
}

}  // namespace tilefarm::lower
