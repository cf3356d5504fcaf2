#include <algorithm>
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

struct LoopInfo {
  LoopRv rv;
  ir::ForPtr node;
  int64_t extent;
  bool reduces;  // bound to a reduce variable of the block
};

absl::StatusOr<std::vector<LoopInfo>> LoopsOf(Schedule& schedule,
                                              BlockRv block) {
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, schedule.Get(block));
  TF_ASSIGN_OR_RETURN(std::vector<LoopRv> loops, schedule.GetLoops(block));
  std::vector<LoopInfo> infos;
  for (const LoopRv& loop : loops) {
    TF_ASSIGN_OR_RETURN(ir::ForPtr for_node, schedule.Get(loop));
    bool reduces = false;
    for (const ir::IterVar& iter : node->iters) {
      reduces |= iter.type != ir::IterType::kSpatial &&
                 ir::UsesVar(iter.binding, for_node->var.get());
    }
    infos.push_back(
        {loop, for_node, ir::AsInt(for_node->extent).value_or(0), reduces});
  }
  return infos;
}

bool IsSerial(const LoopInfo& loop) {
  return loop.node->for_kind == ir::ForKind::kSerial;
}

// Fuses as many outer loops as it takes to have `jobs` iterations, and runs
// them in parallel; fewer where that is not legal.
absl::Status ParallelizeOuter(Schedule& schedule, BlockRv block, int64_t jobs) {
  TF_ASSIGN_OR_RETURN(std::vector<LoopInfo> loops, LoopsOf(schedule, block));
  size_t count = 0;
  int64_t product = 1;
  while (count < loops.size() && product < jobs && !loops[count].reduces &&
         IsSerial(loops[count])) {
    product *= loops[count++].extent;
  }
  for (; count > 1; --count) {
    Schedule attempt = schedule;
    std::vector<LoopRv> outer;
    for (size_t i = 0; i < count; ++i) outer.push_back(loops[i].rv);
    auto fused = attempt.Fuse(outer);
    if (!fused.ok() || !attempt.Parallel(*fused).ok()) continue;
    schedule = std::move(attempt);
    return absl::OkStatus();
  }
  // One step needs no copy: where it is refused nothing changes.
  if (count == 1) schedule.Parallel(loops[0].rv).IgnoreError();
  return absl::OkStatus();
}

// The loop that walks the last dimension of what the block writes, with step
// one: the one to vectorise.
std::optional<size_t> UnitStrideLoop(const ir::BlockNode& block,
                                     const std::vector<LoopInfo>& loops) {
  const auto* store = As<ir::StoreNode>(block.body);
  if (store == nullptr || store->indices.empty()) return std::nullopt;
  const auto* var = As<ir::VarNode>(ir::LastIndex(store->indices));
  // In panels of `width` (rewrite_packing) the loop that walks one.
  int64_t width = 0;
  if (const auto* rest = As<ir::BinaryNode>(ir::LastIndex(store->indices));
      rest != nullptr && rest->op == ir::BinaryOp::kFloorMod) {
    var = As<ir::VarNode>(rest->a);
    width = ir::AsInt(rest->b).value_or(0);
  }
  if (var == nullptr) return std::nullopt;
  for (const ir::IterVar& iter : block.iters) {
    if (iter.var.get() != var) continue;
    // The innermost loop of its binding moves it by one.
    for (size_t i = loops.size(); i-- > 0;) {
      if (loops[i].extent > 1 &&
          ir::UsesVar(iter.binding, loops[i].node->var.get())) {
        const bool leaves_panel = width > 0 && width % loops[i].extent != 0;
        return loops[i].reduces || leaves_panel ? std::nullopt
                                                : std::optional<size_t>(i);
      }
    }
  }
  return std::nullopt;
}

// Vectorises the unit-stride loop of a block: moved innermost where it is not,
// cut to a vector length where it is longer.
absl::Status VectorizeInner(Schedule& schedule, BlockRv block,
                            int64_t vector_lanes) {
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, schedule.Get(block));
  TF_ASSIGN_OR_RETURN(std::vector<LoopInfo> loops, LoopsOf(schedule, block));
  const std::optional<size_t> at = UnitStrideLoop(*node, loops);
  if (!at || !IsSerial(loops[*at])) return absl::OkStatus();
  if (*at + 1 == loops.size() && loops[*at].extent <= kMaxVectorExtent) {
    // One step needs no copy: where it is refused nothing changes.
    schedule.Vectorize(loops[*at].rv).IgnoreError();
    return absl::OkStatus();
  }
  for (size_t i = *at + 1; i < loops.size(); ++i) {
    if (!IsSerial(loops[i])) return absl::OkStatus();
  }
  Schedule attempt = schedule;
  LoopRv loop = loops[*at].rv;
  if (loops[*at].extent > kMaxVectorExtent) {
    const int64_t length =
        loops[*at].extent >= 4 * vector_lanes ? 4 * vector_lanes : vector_lanes;
    auto parts = attempt.Split(loop, {std::nullopt, length});
    if (!parts.ok()) return absl::OkStatus();
    loop = (*parts)[1];
  }
  if (*at + 1 != loops.size()) {
    std::vector<LoopRv> order;
    for (size_t i = *at + 1; i < loops.size(); ++i) {
      order.push_back(loops[i].rv);
    }
    order.push_back(loop);
    if (!attempt.Reorder(order).ok()) return absl::OkStatus();
  }
  if (attempt.Vectorize(loop).ok()) schedule = std::move(attempt);
  return absl::OkStatus();
}

// Unrolls the serial loops of the register tile: those inside the innermost
// reduce loop.
absl::Status UnrollRegisterTile(Schedule& schedule, BlockRv block,
                                int64_t vector_lanes) {
  TF_ASSIGN_OR_RETURN(std::vector<LoopInfo> loops, LoopsOf(schedule, block));
  size_t first = 0;
  for (size_t i = 0; i < loops.size(); ++i) {
    if (loops[i].reduces) first = i + 1;
  }
  int64_t statements = 1;
  for (size_t i = first; i < loops.size(); ++i) {
    const bool vector = loops[i].node->for_kind == ir::ForKind::kVectorized;
    statements *= vector ? (loops[i].extent + vector_lanes - 1) / vector_lanes
                         : loops[i].extent;
  }
  if (statements > kMaxTileStatements) return absl::OkStatus();
  for (size_t i = first; i < loops.size(); ++i) {
    if (IsSerial(loops[i]) && loops[i].extent > 1) {
      TF_RETURN_IF_ERROR(schedule.Unroll(loops[i].rv));
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

// Does what the root's annotations ask for: outer loops run in parallel, inner
// ones in vectors, register tiles unroll, and each nest carries the unroll
// limit for lowering.
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
    // Its loops are the library's.
    if (node->annotations.contains(ir::kLibrary)) continue;
    TF_ASSIGN_OR_RETURN(BlockRv block, schedule.GetBlock(node->name, function));
    const bool tiled = node->annotations.contains(kTilingStructure);
    if (vector && !IsTransposed(*node)) {
      TF_RETURN_IF_ERROR(
          VectorizeInner(schedule, block, target.vector_lanes(4)));
    }
    // After vectors, so that a short nest keeps its innermost loop for them.
    if (jobs && target.cores > 1) {
      TF_RETURN_IF_ERROR(ParallelizeOuter(schedule, block, *jobs));
    }
    if (tiled) {
      TF_RETURN_IF_ERROR(
          UnrollRegisterTile(schedule, block, target.vector_lanes(4)));
    }
    // What runs ahead of time need not be fast, but compiled.
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
