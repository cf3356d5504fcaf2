#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/arith/window_rows.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/gpu_passes.h"
#include "compiler/lower/index_math.h"
#include "compiler/lower/iteration_analysis.h"

namespace tilefarm::lower {
namespace {

using ir::Expr;
using ir::ForNode;
using ir::Stmt;

bool HasOp(const Stmt& stmt, ir::MachineOp wanted) {
  bool has = false;
  ir::PreOrder(stmt, [&](const Stmt& s) {
    if (const auto* evaluate = ir::As<ir::EvaluateNode>(s)) {
      const auto* op = ir::As<ir::MachineOpNode>(evaluate->value);
      has |= op != nullptr && op->op == wanted;
    }
    return !has;
  });
  return has;
}

// An access to memory that other threads of the block see.
struct SharedAccess {
  const ir::BufferNode* buffer = nullptr;
  bool write = false;
  AccessDims dims;
  // The threads of these axes other than the first do not make it.
  std::set<const ir::VarNode*> first_only;
  // A store that has not arrived yet, whatever barriers follow it.
  bool in_flight = false;
  // A barrier of the block has followed, none of the cluster: it matters to the
  // other blocks alone.
  bool is_in_order = false;
  std::vector<Expr> indices;
  // The loop in an earlier iteration of which it was made, while the code of a
  // later one is visited.
  const ForNode* earlier = nullptr;
  // The loop in front of which it was made, while that is visited.
  const ForNode* in_front_of = nullptr;

  // Whether it is the same, of the same statement.
  bool IsAs(const SharedAccess& other) const {
    return buffer == other.buffer && write == other.write &&
           indices == other.indices && first_only == other.first_only &&
           in_flight == other.in_flight && is_in_order == other.is_in_order &&
           earlier == other.earlier && in_front_of == other.in_front_of;
  }
};
using SharedAccesses = std::vector<SharedAccess>;

struct Axis {
  const ir::VarNode* var;
  int64_t extent;
};

// The variables that are 0 if the condition holds, of those that are never
// negative.
void AddZeros(const Expr& condition, std::set<const ir::VarNode*>& zeros) {
  const auto* binary = ir::As<ir::BinaryNode>(condition);
  if (binary == nullptr) return;
  if (binary->op == ir::BinaryOp::kAnd) {
    AddZeros(binary->a, zeros);
    AddZeros(binary->b, zeros);
  }
  if ((binary->op == ir::BinaryOp::kEQ && ir::IsConstInt(binary->b, 0)) ||
      (binary->op == ir::BinaryOp::kLT && ir::IsConstInt(binary->b, 1))) {
    if (const auto* var = ir::As<ir::VarNode>(binary->a)) zeros.insert(var);
  }
}

// One for each dimension; if there are several, the offset; and as some may be
// digits of a number, as those of an image's pixels are, the numbers of all
// dimensions but one, and of the last ones but the very last.
AccessDims DimsOf(IndexMath& math, const ir::BufferNode& buffer,
                  const std::vector<Expr>& indices) {
  AccessDims dims;
  for (const Expr& index : indices) dims.push_back(math.Decompose(index));
  const size_t count = indices.size();
  if (count < 2) return dims;
  dims.push_back(math.Decompose(arith::NumberOf(math, indices, buffer.shape)));
  if (count < 3) return dims;
  for (size_t first = 0; first + 2 < count; ++first) {
    const arith::TensorView rows =
        arith::MergeRows(math, indices, buffer.shape, first);
    dims.push_back(math.Decompose(rows.indices[first]));
  }
  for (size_t left_out = 0; left_out + 1 < count; ++left_out) {
    std::vector<Expr> digits = indices;
    std::vector<int64_t> counts = buffer.shape;
    digits.erase(digits.begin() + static_cast<int64_t>(left_out));
    counts.erase(counts.begin() + static_cast<int64_t>(left_out));
    dims.push_back(math.Decompose(arith::NumberOf(math, digits, counts)));
  }
  return dims;
}

class SharedAccessCollector : public ir::Visitor {
 public:
  SharedAccessCollector(IndexMath& math,
                        std::set<const ir::VarNode*> first_only)
      : math_(math), first_only_(std::move(first_only)) {}
  using Visitor::Visit;
  SharedAccesses accesses;

 protected:
  void VisitIf(const ir::IfNode& s) override {
    Visit(s.condition);
    const std::set<const ir::VarNode*> outer = first_only_;
    AddZeros(s.condition, first_only_);
    Visit(s.then_case);
    first_only_ = outer;
    if (s.else_case != nullptr) Visit(s.else_case);
  }
  void VisitLoad(const ir::LoadNode& e) override {
    Visitor::VisitLoad(e);
    Add(e.buffer.get(), e.indices, false);
  }
  void VisitStore(const ir::StoreNode& s) override {
    Visitor::VisitStore(s);
    Add(s.buffer.get(), s.indices, true);
    const auto* op = ir::As<ir::MachineOpNode>(s.value);
    if (op != nullptr && op->op == ir::MachineOp::kAsync) {
      accesses.back().in_flight = true;
    }
  }

 private:
  void Add(const ir::BufferNode* buffer, const std::vector<Expr>& indices,
           bool write) {
    if (ir::ScopeOf(*buffer) == ir::MemoryScope::kLocal) return;
    SharedAccess access;
    access.buffer = buffer;
    access.write = write;
    access.first_only = first_only_;
    access.indices = indices;
    access.dims = DimsOf(math_, *buffer, indices);
    accesses.push_back(std::move(access));
  }

  IndexMath& math_;
  std::set<const ir::VarNode*> first_only_;
};

// What waits before an access for those before it.
enum class Waiting : uint8_t { kNone, kBlock, kCluster };

// The statement, after threads have waited.
Stmt Behind(Waiting waiting, Stmt stmt) {
  if (waiting == Waiting::kNone) return stmt;
  return ir::MakeSeq(
      {Effect(waiting == Waiting::kBlock ? ir::MachineOp::kBarrier
                                         : ir::MachineOp::kClusterBarrier,
              {}),
       std::move(stmt)});
}

// Works on the code of one thread, in program order. `pending` has the accesses
// since the last barrier.
class BarrierInserter {
 public:
  absl::Status status;

  Stmt Kernel(const ForNode& outermost) {
    SharedAccesses pending;
    Stmt out = Loop(outermost, pending);
    CheckBlocks();
    return out;
  }

 private:
  // Whether different threads, or blocks of a cluster, may access one element.
  // Variables may have other values in either access, as in different
  // iterations of a loop.
  Waiting Conflict(const SharedAccess& a, const SharedAccess& b) {
    if (a.buffer != b.buffer || (!a.write && !b.write)) return Waiting::kNone;
    // There was a barrier in front of the loop; the next one is of use when it
    // has arrived.
    if (a.in_flight && a.in_front_of != nullptr) return Waiting::kNone;
    if (a.earlier == nullptr && AreVersions(a, b)) return Waiting::kNone;
    // Each iteration has elements of its own.
    if (a.earlier != nullptr && a.write && b.write &&
        a.earlier->annotations.contains(ir::kWritesApart)) {
      return Waiting::kNone;
    }
    if (a.earlier != nullptr && ir::AsInt(a.earlier->extent) &&
        Determines(math_, {a.dims, b.dims}, a.earlier->var.get(),
                   *ir::AsInt(a.earlier->extent))) {
      return Waiting::kNone;
    }
    const auto may_meet = [&](const Axis& axis) {
      if (a.first_only.contains(axis.var) && b.first_only.contains(axis.var)) {
        return false;
      }
      return !Determines(math_, {a.dims, b.dims}, axis.var, axis.extent);
    };
    if (ir::ScopeOf(*a.buffer) == ir::MemoryScope::kCluster &&
        std::ranges::any_of(clusters_, may_meet)) {
      return Waiting::kCluster;
    }
    return !a.is_in_order && std::ranges::any_of(axes_, may_meet)
               ? Waiting::kBlock
               : Waiting::kNone;
  }

  // Whether some index differs, by what is left of a division by a constant:
  // k % 3 and (k + 2) % 3, with the same k.
  bool AreVersions(const SharedAccess& a, const SharedAccess& b) {
    for (size_t d = 0; d < a.indices.size(); ++d) {
      const auto* x = ir::As<ir::BinaryNode>(a.indices[d]);
      const auto* y = ir::As<ir::BinaryNode>(b.indices[d]);
      if (x == nullptr || y == nullptr || x->op != ir::BinaryOp::kFloorMod ||
          y->op != ir::BinaryOp::kFloorMod) {
        continue;
      }
      // Other threads have other values of their axes' variables.
      const bool by_thread = std::ranges::any_of(
          axes_, [&](const Axis& axis) { return ir::UsesVar(x->a, axis.var); });
      if (by_thread) continue;
      const auto count = ir::AsInt(x->b);
      const auto distance = math_.Difference(x->a, y->a);
      if (count && *count > 0 && count == ir::AsInt(y->b) && distance &&
          *distance % *count != 0) {
        return true;
      }
    }
    return false;
  }

  Waiting Conflict(const SharedAccesses& before, const SharedAccesses& after) {
    Waiting most = Waiting::kNone;
    for (const SharedAccess& a : before) {
      for (const SharedAccess& b : after) {
        most = std::max(most, Conflict(a, b));
        if (most == Waiting::kCluster) return most;
      }
    }
    return most;
  }

  template <typename Node>
  SharedAccesses Collect(const Node& node) {
    SharedAccessCollector collector(math_, first_only_);
    collector.Visit(node);
    return std::move(collector.accesses);
  }

  // Of a node without loops, while all those around are visited.
  template <typename Node>
  SharedAccesses CollectLeaf(const Node& node) {
    SharedAccesses accesses = Collect(node);
    if (visits_again_) return accesses;
    for (const SharedAccess& access : accesses) {
      if (ir::ScopeOf(*access.buffer) == ir::MemoryScope::kGlobal) {
        global_.push_back(access);
        OwnVariables(global_.back());
      }
    }
    return accesses;
  }

  // Starts anew after a barrier in front of `after` if one is needed there.
  Waiting WaitBefore(const SharedAccesses& after, SharedAccesses& pending) {
    const Waiting waiting = Conflict(pending, after);
    if (waiting == Waiting::kNone) return waiting;
    std::erase_if(pending, [&](SharedAccess& a) {
      if (a.in_flight) return false;
      a.is_in_order = true;
      return waiting == Waiting::kCluster ||
             ir::ScopeOf(*a.buffer) != ir::MemoryScope::kCluster;
    });
    return waiting;
  }

  // Loops are visited several times, those inside of others many times.
  static void Append(const SharedAccesses& more, SharedAccesses& to) {
    for (const SharedAccess& access : more) {
      const bool known = std::ranges::any_of(
          to, [&](const SharedAccess& a) { return a.IsAs(access); });
      if (!known) to.push_back(access);
    }
  }

  Stmt Visit(const Stmt& stmt, SharedAccesses& pending) {
    switch (stmt->kind) {
      case ir::StmtKind::kSeq: {
        std::vector<Stmt> out;
        for (const Stmt& s : ir::As<ir::SeqNode>(stmt)->stmts) {
          out.push_back(Visit(s, pending));
        }
        return ir::MakeSeq(std::move(out));
      }
      case ir::StmtKind::kAlloc: {
        const auto* alloc = ir::As<ir::AllocNode>(stmt);
        return ir::MakeAlloc(alloc->buffer, Visit(alloc->body, pending));
      }
      case ir::StmtKind::kFor: {
        const auto& loop = *ir::As<ForNode>(stmt);
        const Waiting before = WaitBefore(Collect(stmt), pending);
        return Behind(before, Loop(loop, pending));
      }
      case ir::StmtKind::kIf: {
        const auto& branch = *ir::As<ir::IfNode>(stmt);
        const Waiting before = WaitBefore(Collect(stmt), pending);
        return Behind(before, Branch(branch, pending));
      }
      case ir::StmtKind::kLetStmt: {
        const auto& let = *ir::As<ir::LetStmtNode>(stmt);
        SharedAccesses value = CollectLeaf(let.value);
        const Waiting before = WaitBefore(value, pending);
        Append(value, pending);
        lets_.insert(let.var.get());
        return Behind(before,
                      std::make_shared<const ir::LetStmtNode>(
                          let.var, let.value, Visit(let.body, pending)));
      }
      case ir::StmtKind::kStore:
      case ir::StmtKind::kEvaluate:
      case ir::StmtKind::kBlock:
        break;
    }
    if (const auto* evaluate = ir::As<ir::EvaluateNode>(stmt)) {
      // What arrived is visible to other threads after the next barrier.
      const auto* op = ir::As<ir::MachineOpNode>(evaluate->value);
      if (op != nullptr && op->op == ir::MachineOp::kWait) {
        for (SharedAccess& access : pending) access.in_flight = false;
      }
    }
    const SharedAccesses accesses = CollectLeaf(stmt);
    CheckUpdate(accesses);
    const Waiting before = WaitBefore(accesses, pending);
    Append(accesses, pending);
    return Behind(before, stmt);
  }

  // Gives the access variables of its own, but for those of blocks, within the
  // bounds that the conditions around it allow: what other blocks do at the
  // time has nothing to do with them.
  void OwnVariables(SharedAccess& access) {
    ir::VarMap own;
    for (const Expr& index : access.indices) {
      ir::PostOrderExprs(index, [&](const Expr& e) {
        const auto* var = ir::As<ir::VarNode>(e);
        if (var == nullptr || own.contains(var) ||
            std::ranges::find(blocks_, var, &Axis::var) != blocks_.end()) {
          return;
        }
        const ir::Var copy = ir::MakeVar(var->name, var->dtype);
        const Interval range = guarded_.Bounds(e);
        if (range.bounded()) math_.Bind(copy.get(), range.lo, range.hi);
        own[var] = copy;
        own_.push_back(copy);
      });
    }
    for (Expr& index : access.indices) index = ir::Substitute(index, own);
    access.dims = DimsOf(math_, *access.buffer, access.indices);
  }

  // Blocks run in any order, and no barrier is for several of them.
  void CheckBlocks() {
    for (const SharedAccess& store : global_) {
      if (!store.write) continue;
      for (const SharedAccess& load : global_) {
        if (load.write || load.buffer != store.buffer || !status.ok()) continue;
        const bool apart = std::ranges::all_of(blocks_, [&](const Axis& axis) {
          return (store.first_only.contains(axis.var) &&
                  load.first_only.contains(axis.var)) ||
                 Determines(math_, {store.dims, load.dims}, axis.var,
                            axis.extent);
        });
        if (apart) continue;
        status = absl::InvalidArgumentError(absl::StrCat(
            "a block of threads may read elements of ", store.buffer->name,
            " that another block of the kernel writes; give it a nest of its "
            "own"));
      }
    }
  }

  // No barrier helps where several threads update one element at a time.
  void CheckUpdate(const SharedAccesses& accesses) {
    if (accesses.empty() || !accesses.back().write) return;
    const SharedAccess& store = accesses.back();
    const bool updates =
        std::ranges::any_of(accesses, [&](const SharedAccess& a) {
          return !a.write && a.buffer == store.buffer;
        });
    if (!updates || !status.ok() || !ir::IsInShared(*store.buffer) ||
        Conflict(store, store) == Waiting::kNone) {
      return;
    }
    status = absl::InvalidArgumentError(absl::StrCat(
        "threads update the same elements of ", store.buffer->name,
        ", which they share; compute them in a loop that the threads divide"));
  }

  Stmt Loop(const ForNode& loop, SharedAccesses& pending) {
    BindLoop(math_, loop);
    BindLoop(guarded_, loop);
    const auto with_body = [&](Stmt body) {
      return std::make_shared<const ForNode>(loop.var, loop.min, loop.extent,
                                             loop.for_kind, std::move(body),
                                             loop.annotations, loop.thread_tag);
    };
    if (loop.for_kind == ir::ForKind::kThreadBinding) {
      const auto axis = ir::ParseThreadAxis(loop.thread_tag);
      const int64_t extent = *ir::AsInt(loop.extent);
      if (axis && extent > 1) {
        (ir::IsThreadIdx(*axis) ? axes_ : blocks_)
            .push_back({loop.var.get(), extent});
        if (*axis == ir::ThreadAxis::kCluster) {
          clusters_.push_back(blocks_.back());
        }
      }
      Stmt body = Visit(loop.body, pending);
      const auto* inner = ir::As<ForNode>(loop.body);
      const bool is_innermost =
          inner == nullptr || inner->for_kind != ir::ForKind::kThreadBinding;
      const auto is_from_others = [&](const SharedAccess& access) {
        return IsFromOthers(access);
      };
      if (is_innermost && std::ranges::any_of(pending, is_from_others)) {
        body = ir::MakeSeq(
            {std::move(body), Effect(ir::MachineOp::kClusterBarrier, {})});
      }
      return with_body(std::move(body));
    }
    // What precedes an iteration: what has not arrived, if the loop waits for
    // it, then also the end of another one.
    SharedAccesses in_front;
    if (HasOp(loop.body, ir::MachineOp::kWait)) {
      for (SharedAccess& access : pending) {
        if (!access.in_flight) continue;
        if (access.in_front_of == nullptr) access.in_front_of = &loop;
        in_front.push_back(access);
      }
      std::erase_if(pending, [](const SharedAccess& a) { return a.in_flight; });
    }
    SharedAccesses end = in_front;
    Stmt body = Visit(loop.body, end);
    if (!ir::IsConstInt(loop.extent, 1)) {
      // Barriers that the first pass adds may leave other accesses at the end.
      const bool again = std::exchange(visits_again_, true);
      for (int pass = 0; pass < 2; ++pass) {
        for (SharedAccess& access : end) {
          if (access.in_front_of == nullptr) access.earlier = &loop;
        }
        Append(in_front, end);
        body = Visit(loop.body, end);
      }
      visits_again_ = again;
    }
    if (DivergesAt(loop.extent, body)) Refuse(loop.extent, loop.var->name);
    for (SharedAccess& access : end) {
      access.earlier = nullptr;
      if (access.in_front_of == &loop) access.in_front_of = nullptr;
    }
    Append(end, pending);
    return with_body(std::move(body));
  }

  Stmt Branch(const ir::IfNode& branch, SharedAccesses& pending) {
    Append(CollectLeaf(branch.condition), pending);
    const std::set<const ir::VarNode*> outer = first_only_;
    AddZeros(branch.condition, first_only_);
    SharedAccesses inside;
    const size_t mark = guarded_.Mark();
    guarded_.Assume(branch.condition);
    Stmt then_case = Visit(branch.then_case, inside);
    guarded_.Restore(mark);
    first_only_ = outer;
    Append(inside, pending);
    Stmt else_case;
    if (branch.else_case != nullptr) {
      inside.clear();
      guarded_.AssumeNot(branch.condition);
      else_case = Visit(branch.else_case, inside);
      guarded_.Restore(mark);
      Append(inside, pending);
    }
    if (DivergesAt(branch.condition, then_case) ||
        (else_case != nullptr && DivergesAt(branch.condition, else_case))) {
      Refuse(branch.condition, ir::ToString(branch.condition));
    }
    return ir::MakeIf(branch.condition, std::move(then_case),
                      std::move(else_case));
  }

  // Whether it is a load from other blocks' memory, which is there until they
  // end.
  bool IsFromOthers(const SharedAccess& access) const {
    return ir::ScopeOf(*access.buffer) == ir::MemoryScope::kCluster &&
           !access.write &&
           std::ranges::any_of(clusters_, [&](const Axis& axis) {
             return access.indices[0].get() != axis.var;
           });
  }

  // Whether threads that meet at a barrier of the statement may find different
  // values.
  bool DivergesAt(const Expr& e, const Stmt& stmt) const {
    return (DependsOnBlock(e) && HasOp(stmt, ir::MachineOp::kClusterBarrier)) ||
           (Diverges(e) && HasBarrier(stmt));
  }

  // Whether the blocks of a cluster may find different values.
  bool DependsOnBlock(const Expr& e) const {
    return std::ranges::any_of(
        clusters_, [&](const Axis& axis) { return ir::UsesVar(e, axis.var); });
  }

  // Whether threads of a block may find different values.
  bool Diverges(const Expr& e) const {
    bool diverges = false;
    ir::PostOrderExprs(e, [&](const Expr& x) {
      diverges |= x->kind == ir::ExprKind::kLoad;
      const auto* var = ir::As<ir::VarNode>(x);
      diverges |= var != nullptr && lets_.contains(var);
      diverges |= std::ranges::any_of(
          axes_, [&](const Axis& axis) { return axis.var == var; });
    });
    return diverges;
  }

  void Refuse(const Expr& divergent, const std::string& where) {
    if (!status.ok()) return;
    const bool blocks = DependsOnBlock(divergent);
    status = absl::InvalidArgumentError(
        absl::StrCat("threads exchange values where not all of a ",
                     blocks ? "cluster's blocks" : "block", " arrive (", where,
                     "); bind loops of equal extents to each axis of ",
                     blocks ? "blocks" : "threads"));
  }

  IndexMath math_;
  IndexMath guarded_;           // also knows the conditions around
  std::vector<Axis> axes_;      // of threads
  std::vector<Axis> blocks_;    // of blocks
  std::vector<Axis> clusters_;  // of blocks in a cluster
  SharedAccesses global_;       // all of the kernel to global memory
  std::vector<ir::Var> own_;    // of these
  bool visits_again_ = false;   // a loop whose accesses global_ has
  std::set<const ir::VarNode*> lets_;
  std::set<const ir::VarNode*> first_only_;
};

class BarrierMutator : public ir::Mutator {
 public:
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }
  absl::Status status;

 protected:
  Stmt MutateFor(const ForNode& s, const Stmt& self) override {
    // Has all barriers that it needs (LowerWarpgroups).
    if (HasOp(self, ir::MachineOp::kBarrierInit)) return self;
    BarrierInserter inserter;
    Stmt out = inserter.Kernel(s);
    if (status.ok()) status = inserter.status;
    return out;
  }
};

}  // namespace

bool HasBarrier(const Stmt& stmt) {
  return HasOp(stmt, ir::MachineOp::kBarrier) ||
         HasOp(stmt, ir::MachineOp::kClusterBarrier);
}

Stmt Effect(Expr op) {
  return std::make_shared<const ir::EvaluateNode>(std::move(op));
}

Stmt Effect(ir::MachineOp op, std::vector<Expr> args) {
  return Effect(ir::MakeMachineOp(op, std::move(args)));
}

absl::StatusOr<Stmt> InsertBarriers(const Stmt& stmt) {
  BarrierMutator mutator;
  Stmt out = mutator.Mutate(stmt);
  if (!mutator.status.ok()) return mutator.status;
  return out;
}

}  // namespace tilefarm::lower
