// Kernels of matrix units and the copy engine. A loop that fetches two tiles
// and multiplies them (warpgroup_nest.h), in threads t:
//
//   init(sums)
//   for k in range(K):
//     A_shared, B_shared = A[..], B[..]
//     sums += A_shared * B_shared
//   use(sums)
//
// becomes, with one more warp:
//
//   if t == 0: init full[stages], empty[stages]
//   barrier
//   if t // 128 == warpgroups:
//     if t == the first of these threads:
//       for k in range(K):
//         wait(empty[k % stages])
//         copy boxes, then arrive at full[k % stages]
//   else:
//     init(sums)
//     for k in range(K):
//       wait(full[k % stages])
//       start sums += A_shared * B_shared
//       wait for the products of k - 1
//       arrive at empty[(k - 1) % stages]
//     wait for the products
//     use(sums)
//   cluster_barrier; add up what the blocks of a cluster have; cluster_barrier
//
// The barriers are those of stage_ring.h. Of loops around the pipeline
// (persistent blocks, which compute several tiles) the iterations are counted
// through.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/matrix_units.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/tensor_box.h"
#include "compiler/ir/thread_axis.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/gpu_passes.h"
#include "compiler/lower/index_math.h"
#include "compiler/lower/stage_ring.h"
#include "compiler/lower/warpgroup_chain.h"
#include "compiler/lower/warpgroup_nest.h"
#include "compiler/lower/warpgroup_stores.h"

namespace tilefarm::lower {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ForKind;
using ir::ForNode;
using ir::MachineOp;
using ir::Stmt;

// The loop and the statements around it, outermost first.
class LoopFinder : public ir::Visitor {
 public:
  using Visitor::Visit;
  void Visit(const Expr&) override {}
  const ForNode* loop = nullptr;
  std::vector<Stmt> path;
  int count = 0;

  void Visit(const Stmt& stmt) override {
    stack_.push_back(stmt);
    Visitor::Visit(stmt);
    stack_.pop_back();
  }

 protected:
  void VisitFor(const ForNode& s) override {
    if (s.annotations.contains(ir::kWarpgroupStages)) {
      loop = &s;
      path.assign(stack_.begin(), stack_.end() - 1);
      ++count;
    }
    Visitor::VisitFor(s);
  }

 private:
  std::vector<Stmt> stack_;
};

// Replaces one statement.
class StmtReplacer : public ir::Mutator {
 public:
  StmtReplacer(const ir::StmtNode* loop, Stmt by)
      : loop_(loop), by_(std::move(by)) {}
  Expr Mutate(const Expr& expr) override { return expr; }
  Stmt Mutate(const Stmt& stmt) override {
    return stmt.get() == loop_ ? by_ : Mutator::Mutate(stmt);
  }

 private:
  const ir::StmtNode* loop_;
  const Stmt by_;
};

// Stores of constants to the sums happen for all of them: those that the
// program leaves undefined may have any value.
class InitUnguarder : public ir::Mutator {
 public:
  explicit InitUnguarder(Buffer sums) : sums_(std::move(sums)) {}
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }

 protected:
  Stmt MutateIf(const ir::IfNode& s, const Stmt& self) override {
    const auto* store = ir::As<ir::StoreNode>(s.then_case);
    const bool is_init = s.else_case == nullptr && store != nullptr &&
                         store->buffer == sums_ &&
                         (store->value->kind == ir::ExprKind::kFloatConst ||
                          store->value->kind == ir::ExprKind::kIntConst);
    return is_init ? s.then_case : Mutator::MutateIf(s, self);
  }

 private:
  const Buffer sums_;
};

// One kernel.
class KernelLowering {
 public:
  KernelLowering(const ForNode& loop, std::vector<Stmt> path,
                 std::vector<ir::ForPtr> axes, Stmt body)
      : loop_(loop),
        path_(std::move(path)),
        axes_(std::move(axes)),
        body_(std::move(body)) {}

  absl::StatusOr<Stmt> Lower(const target::GpuLimits& limits) {
    TF_RETURN_IF_ERROR(FindThreads());
    if (!limits.warpgroup_products) {
      return Refuse(
          "the target has no matrix units of warpgroups (sm_90a has)");
    }
    const auto stages = loop_.annotations.at(ir::kWarpgroupStages).AsInt();
    if (!stages || *stages < 2 || *stages > kMostStages) {
      return Refuse(
          absl::StrCat("it needs from 2 to ", kMostStages, " stages"));
    }
    ring_.emplace(*stages);
    std::vector<const ForNode*> around;
    for (const ir::ForPtr& axis : axes_) around.push_back(axis.get());
    for (const Stmt& stmt : path_) {
      if (const auto* outer = ir::As<ForNode>(stmt)) around.push_back(outer);
    }
    TF_ASSIGN_OR_RETURN(nest_,
                        MatchWarpgroupNest(loop_, around, thread_, threads_));
    TF_RETURN_IF_ERROR(CheckPath());
    TakeClusterPart();
    TF_RETURN_IF_ERROR(CheckUses());
    if (threads_ + ir::kWarpLanes > limits.block_threads) {
      return Refuse("a block has no room for one more warp");
    }
    a_ = ring_->Tiles(nest_.a);
    b_ = ring_->Tiles(nest_.b);
    group_ = ir::MakeLetVar("warpgroup", ir::DataType::Index());
    return Assemble();
  }

 private:
  absl::Status Refuse(const std::string& why) const {
    return absl::InvalidArgumentError(
        absl::StrCat("loop ", loop_.var->name, ": warpgroup products: ", why));
  }

  absl::Status FindThreads() {
    for (const ir::ForPtr& axis : axes_) {
      const auto which = ir::ParseThreadAxis(axis->thread_tag);
      if (!ir::IsThreadIdx(*which)) continue;
      const int64_t extent = *ir::AsInt(axis->extent);
      if (which == ir::ThreadAxis::kThreadX) {
        thread_ = axis->var;
        threads_ = extent;
      } else if (extent > 1) {
        return Refuse("its threads are to be of one axis, threadIdx.x");
      }
    }
    if (thread_ == nullptr) return Refuse("it is in no loop of threads");
    if (!ir::AsInt(loop_.extent) || loop_.for_kind != ForKind::kSerial) {
      return Refuse("it is no serial loop of constant extent");
    }
    return absl::OkStatus();
  }

  // The loops around the pipeline, whose iterations are counted through.
  absl::Status CheckPath() {
    iteration_ = ir::IntConst(0);
    for (const Stmt& stmt : path_) {
      const auto* loop = ir::As<ForNode>(stmt);
      if (loop != nullptr) {
        if (!ir::AsInt(loop->extent) || loop->for_kind != ForKind::kSerial) {
          return Refuse(absl::StrCat("loop ", loop->var->name,
                                     " around it is no serial loop of constant "
                                     "extent"));
        }
        iteration_ = iteration_ * loop->extent + Expr(loop->var);
        outer_.push_back(loop);
      } else if (stmt->kind != ir::StmtKind::kSeq &&
                 stmt->kind != ir::StmtKind::kAlloc) {
        return Refuse("conditions or definitions are around it");
      }
    }
    // A condition may end the loops around, but not leave out an iteration.
    for (const Expr& condition : nest_.conditions) {
      const auto* less = ir::As<ir::BinaryNode>(condition);
      bool ends = less != nullptr && less->op == ir::BinaryOp::kLT &&
                  ir::AsInt(less->b).has_value();
      if (ends) {
        IndexMath math;
        const Linear sum = math.Decompose(less->a);
        for (const ForNode* loop : outer_) {
          const int64_t step = sum.CoefficientOf(loop->var.get());
          const Expr rest = less->a - Expr(loop->var) * step;
          ends &=
              step >= 0 && !ir::UsesVar(math.Simplify(rest), loop->var.get());
        }
      }
      if (!ends) {
        return Refuse(absl::StrCat("the condition ", ir::ToString(condition),
                                   " leaves out iterations"));
      }
    }
    iteration_ = iteration_ * loop_.extent + Expr(loop_.var);
    return absl::OkStatus();
  }

  // Nothing else uses the tiles or writes the tensors, and the threads exchange
  // nothing outside of the loop.
  absl::Status CheckUses() const {
    bool writes = false;
    ir::PreOrder(body_, [&](const Stmt& s) {
      const auto* store = ir::As<ir::StoreNode>(s);
      writes |= store != nullptr && (store->buffer == nest_.a.tensor ||
                                     store->buffer == nest_.b.tensor);
      return true;
    });
    if (writes) return Refuse("the kernel writes a tensor that it multiplies");
    int tiles = 0;
    ir::PreOrder(loop_.body, [&](const Stmt& s) {
      const auto* alloc = ir::As<ir::AllocNode>(s);
      if (alloc != nullptr) {
        tiles += alloc->buffer == nest_.a.tile || alloc->buffer == nest_.b.tile;
      }
      return true;
    });
    if (tiles != 2) return Refuse("the tiles are not allocated in it");
    TF_ASSIGN_OR_RETURN(
        const Stmt rest,
        WithBarriers(StmtReplacer(&loop_, ir::NoOp()).Mutate(body_)));
    TF_ASSIGN_OR_RETURN(const Stmt then, WithBarriers(then_));
    if (HasBarrier(rest) || HasBlockBarrier(then)) {
      return Refuse("threads exchange values outside of it");
    }
    return absl::OkStatus();
  }

  // Code of one thread of the kernel, alone.
  absl::StatusOr<Stmt> WithBarriers(Stmt stmt) const {
    for (size_t i = axes_.size(); i-- > 0;) {
      stmt = RingLoop(*axes_[i], std::move(stmt));
    }
    return InsertBarriers(stmt);
  }

  static bool HasBlockBarrier(const Stmt& stmt) {
    bool has = false;
    ir::PreOrder(stmt, [&](const Stmt& s) {
      const auto* evaluate = ir::As<ir::EvaluateNode>(s);
      const auto* op = evaluate == nullptr
                           ? nullptr
                           : ir::As<ir::MachineOpNode>(evaluate->value);
      has |= op != nullptr && op->op == MachineOp::kBarrier;
      return !has;
    });
    return has;
  }

  // What follows the statement with the loop, where the blocks of a cluster
  // share a buffer, is for all threads when the whole cluster has come there.
  void TakeClusterPart() {
    Stmt body = body_;
    while (const auto* alloc = ir::As<ir::AllocNode>(body)) {
      if (ir::ScopeOf(*alloc->buffer) != ir::MemoryScope::kCluster) return;
      cluster_buffers_.push_back(alloc->buffer);
      body = alloc->body;
    }
    const auto* seq = ir::As<ir::SeqNode>(body);
    if (cluster_buffers_.empty() || seq == nullptr) return;
    const auto has_loop = [&](const Stmt& stmt) {
      bool has = false;
      ir::PreOrder(stmt, [&](const Stmt& s) {
        has |= s.get() == &loop_;
        return !has;
      });
      return has;
    };
    const auto with_loop = std::ranges::find_if(seq->stmts, has_loop);
    if (with_loop == seq->stmts.end()) return;
    then_ = ir::MakeSeq({with_loop + 1, seq->stmts.end()});
    body_ = ir::MakeSeq({seq->stmts.begin(), with_loop + 1});
  }

  Expr Sums(int64_t offset) const {
    std::vector<Expr> indices(nest_.sums->shape.size());
    for (size_t d = indices.size(); d-- > 0;) {
      indices[d] = ir::IntConst(offset % nest_.sums->shape[d]);
      offset /= nest_.sums->shape[d];
    }
    return ir::Load(nest_.sums, std::move(indices));
  }
  Expr SumsCount() const { return ir::IntConst(nest_.sums->num_elements()); }

  Stmt Fetch() const {
    Stmt out = Guarded(RingLoop(
        loop_, ring_->Fetch(iteration_, {{&nest_.a, a_}, {&nest_.b, b_}})));
    for (size_t i = outer_.size(); i-- > 0;) {
      out = RingLoop(*outer_[i], std::move(out));
    }
    return out;
  }

  Stmt Guarded(Stmt stmt) const {
    for (const Expr& condition : nest_.conditions) {
      stmt = ir::MakeIf(condition, std::move(stmt));
    }
    return stmt;
  }

  // The address of a factor: `place` along rows or columns of the product.
  Expr Address(const WarpgroupOperand& operand, const Buffer& tiles,
               const Expr& stage, const Expr& place, int64_t depth) const {
    const int64_t row = StageRing::RowElements(operand);
    if (operand.rows_across) {
      return ir::Load(tiles, {stage, ir::FloorDiv(place, ir::IntConst(row)),
                              ir::IntConst(depth), ir::IntConst(0)});
    }
    return ir::Load(tiles, {stage, ir::IntConst(depth / row), place,
                            ir::IntConst(depth % row)});
  }

  Stmt Multiply() const {
    const Expr stage = ring_->Stage(iteration_);
    std::vector<Stmt> body = {
        ring_->WaitForTiles(iteration_),
        Effect(MachineOp::kProductFence, {Sums(0), SumsCount()})};
    const auto tile_bytes = [](const WarpgroupOperand& operand) {
      return operand.rows_across ? operand.rows * ir::kBoxRowBytes : 0;
    };
    for (int64_t depth = 0; depth < nest_.depth; depth += nest_.unit->depth) {
      for (int64_t i = 0; i < nest_.products; ++i) {
        ir::WarpgroupProduct product;
        product.sums = Sums(i * nest_.sums_step);
        product.a = Address(
            nest_.a, a_, stage,
            Expr(group_) * nest_.warpgroup_step + i * nest_.product_step,
            depth);
        product.b = Address(nest_.b, b_, stage, ir::IntConst(0), depth);
        product.columns = nest_.columns;
        product.a_tile_bytes = tile_bytes(nest_.a);
        product.b_tile_bytes = tile_bytes(nest_.b);
        product.row_step = nest_.row_step;
        product.column_step = nest_.column_step;
        product.pair_step = nest_.pair_step;
        body.push_back(Effect(ir::MakeWarpgroupProduct(product)));
      }
    }
    body.push_back(Effect(MachineOp::kProductCommit, {}));
    body.push_back(Effect(MachineOp::kProductWait,
                          {ir::IntConst(1), Sums(0), SumsCount()}));
    // Without a branch between products, whose registers are in use.
    const Expr first_lane = ir::EQ(
        ir::FloorMod(thread_, ir::IntConst(ir::kWarpLanes)), ir::IntConst(0));
    body.push_back(ring_->Release(
        ring_->Stage(iteration_ + (ring_->stages() - 1)),
        ir::And(first_lane, ir::LT(ir::IntConst(0), Expr(loop_.var)))));
    std::vector<Stmt> out = {RingLoop(loop_, ir::MakeSeq(std::move(body))),
                             Effect(MachineOp::kProductWait,
                                    {ir::IntConst(0), Sums(0), SumsCount()})};
    if (!outer_.empty()) {
      const Expr last = ir::Substitute(
          iteration_, {{loop_.var.get(), loop_.extent - ir::IntConst(1)}});
      out.push_back(ring_->Release(ring_->Stage(last), first_lane));
    }
    return Guarded(ir::MakeSeq(std::move(out)));
  }

  // The statement that stores the sums is the one after the loop.
  absl::StatusOr<Stmt> FindStores() const {
    const auto* seq =
        path_.empty() ? nullptr : ir::As<ir::SeqNode>(path_.back());
    if (seq == nullptr || seq->stmts.size() < 2 ||
        seq->stmts[seq->stmts.size() - 2].get() != &loop_) {
      return Refuse("box stores: not one statement follows the loop");
    }
    return seq->stmts.back();
  }

  absl::StatusOr<Stmt> Consumers(Buffer& tiles) const {
    Stmt body = body_;
    const auto stores = loop_.annotations.find(ir::kBoxStores);
    if (stores != loop_.annotations.end() && stores->second.AsInt() != 0) {
      TF_ASSIGN_OR_RETURN(const Stmt old, FindStores());
      TF_ASSIGN_OR_RETURN(const WarpgroupStores by_boxes,
                          StoreByBoxes(old, nest_, thread_, group_));
      tiles = by_boxes.tiles;
      body = ir::MakeSeq(
          {StmtReplacer(old.get(), by_boxes.body).Mutate(body), by_boxes.end});
    }
    return InitUnguarder(nest_.sums)
        .Mutate(StmtReplacer(&loop_, Multiply()).Mutate(body));
  }

  absl::StatusOr<Stmt> Assemble() const {
    Buffer tiles;
    TF_ASSIGN_OR_RETURN(Stmt consumers, Consumers(tiles));
    Stmt producer =
        ir::MakeIf(ir::EQ(thread_, ir::IntConst(threads_)), Fetch());
    Stmt roles = ir::MakeIf(ir::EQ(group_, ir::IntConst(nest_.warpgroups)),
                            std::move(producer), std::move(consumers));
    roles = std::make_shared<const ir::LetStmtNode>(
        group_,
        ir::MakeMachineOp(
            MachineOp::kUniform,
            {ir::FloorDiv(thread_, ir::IntConst(ir::kWarpgroup))}),
        std::move(roles));
    std::vector<Stmt> stmts{ring_->Init(ir::EQ(thread_, ir::IntConst(0)),
                                        threads_ / ir::kWarpLanes),
                            Effect(MachineOp::kBarrier, {}), std::move(roles)};
    if (!ir::IsNoOp(then_)) {
      // All have written; all have read.
      const Stmt waits = Effect(MachineOp::kClusterBarrier, {});
      stmts.insert(
          stmts.end(),
          {waits, ir::MakeIf(ir::LT(thread_, ir::IntConst(threads_)), then_),
           waits});
    }
    Stmt out = ir::MakeAlloc(
        a_, ir::MakeAlloc(b_, ir::MakeAlloc(ring_->barriers(),
                                            ir::MakeSeq(std::move(stmts)))));
    for (const Buffer& buffer : cluster_buffers_) {
      out = ir::MakeAlloc(buffer, std::move(out));
    }
    if (tiles != nullptr) out = ir::MakeAlloc(tiles, std::move(out));
    for (size_t i = axes_.size(); i-- > 0;) {
      const ForNode& axis = *axes_[i];
      Stmt loop = RingLoop(axis, std::move(out));
      if (axis.var == thread_) {
        loop = std::make_shared<const ForNode>(
            axis.var, axis.min, ir::IntConst(threads_ + ir::kWarpLanes),
            axis.for_kind, ir::As<ForNode>(loop)->body, axis.annotations,
            axis.thread_tag);
      }
      out = std::move(loop);
    }
    return out;
  }

  const ForNode& loop_;
  const std::vector<Stmt> path_;
  const std::vector<ir::ForPtr> axes_;
  Stmt body_;               // of one thread, with the loop
  Stmt then_ = ir::NoOp();  // of one thread, after that in the whole cluster
  std::vector<Buffer> cluster_buffers_;
  ir::Var thread_;
  int64_t threads_ = 0;
  std::optional<StageRing> ring_;
  WarpgroupNest nest_;
  std::vector<const ForNode*> outer_;
  Expr iteration_;
  Buffer a_, b_;
  ir::Var group_;
};

class WarpgroupMutator : public ir::Mutator {
 public:
  explicit WarpgroupMutator(const target::GpuLimits& limits)
      : limits_(limits) {}
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }
  absl::Status status;

 protected:
  // Loops of axes are outermost.
  Stmt MutateFor(const ForNode&, const Stmt& self) override {
    std::vector<ir::ForPtr> axes;
    Stmt body = self;
    while (const auto* loop = ir::As<ForNode>(body)) {
      if (loop->for_kind != ForKind::kThreadBinding) break;
      axes.push_back(std::static_pointer_cast<const ForNode>(body));
      body = loop->body;
    }
    LoopFinder finder;
    finder.Visit(body);
    const int chained =
        finder.loop == nullptr ? 0 : CountChainProducts(finder.loop->body);
    if (chained != CountChainProducts(body)) {
      if (status.ok()) {
        status = absl::InvalidArgumentError(absl::StrCat(
            ir::kWarpMatrix, " \"", ir::kByWarpgroups,
            "\": a product is in no loop with ", ir::kWarpgroupStages));
      }
      return self;
    }
    if (finder.loop == nullptr) return self;
    absl::StatusOr<Stmt> out =
        finder.count > 1 ? absl::InvalidArgumentError(
                               "warpgroup products: a kernel has several loops "
                               "with them, or "
                               "a loop of one iteration")
        : chained > 0 ? LowerWarpgroupChain(*finder.loop, finder.path, axes,
                                            body, limits_)
                      : KernelLowering(*finder.loop, finder.path, axes, body)
                            .Lower(limits_);
    if (!out.ok()) {
      if (status.ok()) status = out.status();
      return self;
    }
    return *std::move(out);
  }

 private:
  const target::GpuLimits& limits_;
};

}  // namespace

absl::StatusOr<Stmt> LowerWarpgroups(const Stmt& stmt,
                                     const target::GpuLimits& limits) {
  WarpgroupMutator mutator(limits);
  Stmt out = mutator.Mutate(stmt);
  if (!mutator.status.ok()) return mutator.status;
  return out;
}

}  // namespace tilefarm::lower
