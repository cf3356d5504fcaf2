#include <optional>
#include <set>

#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/postprocs.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

using ir::As;
using schedule::BlockRv;
using schedule::LoopRv;
using schedule::Schedule;

// Fuses enough outer loops for `jobs` iterations and runs them in parallel;
// uses fewer loops if that is illegal.
absl::Status ParallelizeOuter(Schedule& schedule, BlockRv block, int64_t jobs) {
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
  size_t count = CountParallelLoops(loops.views, jobs);
  for (; count > 1; --count) {
    Schedule attempt = schedule;
    auto fused = attempt.Fuse({loops.rvs.begin(), loops.rvs.begin() + count});
    if (!fused.ok() || !attempt.Parallel(*fused).ok()) continue;
    schedule = std::move(attempt);
    return absl::OkStatus();
  }
  // A single step needs no copy: an error leaves the schedule unchanged.
  if (count == 1) schedule.Parallel(loops.rvs[0]).IgnoreError();
  return absl::OkStatus();
}

// The variable that walks the last dimension of the block's output with unit
// stride, and the width of its panels.
struct UnitStride {
  int iter = -1;
  int64_t panel_width = 0;
};
UnitStride FindUnitStride(const ir::BlockNode& block) {
  UnitStride result;
  const auto* store = As<ir::StoreNode>(block.body);
  if (store == nullptr || store->indices.empty()) return result;
  const ir::Expr& last = ir::LastIndex(store->indices);
  const ir::ExprNode* var = last.get();
  // In panels (rewrite_packing), the variable that walks one panel.
  if (const auto* rest = As<ir::BinaryNode>(last);
      rest != nullptr && rest->op == ir::BinaryOp::kFloorMod) {
    var = rest->a.get();
    result.panel_width = ir::AsInt(rest->b).value_or(0);
  }
  for (size_t i = 0; i < block.iters.size(); ++i) {
    if (block.iters[i].var.get() == var) result.iter = static_cast<int>(i);
  }
  return result;
}

// Vectorises the unit-stride loop of a block, after moving it innermost and
// splitting it to a vector length if needed.
absl::Status VectorizeInner(Schedule& schedule, BlockRv block,
                            int64_t vector_lanes) {
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, schedule.Get(block));
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
  const UnitStride unit = FindUnitStride(*node);
  if (unit.iter < 0) return absl::OkStatus();
  const std::optional<VectorLoop> vector =
      ChooseVectorLoop(loops.views, unit.iter, unit.panel_width, vector_lanes);
  if (!vector) return absl::OkStatus();
  const bool innermost = vector->loop + 1 == loops.size();
  if (innermost && vector->length == 0) {
    // A single step needs no copy: an error leaves the schedule unchanged.
    schedule.Vectorize(loops.rvs.back()).IgnoreError();
    return absl::OkStatus();
  }
  Schedule attempt = schedule;
  LoopRv loop = loops.rvs[vector->loop];
  if (vector->length > 0) {
    auto parts = attempt.Split(loop, {std::nullopt, vector->length});
    if (!parts.ok()) return absl::OkStatus();
    loop = (*parts)[1];
  }
  if (!innermost) {
    std::vector<LoopRv> order(
        loops.rvs.begin() + static_cast<ptrdiff_t>(vector->loop) + 1,
        loops.rvs.end());
    order.push_back(loop);
    if (!attempt.Reorder(order).ok()) return absl::OkStatus();
  }
  if (attempt.Vectorize(loop).ok()) schedule = std::move(attempt);
  return absl::OkStatus();
}

// Unrolls the serial loops of the register tile, which are inside the innermost
// reduce loop.
absl::Status UnrollRegisterTile(Schedule& schedule, BlockRv block,
                                int64_t vector_lanes) {
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
  const std::optional<size_t> first =
      FindRegisterTile(loops.views, vector_lanes);
  for (size_t i = first.value_or(loops.size()); i < loops.size(); ++i) {
    if (loops[i].kind == ir::ForKind::kSerial && loops[i].extent > 1) {
      TF_RETURN_IF_ERROR(schedule.Unroll(loops.rvs[i]));
    }
  }
  return absl::OkStatus();
}

bool IsTransposed(const ir::BlockNode& block) {
  const auto found = block.annotations.find(kTilingStructure);
  return found != block.annotations.end() &&
         found->second == ir::Attr(kTransposedTiles);
}

std::optional<int64_t> TakeAnnotation(Schedule& schedule, BlockRv root,
                                      const char* key) {
  auto node = schedule.Get(root);
  if (!node.ok()) return std::nullopt;
  const auto found = (*node)->annotations.find(key);
  if (found == (*node)->annotations.end()) return std::nullopt;
  const std::optional<int64_t> value = found->second.AsInt();
  if (!schedule.Unannotate(root, key).ok()) return std::nullopt;
  return value;
}

}  // namespace

absl::StatusOr<BlockLoops> ViewLoops(Schedule& schedule, BlockRv block) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  BlockLoops loops;
  TF_ASSIGN_OR_RETURN(loops.rvs, schedule.GetLoops(block));
  for (const LoopRv& rv : loops.rvs) {
    TF_ASSIGN_OR_RETURN(const ir::ForPtr loop, schedule.Get(rv));
    LoopView& view = loops.views.emplace_back();
    view.extent = ir::AsInt(loop->extent).value_or(0);
    view.kind = loop->for_kind;
    for (size_t i = 0; i < node->iters.size(); ++i) {
      const ir::IterVar& iter = node->iters[i];
      if (!ir::UsesVar(iter.binding, loop->var.get())) continue;
      view.iters.push_back(static_cast<int>(i));
      view.reduces |= iter.type != ir::IterType::kSpatial;
      view.sums |= iter.type == ir::IterType::kReduce;
    }
  }
  return loops;
}

absl::StatusOr<std::vector<LoopView>> LoopsAround(Schedule schedule,
                                                  const std::string& function,
                                                  const ir::BlockNode& block) {
  TF_ASSIGN_OR_RETURN(const BlockRv rv,
                      schedule.GetBlock(block.name, function));
  TF_ASSIGN_OR_RETURN(BlockLoops loops, ViewLoops(schedule, rv));
  return std::move(loops.views);
}

// Applies the root's annotations: runs outer loops in parallel, vectorises
// inner loops, unrolls register tiles, and sets the unroll limit for lowering
// on each nest.
absl::Status RewriteParallelVectorizeUnroll(schedule::Schedule& schedule,
                                            const std::string& function,
                                            const target::Target& target) {
  TF_ASSIGN_OR_RETURN(BlockRv root, schedule.GetBlock("root", function));
  const std::optional<int64_t> jobs = TakeAnnotation(schedule, root, kParallel);
  const std::optional<int64_t> vector =
      TakeAnnotation(schedule, root, kVectorize);
  const std::optional<int64_t> unroll =
      TakeAnnotation(schedule, root, kUnrollExplicit);

  std::set<const ir::VarNode*> annotated;
  for (const ir::BlockPtr& node :
       AllBlocks(*schedule.module().Find(function))) {
    // A library call replaces its loops.
    if (node->annotations.contains(ir::kLibrary)) continue;
    TF_ASSIGN_OR_RETURN(BlockRv block, schedule.GetBlock(node->name, function));
    const bool tiled = node->annotations.contains(kTilingStructure);
    if (vector && !IsTransposed(*node)) {
      TF_RETURN_IF_ERROR(
          VectorizeInner(schedule, block, target.vector_lanes(4)));
    }
    // After vectorising: short nests keep their innermost loop for that.
    if (jobs && target.cores > 1) {
      TF_RETURN_IF_ERROR(ParallelizeOuter(schedule, block, *jobs));
    }
    if (tiled) {
      TF_RETURN_IF_ERROR(
          UnrollRegisterTile(schedule, block, target.vector_lanes(4)));
    }
    // Ahead-of-time work need not be fast, but must compile quickly.
    const bool ahead = node->annotations.contains(ir::kPrepack);
    if (unroll.value_or(0) > 0 && !ahead) {
      TF_ASSIGN_OR_RETURN(std::vector<LoopRv> loops, schedule.GetLoops(block));
      if (loops.empty()) continue;
      TF_ASSIGN_OR_RETURN(ir::ForPtr outer, schedule.Get(loops[0]));
      if (!annotated.insert(outer->var.get()).second ||
          outer->annotations.contains(ir::kUnrollMaxStep)) {
        continue;
      }
      TF_RETURN_IF_ERROR(
          schedule.Annotate(loops[0], ir::kUnrollMaxStep, ir::Attr(*unroll)));
      TF_RETURN_IF_ERROR(
          schedule.Annotate(loops[0], ir::kUnrollExplicit, ir::Attr(1)));
    }
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::space
