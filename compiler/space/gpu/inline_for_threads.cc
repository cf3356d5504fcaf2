#include <algorithm>

#include "base/status_macros.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/gpu_rules.h"

namespace tilefarm::space {

// Inlines an elementwise block whose result is intermediate into its consumers,
// also where they compute it several times: on a GPU, that costs less than
// another kernel that writes and reads memory. A product reads its operands
// many times, so it does not take over their computation; its fetches do
// (tile_for_threads).
Alternatives InlineForThreads(const RuleContext& context, RuleSite site) {
  auto& [unchanged, schedule, block, node] = site;
  if (!IsElementwise(*node) || node->writes.size() != 1 ||
      !HasTrivialBindings(*node) ||
      IsOutput(*schedule.module().Find(context.function),
               node->writes[0].buffer.get())) {
    return DoesNotApply();
  }
  TF_ASSIGN_OR_RETURN(const std::vector<schedule::BlockRv> consumers,
                      schedule.GetConsumers(block));
  for (const schedule::BlockRv consumer : consumers) {
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr reader, schedule.Get(consumer));
    if (HasDataReuse(*reader) || IsTiled(*reader)) return DoesNotApply();
  }
  if (!schedule.ComputeInline(block).ok()) return DoesNotApply();
  return std::vector{std::move(schedule)};
}

}  // namespace tilefarm::space
