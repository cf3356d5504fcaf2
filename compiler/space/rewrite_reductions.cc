#include <algorithm>
#include <optional>

#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/postprocs.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

// Longer reductions have partial results (add_rfactor) where lanes pay.
constexpr int64_t kMaxReduceLanes = 64;

// Whether everything the block reads by `var` is side by side.
bool ReadsAlong(const ir::BlockNode& block, const ir::VarNode* var) {
  bool along = false;
  bool other = false;
  ir::PostOrderExprs(block.body, [&](const ir::Expr& expr) {
    const auto* load = ir::As<ir::LoadNode>(expr);
    if (load == nullptr) return;
    for (size_t i = 0; i < load->indices.size(); ++i) {
      if (!ir::UsesVar(load->indices[i], var)) continue;
      (i + 1 == load->indices.size() && load->indices[i].get() == var ? along
                                                                      : other) =
          true;
    }
  });
  return along && !other;
}

// A short reduction over neighbours, such as the sum of partial results, is
// one of vectors.
absl::Status ReduceInLanes(schedule::Schedule& schedule,
                           schedule::BlockRv block) {
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, schedule.Get(block));
  TF_ASSIGN_OR_RETURN(std::vector<schedule::LoopRv> loops,
                      schedule.GetLoops(block));
  if (loops.empty() || node->annotations.contains(kTilingStructure)) {
    return absl::OkStatus();
  }
  // Partial results that moved below a loop of their reader leave loops of one
  // iteration inside the one that counts.
  TF_ASSIGN_OR_RETURN(ir::ForPtr inner, schedule.Get(loops.back()));
  while (loops.size() > 1 && ir::IsConstInt(inner->extent, 1)) {
    loops.pop_back();
    TF_ASSIGN_OR_RETURN(inner, schedule.Get(loops.back()));
  }
  const int64_t extent = ir::AsInt(inner->extent).value_or(0);
  if (extent < 4 || extent > kMaxReduceLanes ||
      inner->for_kind != ir::ForKind::kSerial) {
    return absl::OkStatus();
  }
  for (const ir::IterVar& iter : node->iters) {
    if (iter.type == ir::IterType::kReduce && iter.binding == inner->var &&
        ReadsAlong(*node, iter.var.get())) {
      return schedule.Annotate(loops.back(), ir::kReduceLanes, ir::Attr(1));
    }
  }
  return absl::OkStatus();
}

// Where the initialisation goes: in front of the outermost reduce loop of more
// than one iteration. A loop of one leaves it next to the inner reduction,
// where it becomes the accumulators' first value. An intrinsic does not
// initialise: outside of its loops the innermost one of one iteration will do.
absl::StatusOr<std::optional<schedule::LoopRv>> FirstReduceLoop(
    const schedule::Schedule& schedule, const ir::BlockNode& block,
    const std::vector<schedule::LoopRv>& loops) {
  const size_t own = IntrinsicLoops(block);
  std::optional<schedule::LoopRv> unit;
  for (size_t i = 0; i + own < loops.size(); ++i) {
    TF_ASSIGN_OR_RETURN(ir::ForPtr node, schedule.Get(loops[i]));
    const bool reduces = std::any_of(
        block.iters.begin(), block.iters.end(), [&](const ir::IterVar& iter) {
          return iter.type == ir::IterType::kReduce &&
                 ir::UsesVar(iter.binding, node->var.get());
        });
    if (!reduces) continue;
    if (!ir::IsConstInt(node->extent, 1)) return loops[i];
    if (own > 0) unit = loops[i];
  }
  return unit;
}

}  // namespace

// Gives every reduction its own initialisation, so that the update needs no
// test.
absl::Status RewriteReductions(schedule::Schedule& schedule,
                               const std::string& function) {
  for (const ir::BlockPtr& node :
       AllBlocks(*schedule.module().Find(function))) {
    if (!IsReduction(*node) || node->annotations.contains(ir::kLibrary)) {
      continue;
    }
    TF_ASSIGN_OR_RETURN(schedule::BlockRv block,
                        schedule.GetBlock(node->name, function));
    TF_ASSIGN_OR_RETURN(std::vector<schedule::LoopRv> loops,
                        schedule.GetLoops(block));
    TF_ASSIGN_OR_RETURN(const std::optional<schedule::LoopRv> first,
                        FirstReduceLoop(schedule, *node, loops));
    // Where it is refused nothing changes.
    if (first) schedule.DecomposeReduction(block, *first).IgnoreError();
    TF_RETURN_IF_ERROR(ReduceInLanes(schedule, block));
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::space
