#include <optional>

#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/postprocs.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

// For longer reductions, add_rfactor offers partial results in vectors.
constexpr int64_t kMaxReduceLanes = 64;

// Whether all loads that `var` indexes are contiguous along it.
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

// Vectorises a short reduction over contiguous elements, such as the sum of
// partial results.
absl::Status ReduceInLanes(schedule::Schedule& schedule,
                           schedule::BlockRv block) {
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, schedule.Get(block));
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
  if (loops.views.empty() || node->annotations.contains(kTilingStructure)) {
    return absl::OkStatus();
  }
  // Partial results moved below a loop of their reader leave loops of one
  // iteration inside the reduce loop.
  size_t at = loops.size() - 1;
  while (at > 0 && loops[at].extent == 1) --at;
  if (loops[at].extent < 4 || loops[at].extent > kMaxReduceLanes ||
      loops[at].kind != ir::ForKind::kSerial) {
    return absl::OkStatus();
  }
  for (const int i : loops[at].iters) {
    const ir::IterVar& iter = node->iters[static_cast<size_t>(i)];
    if (iter.type == ir::IterType::kReduce &&
        ir::As<ir::VarNode>(iter.binding) != nullptr &&
        ReadsAlong(*node, iter.var.get())) {
      return schedule.Annotate(loops.rvs[at], ir::kReduceLanes, ir::Attr(1));
    }
  }
  return absl::OkStatus();
}

}  // namespace

// Splits the initialisation off every reduction, so that the update needs no
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
    TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
    const std::optional<size_t> first =
        FindFirstReduceLoop(loops.views, IntrinsicLoops(*node));
    // An error leaves the schedule unchanged.
    if (first)
      schedule.DecomposeReduction(block, loops.rvs[*first]).IgnoreError();
    TF_RETURN_IF_ERROR(ReduceInLanes(schedule, block));
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::space
