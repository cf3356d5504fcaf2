#include <vector>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/gpu_rules.h"

namespace tilefarm::space {
namespace {

// Whether the block is a copy by the copy engine, which computes nothing.
absl::StatusOr<bool> IsCopiedByEngine(schedule::Schedule& schedule,
                                      schedule::BlockRv block) {
  TF_ASSIGN_OR_RETURN(const std::vector<schedule::LoopRv> loops,
                      schedule.GetLoops(block));
  for (const schedule::LoopRv loop : loops) {
    TF_ASSIGN_OR_RETURN(const ir::ForPtr node, schedule.Get(loop));
    if (node->annotations.contains(ir::kWarpgroupStages)) return true;
  }
  return false;
}

}  // namespace

// Inlines an elementwise block whose result is intermediate into its consumers,
// also where they compute it several times: on a GPU, that costs less than
// another kernel that writes and reads memory. A product reads its operands
// many times, so it does not take over their computation; its fetches do
// (tile_for_threads).
Alternatives InlineForThreads(const RuleContext& context, RuleSite site) {
  auto& [unchanged, schedule, block, node] = site;
  if (!IsElementwise(*node) || node->writes.size() != 1 ||
      !HasTrivialBindings(*node) || !ReadsGlobalMemory(*node) ||
      node->annotations.contains(kLaidOut) ||
      IsOutput(*schedule.module().Find(context.function),
               node->writes[0].buffer.get())) {
    return DoesNotApply();
  }
  TF_ASSIGN_OR_RETURN(const std::vector<schedule::BlockRv> consumers,
                      schedule.GetConsumers(block));
  for (const schedule::BlockRv consumer : consumers) {
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr reader, schedule.Get(consumer));
    if (HasDataReuse(*reader) || IsTiled(*reader)) return DoesNotApply();
    TF_ASSIGN_OR_RETURN(const bool engine,
                        IsCopiedByEngine(schedule, consumer));
    if (engine) return DoesNotApply();
  }
  if (!schedule.ComputeInline(block).ok()) return DoesNotApply();
  return std::vector{std::move(schedule)};
}

}  // namespace tilefarm::space
