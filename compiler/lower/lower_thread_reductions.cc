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
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/combine_threads.h"
#include "compiler/lower/element_update.h"
#include "compiler/lower/gpu_passes.h"
#include "compiler/lower/index_math.h"

namespace tilefarm::lower {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ForNode;
using ir::Stmt;

// Whether the loop's threads all write elements that do not depend on which of
// them does.
bool WritesOneElement(const ForNode& loop, const ir::StoreNode& store) {
  return std::ranges::none_of(store.indices, [&](const Expr& index) {
    return ir::UsesVar(index, loop.var.get());
  });
}
bool WriteOneElement(const ForNode& loop,
                     const std::vector<const ir::StoreNode*>& stores) {
  return std::ranges::all_of(stores, [&](const ir::StoreNode* store) {
    return WritesOneElement(loop, *store);
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
  void VisitLetStmt(const ir::LetStmtNode& s) override {
    lets_[s.var.get()] = ir::Substitute(s.value, lets_);
    Visitor::VisitLetStmt(s);
  }
  void VisitStore(const ir::StoreNode& s) override {
    const Interval threads = math_.Bounds(math_.Decompose(loop_.var));
    if (threads.bounded() && threads.lo >= threads.hi) return;
    several = true;
    const auto begin = begins_.find(s.buffer.get());
    const ir::StoreNode whole(s.buffer, s.indices,
                              ir::Substitute(s.value, lets_));
    if (!AsElementUpdate(whole)) {
      if (begin == begins_.end()) {
        // Begins anew in each thread.
        begins_[s.buffer.get()] = conditions_;
        if (WritesOneElement(loop_, s) && ReadsItself(whole)) {
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
  ir::VarMap lets_;
  std::vector<const ir::IfNode*> conditions_;
  // The conditions under which a buffer gets its first values.
  std::map<const ir::BufferNode*, std::vector<const ir::IfNode*>> begins_;
};

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
    const bool shares = !found.repeated.empty() || !found.updates.empty();
    const std::optional<ThreadUpdate> update =
        shares ? FindThreadUpdate(s.body, math_) : std::nullopt;
    if (update && WriteOneElement(s, update->stores) &&
        !HasThreadLoop(s.body)) {
      if (IsOneElement(s.body, update->stores)) {
        return CombineThreads(s, *update, threads_, shuffles_);
      }
      // Which element it is may depend on loops inside of that of the threads.
      if (const auto* inner = ir::As<ForNode>(s.body);
          inner != nullptr && inner->for_kind != ir::ForKind::kThreadBinding &&
          !ir::UsesVar(inner->min, s.var.get()) &&
          !ir::UsesVar(inner->extent, s.var.get())) {
        return Mutate(Exchanged(s, *inner));
      }
    }
    if (!found.repeated.empty() || (shares && store == nullptr)) {
      Refuse(
          s,
          *(found.repeated.empty() ? found.updates : found.repeated).front());
      return self;
    }
    if (store != nullptr && WritesOneElement(s, *store) &&
        UsesThread(s, *store) && !Allocates(s.body, store->buffer)) {
      Refuse(s, *store);
      return self;
    }
    return Mutator::MutateFor(s, self);
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

  // Whether no variable of the nest says which elements the stores access.
  static bool IsOneElement(const Stmt& nest,
                           const std::vector<const ir::StoreNode*>& stores) {
    bool one = true;
    const auto look = [&](const ir::VarNode* var) {
      for (const ir::StoreNode* store : stores) {
        one &= std::ranges::none_of(store->indices, [&](const Expr& index) {
          return ir::UsesVar(index, var);
        });
      }
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
        "alone, nor by a choice whose order does not matter"));
  }

  // A serial loop around a loop of threads that all update one element, the
  // same one in each of its iterations, as the loop of threads around it: each
  // thread then has one partial result of all. Null for other loops.
  Stmt WithThreadsOutside(const ForNode& s) {
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
    const auto update = FindThreadUpdate(inner->body, math_);
    if (!update || !WriteOneElement(s, update->stores) ||
        !WriteOneElement(*inner, update->stores) ||
        !IsOneElement(inner->body, update->stores)) {
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
