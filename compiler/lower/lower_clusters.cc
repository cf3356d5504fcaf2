// Buffers that lie in the shared memory of a cluster's blocks: each block
// allocates its own part, and says whose part it loads from.
//
//   alloc C: float32[4 * 256], "shared.cluster"
//   C[cluster * 256 + i] = ...           ->  C[i] = ...
//   ... = C[k * 256 + i]                 ->  ... = cluster_load(C[i], k)
//
// Barriers already order the accesses (insert_barriers.cc).
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/thread_axis.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/gpu_passes.h"
#include "compiler/lower/index_math.h"

namespace tilefarm::lower {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::Stmt;

class ClusterLowerer : public ir::Mutator {
 public:
  using Mutator::Mutate;
  absl::Status status;

 protected:
  Stmt MutateFor(const ir::ForNode& s, const Stmt& self) override {
    const size_t mark = math_.Mark();
    BindLoop(math_, s);
    if (s.for_kind == ir::ForKind::kThreadBinding &&
        s.thread_tag == ir::ThreadTag(ir::ThreadAxis::kCluster)) {
      cluster_ = s.var;
      blocks_ = *ir::AsInt(s.extent);
    }
    Stmt out = Mutator::MutateFor(s, self);
    math_.Restore(mark);
    return out;
  }

  Stmt MutateIf(const ir::IfNode& s, const Stmt&) override {
    const Expr condition = Mutate(s.condition);
    const size_t mark = math_.Mark();
    math_.Assume(s.condition);
    Stmt then_case = Mutate(s.then_case), else_case;
    math_.Restore(mark);
    if (s.else_case != nullptr) {
      math_.AssumeNot(s.condition);
      else_case = Mutate(s.else_case);
      math_.Restore(mark);
    }
    return ir::MakeIf(condition, std::move(then_case), std::move(else_case));
  }

  Stmt MutateAlloc(const ir::AllocNode& s, const Stmt& self) override {
    if (ir::ScopeOf(*s.buffer) != ir::MemoryScope::kCluster) {
      return Mutator::MutateAlloc(s, self);
    }
    ir::BufferNode part(*s.buffer);
    part.scope = "shared";
    part.shape = {s.buffer->num_elements() / blocks_};
    const Buffer own = std::make_shared<const ir::BufferNode>(std::move(part));
    parts_[s.buffer.get()] = own;
    return ir::MakeAlloc(own, Mutate(s.body));
  }

  Expr MutateLoad(const ir::LoadNode& e, const Expr& self) override {
    const auto part = parts_.find(e.buffer.get());
    if (part == parts_.end()) return Mutator::MutateLoad(e, self);
    const Place place = PlaceOf(e.indices[0], *part->second);
    Expr load = std::make_shared<const ir::LoadNode>(
        part->second, std::vector<Expr>{place.index}, e.dtype, e.predicate);
    if (IsOwn(place.rank)) return load;
    return ir::MakeMachineOp(ir::MachineOp::kClusterLoad,
                             {std::move(load), place.rank});
  }

  Stmt MutateStore(const ir::StoreNode& s, const Stmt& self) override {
    const auto part = parts_.find(s.buffer.get());
    if (part == parts_.end()) return Mutator::MutateStore(s, self);
    // Into the block's own part, as MapThreads has checked.
    Expr index = s.indices[0];
    if (blocks_ > 1) {
      const auto* ramp = ir::As<ir::RampNode>(index);
      const Expr before = Expr(cluster_) * ir::IntConst(part->second->shape[0]);
      const Expr first =
          math_.Simplify((ramp == nullptr ? index : ramp->base) - before);
      index = ramp == nullptr
                  ? first
                  : ir::MakeRamp(first, ramp->stride, index->dtype.lanes);
    }
    return std::make_shared<const ir::StoreNode>(
        part->second, std::vector<Expr>{std::move(index)}, Mutate(s.value),
        s.predicate);
  }

 private:
  struct Place {
    Expr rank, index;  // the block, and where in its part
  };

  // Of a flat index, whose lanes are all of one block.
  Place PlaceOf(const Expr& index, const ir::BufferNode& part) {
    const Expr size = ir::IntConst(part.shape[0]);
    const auto* ramp = ir::As<ir::RampNode>(index);
    const Expr first = ramp == nullptr ? index : ramp->base;
    const Expr rank = math_.Simplify(ir::FloorDiv(first, size));
    const Expr rest = math_.Simplify(first - rank * size);
    if (ramp == nullptr) {
      if (index->dtype.is_vector()) OtherBlocks(part);
      return {rank, rest};
    }
    const Expr last =
        first + ramp->stride * ir::IntConst(index->dtype.lanes - 1);
    if (!math_.CanProve(
            ir::EQ(math_.Simplify(ir::FloorDiv(last, size)), rank))) {
      OtherBlocks(part);
    }
    return {rank, ir::MakeRamp(rest, ramp->stride, index->dtype.lanes)};
  }

  bool IsOwn(const Expr& rank) const {
    return cluster_ == nullptr || blocks_ == 1 || rank == Expr(cluster_);
  }

  void OtherBlocks(const ir::BufferNode& part) {
    Fail(absl::StrCat("lanes of one access to ", part.name,
                      " may be of different blocks of the cluster; vectorize "
                      "fewer, or elements that lie side by side"));
  }

  void Fail(const std::string& what) {
    if (status.ok()) status = absl::InvalidArgumentError(what);
  }

  IndexMath math_;
  ir::Var cluster_;
  int64_t blocks_ = 1;
  std::map<const ir::BufferNode*, Buffer> parts_;
};

}  // namespace

absl::StatusOr<Stmt> LowerClusters(const Stmt& stmt) {
  ClusterLowerer lowerer;
  Stmt out = lowerer.Mutate(stmt);
  if (!lowerer.status.ok()) return lowerer.status;
  return out;
}

}  // namespace tilefarm::lower
