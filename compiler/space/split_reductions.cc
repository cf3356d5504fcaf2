#include "base/status_macros.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {

// A reduction to several buffers, such as the sum and the sum of squares of a
// norm, becomes one for each (fission): the other rules are about one result.
Alternatives SplitReductions(const RuleContext& context,
                             schedule::Schedule schedule,
                             const std::string& name) {
  schedule::Schedule attempt = schedule;
  TF_ASSIGN_OR_RETURN(schedule::BlockRv block,
                      attempt.GetBlock(name, context.function));
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, attempt.Get(block));
  if (IsReduction(*node) && attempt.Fission(block).ok()) {
    schedule = std::move(attempt);
  }
  return std::vector{std::move(schedule)};
}

}  // namespace tilefarm::space
