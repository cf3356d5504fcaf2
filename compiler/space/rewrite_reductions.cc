#include "base/status_macros.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/postprocs.h"

namespace tilefarm::space {

// Gives every reduction its own initialisation, in front of its outermost
// reduce loop, so that the update needs no test.
absl::Status RewriteReductions(schedule::Schedule& schedule,
                               const std::string& function) {
  for (const ir::BlockPtr& node :
       AllBlocks(*schedule.module().Find(function))) {
    if (!IsReduction(*node)) continue;
    TF_ASSIGN_OR_RETURN(schedule::BlockRv block,
                        schedule.GetBlock(node->name, function));
    TF_ASSIGN_OR_RETURN(std::vector<schedule::LoopRv> loops,
                        schedule.GetLoops(block));
    for (const schedule::LoopRv& loop : loops) {
      TF_ASSIGN_OR_RETURN(ir::ForPtr for_node, schedule.Get(loop));
      bool reduces = false;
      for (const ir::IterVar& iter : node->iters) {
        reduces |= iter.type == ir::IterType::kReduce &&
                   ir::UsesVar(iter.binding, for_node->var.get());
      }
      if (!reduces) continue;
      schedule::Schedule attempt = schedule;
      if (attempt.DecomposeReduction(block, loop).ok()) {
        schedule = std::move(attempt);
      }
      break;
    }
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::space
