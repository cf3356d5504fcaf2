#include "compiler/lower/combine_threads.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "compiler/arith/conjuncts.h"
#include "compiler/ir/identity.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/matrix_units.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/thread_axis.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::lower {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ForNode;
using ir::Stmt;

// Every thread reads so many values of others rather than wait for one more
// barrier for each halving of their number.
constexpr int64_t kFewReads = 8;

bool IsPowerOfTwo(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

// Replaces elements of buffers by single elements of others.
class PartialAccess : public ir::Mutator {
 public:
  PartialAccess(const std::vector<const ir::StoreNode*>& stores,
                const std::vector<Buffer>& partials)
      : stores_(stores), partials_(partials) {}
  using Mutator::Mutate;

 protected:
  Expr MutateLoad(const ir::LoadNode& e, const Expr& self) override {
    for (size_t k = 0; k < stores_.size(); ++k) {
      if (e.buffer == stores_[k]->buffer) {
        return ir::Load(partials_[k], {ir::IntConst(0)});
      }
    }
    return Mutator::MutateLoad(e, self);
  }
  Stmt MutateStore(const ir::StoreNode& s, const Stmt& self) override {
    for (size_t k = 0; k < stores_.size(); ++k) {
      if (&s == stores_[k]) {
        return ir::MakeStore(partials_[k], {ir::IntConst(0)}, Mutate(s.value));
      }
    }
    return Mutator::MutateStore(s, self);
  }

 private:
  const std::vector<const ir::StoreNode*>& stores_;
  const std::vector<Buffer>& partials_;
};

// The conditions around the stores that are the same for all terms: without
// them there are no elements.
Expr ElementExists(const ForNode& s, const ThreadUpdate& update) {
  std::set<const ir::VarNode*> inner = {s.var.get()};
  std::vector<Expr> conditions;
  ir::PreOrder(s.body, [&](const Stmt& stmt) {
    if (const auto* loop = ir::As<ForNode>(stmt)) {
      inner.insert(loop->var.get());
    } else if (const auto* let = ir::As<ir::LetStmtNode>(stmt)) {
      inner.insert(let->var.get());
    } else if (const auto* branch = ir::As<ir::IfNode>(stmt)) {
      const bool then =
          !update.single || OnlyStore(branch->then_case) == update.stores[0];
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

// Whether conditions, lets or bounds of loops around the update read what is
// stored: what they do would depend on the updates before. `update` is left
// out (null: nothing is).
bool ReadsAround(const Stmt& nest, const ir::StmtNode* update,
                 const std::vector<const ir::StoreNode*>& stores) {
  bool reads = false;
  const auto look = [&](const Expr& e) {
    ir::PostOrderExprs(e, [&](const Expr& at) {
      const auto* load = ir::As<ir::LoadNode>(at);
      for (const ir::StoreNode* store : stores) {
        reads |= load != nullptr && load->buffer == store->buffer;
      }
    });
  };
  ir::PreOrder(nest, [&](const Stmt& s) {
    if (s.get() == update) return false;
    if (const auto* branch = ir::As<ir::IfNode>(s)) look(branch->condition);
    if (const auto* let = ir::As<ir::LetStmtNode>(s)) look(let->value);
    if (const auto* loop = ir::As<ForNode>(s)) {
      look(loop->min);
      look(loop->extent);
    }
    return true;
  });
  return reads;
}

class Combiner {
 public:
  Combiner(const ForNode& loop, const ThreadUpdate& update,
           const std::vector<const ForNode*>& around, bool shuffles)
      : loop_(loop), update_(update), around_(around), shuffles_(shuffles) {
    for (const ir::StoreNode* store : update.stores) {
      partials_.push_back(ir::MakeBuffer(store->buffer->name + "_partial",
                                         store->buffer->dtype, {1}, "local"));
      first_.push_back({ir::IntConst(0)});
    }
  }

  Stmt Run() {
    Start();
    stmts_.push_back(
        update_.single
            ? IntoPartial(*update_.single, partials_[0], loop_.body)
            : PartialAccess(update_.stores, partials_).Mutate(loop_.body));
    const int64_t threads = *ir::AsInt(loop_.extent);
    // Threads of one group lie side by side in warps.
    const bool in_warps =
        loop_.thread_tag == ir::ThreadTag(ir::ThreadAxis::kThreadX) &&
        (threads % ir::kWarpLanes == 0 ||
         (threads < ir::kWarpLanes && IsPowerOfTwo(threads)));
    const int64_t group =
        in_warps && shuffles_ ? std::min<int64_t>(threads, ir::kWarpLanes) : 1;
    if (update_.single) {
      CombineInGroup(*update_.single, partials_[0], group, stmts_);
    } else {
      CombineLanes(group);
    }
    if (group < threads) Exchange(threads / group, group);
    Finish();
    Stmt body = ir::MakeSeq(std::move(stmts_));
    for (size_t k = partials_.size(); k-- > 0;) {
      body = ir::MakeAlloc(partials_[k], std::move(body));
    }
    Stmt out = std::make_shared<const ForNode>(
        loop_.var, loop_.min, loop_.extent, loop_.for_kind, std::move(body),
        loop_.annotations, loop_.thread_tag);
    for (size_t k = shared_.size(); k-- > 0;) {
      out = ir::MakeAlloc(shared_[k], std::move(out));
    }
    return out;
  }

 private:
  // partial = identity
  void Start() {
    for (size_t k = 0; k < partials_.size(); ++k) {
      stmts_.push_back(
          ir::MakeStore(partials_[k], first_[k], update_.identities[k]));
    }
  }
  // shared[indices] = partial
  Stmt Published(const std::vector<Expr>& indices) const {
    std::vector<Stmt> stores;
    for (size_t k = 0; k < partials_.size(); ++k) {
      stores.push_back(ir::MakeStore(shared_[k], indices, Partials()[k]));
    }
    return ir::MakeSeq(std::move(stores));
  }

  static std::vector<Expr> Loads(
      const std::vector<Buffer>& buffers,
      const std::vector<std::vector<Expr>>& indices) {
    std::vector<Expr> out;
    for (size_t k = 0; k < buffers.size(); ++k) {
      out.push_back(ir::Load(buffers[k], indices[k]));
    }
    return out;
  }
  std::vector<Expr> Partials() const { return Loads(partials_, first_); }
  // Of all shared buffers the same element.
  std::vector<Expr> Shared(const std::vector<Expr>& indices) const {
    return Loads(shared_, {shared_.size(), indices});
  }

  Stmt Assigned(const std::vector<Buffer>& to,
                const std::vector<std::vector<Expr>>& indices,
                const std::vector<Expr>& left,
                const std::vector<Expr>& right) const {
    return arith::AssignTogether(to, indices, update_.Combine(left, right));
  }
  void Into(const std::vector<Buffer>& to,
            const std::vector<std::vector<Expr>>& indices,
            const std::vector<Expr>& left, const std::vector<Expr>& right) {
    stmts_.push_back(Assigned(to, indices, left, right));
  }

  // As CombineInGroup. All lanes take part in the shuffles, also those that
  // keep what they have.
  void CombineLanes(int64_t group) {
    for (int64_t mask = group / 2; mask > 0; mask /= 2) {
      std::vector<ir::Var> got;
      for (const Buffer& partial : partials_) {
        got.push_back(ir::MakeLetVar(partial->name + "_got", partial->dtype));
      }
      Stmt taken =
          Assigned(partials_, first_, Partials(), {got.begin(), got.end()});
      for (size_t k = got.size(); k-- > 0;) {
        taken = std::make_shared<const ir::LetStmtNode>(
            got[k],
            ir::MakeMachineOp(
                ir::MachineOp::kShuffleXor,
                {Partials()[k], ir::IntConst(mask), ir::IntConst(group)}),
            std::move(taken));
      }
      stmts_.push_back(std::move(taken));
    }
  }

  // Each group writes its partial results to shared memory; every thread reads
  // those of all groups. Threads that other loops tell apart have results of
  // their own.
  void Exchange(int64_t groups, int64_t group) {
    const Expr zero = ir::IntConst(0);
    // Threads of a warp lie side by side along the first of the axes: it is the
    // last dimension, so that their elements are in different banks.
    std::vector<const ForNode*> loops;
    for (const ForNode* outer : around_) {
      if (outer != &loop_ && outer->thread_tag != loop_.thread_tag) {
        loops.push_back(outer);
      }
    }
    loops.push_back(&loop_);
    std::ranges::stable_sort(loops, std::ranges::greater(),
                             &ForNode::thread_tag);
    const auto own =
        static_cast<size_t>(std::ranges::find(loops, &loop_) - loops.begin());
    std::vector<int64_t> shape;
    std::vector<Expr> write, read;
    for (const ForNode* loop : loops) {
      shape.push_back(loop == &loop_ ? groups : *ir::AsInt(loop->extent));
      write.push_back(loop->var);
    }
    read = write;
    write[own] = ir::FloorDiv(loop_.var, ir::IntConst(group));
    const ir::Var other = ir::MakeVar("group");
    read[own] = other;
    for (const Buffer& partial : partials_) {
      shared_.push_back(
          ir::MakeBuffer(partial->name + "s", partial->dtype, shape, "shared"));
    }
    Stmt published = Published(write);
    if (group > 1) {
      published =
          ir::MakeIf(ir::EQ(ir::FloorMod(loop_.var, ir::IntConst(group)), zero),
                     std::move(published));
    }
    stmts_.push_back(std::move(published));
    if (group == 1 && groups > kFewReads) {
      AddPairs(groups, write, own);
      read[own] = zero;
      const std::vector<Expr> first = Shared(read);
      read[own] = ir::IntConst(1);
      Into(partials_, first_, first, Shared(read));
      return;
    }
    Start();
    stmts_.push_back(
        ir::MakeFor(other, ir::IntConst(groups),
                    Assigned(partials_, first_, Partials(), Shared(read))));
  }

  // The first two of the elements, one of each thread along the loop (the
  // dimension `own`), become results of all: each thread of the lower half
  // takes an element of the upper half in, then again in that half.
  void AddPairs(int64_t threads, const std::vector<Expr>& mine, size_t own) {
    const Expr thread = loop_.var;
    for (int64_t left = threads; left > 2; left = (left + 1) / 2) {
      const int64_t half = (left + 1) / 2;
      std::vector<Expr> other = mine;
      other[own] = thread + half;
      // The form in which one thread alone is recognised.
      const Expr takes = left - half == 1
                             ? ir::EQ(thread, ir::IntConst(0))
                             : ir::LT(thread, ir::IntConst(left - half));
      if (update_.single) {
        stmts_.push_back(
            ir::MakeIf(takes, Assigned(shared_, {shared_.size(), mine},
                                       Shared(mine), Shared(other))));
        continue;
      }
      // Several stores, each of which would be behind loads of the same branch:
      // a barrier comes between both branches.
      stmts_.push_back(ir::MakeIf(
          takes, Assigned(partials_, first_, Partials(), Shared(other))));
      stmts_.push_back(ir::MakeIf(takes, Published(mine)));
    }
  }

  // The elements take the partial results in: the first thread's, or every
  // thread's own.
  void Finish() {
    Stmt result;
    bool own = true;
    if (update_.single) {
      result = FinishUpdate(*update_.single, partials_[0]);
      own = IsLocal(*update_.stores[0]);
    } else {
      std::vector<Buffer> targets;
      std::vector<std::vector<Expr>> indices;
      for (const ir::StoreNode* store : update_.stores) {
        targets.push_back(store->buffer);
        indices.push_back(store->indices);
        own &= IsLocal(*store);
      }
      result = Assigned(targets, indices, Loads(targets, indices), Partials());
    }
    Expr exists = ElementExists(loop_, update_);
    if (!own) {
      exists = ir::And(ir::EQ(Expr(loop_.var), ir::IntConst(0)), exists);
    }
    if (!ir::IsConstInt(exists, 1)) {
      result = ir::MakeIf(std::move(exists), std::move(result));
    }
    stmts_.push_back(std::move(result));
  }

  static bool IsLocal(const ir::StoreNode& store) {
    return ir::ScopeOf(*store.buffer) == ir::MemoryScope::kLocal;
  }

  const ForNode& loop_;
  const ThreadUpdate& update_;
  const std::vector<const ForNode*>& around_;
  const bool shuffles_;
  std::vector<Buffer> partials_, shared_;
  std::vector<std::vector<Expr>> first_;  // the index of each partial result
  std::vector<Stmt> stmts_;
};

}  // namespace

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

std::vector<Expr> ThreadUpdate::Combine(const std::vector<Expr>& left,
                                        const std::vector<Expr>& right) const {
  if (single) return {ir::MakeBinary(single->op, left[0], right[0])};
  return tuple->Combine(left, right);
}

std::optional<ThreadUpdate> FindThreadUpdate(const Stmt& nest,
                                             IndexMath& math) {
  if (const ir::StoreNode* store = OnlyStore(nest)) {
    auto update = AsElementUpdate(*store);
    // With a let of an element, it may be one of the other kind.
    if (update && !ReadsAround(nest, nullptr, {store})) {
      return ThreadUpdate{{store},
                          {ir::IdentityOf(update->op, store->buffer->dtype)},
                          std::move(update),
                          std::nullopt};
    }
  }
  // Down to the lets or stores.
  const size_t mark = math.Mark();
  Stmt at = nest;
  std::optional<arith::TupleReducer> tuple;
  while (!tuple) {
    if (const auto* loop = ir::As<ForNode>(at)) {
      BindLoop(math, *loop);
      at = loop->body;
      continue;
    }
    const auto* branch = ir::As<ir::IfNode>(at);
    if (branch != nullptr && branch->else_case == nullptr) {
      at = branch->then_case;
      continue;
    }
    tuple = arith::MatchTupleReducer(at, math);
    const auto* let = ir::As<ir::LetStmtNode>(at);
    if (tuple || let == nullptr) break;
    at = let->body;
  }
  math.Restore(mark);
  if (!tuple || ReadsAround(nest, at.get(), tuple->stores)) return std::nullopt;
  return ThreadUpdate{tuple->stores, tuple->identities, std::nullopt,
                      std::move(tuple)};
}

Stmt CombineThreads(const ForNode& loop, const ThreadUpdate& update,
                    const std::vector<const ForNode*>& around, bool shuffles) {
  return Combiner(loop, update, around, shuffles).Run();
}

}  // namespace tilefarm::lower
