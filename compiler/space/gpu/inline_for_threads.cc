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
Alternatives InlineForThreads(const RuleContext& context,
                              schedule::Schedule schedule,
                              const std::string& name) {
  schedule::Schedule attempt = schedule;
  TF_ASSIGN_OR_RETURN(const schedule::BlockRv block,
                      attempt.GetBlock(name, context.function));
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, attempt.Get(block));
  if (!IsElementwise(*node) || node->writes.size() != 1 ||
      !HasTrivialBindings(*node) ||
      IsOutput(*attempt.module().Find(context.function),
               node->writes[0].buffer.get())) {
    return std::vector{std::move(schedule)};
  }
  TF_ASSIGN_OR_RETURN(const std::vector<schedule::BlockRv> consumers,
                      attempt.GetConsumers(block));
  for (const schedule::BlockRv consumer : consumers) {
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr reader, attempt.Get(consumer));
    if (HasDataReuse(*reader) || IsTiled(*reader)) {
      return std::vector{std::move(schedule)};
    }
  }
  if (!attempt.ComputeInline(block).ok()) {
    return std::vector{std::move(schedule)};
  }
  return std::vector{std::move(attempt)};
}

}  // namespace tilefarm::space
