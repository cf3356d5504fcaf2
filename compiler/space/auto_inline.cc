#include "base/status_macros.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {

// Inlines an elementwise block whose result is intermediate and cheap into its
// consumers, or, where that is not legal, into its producer. Blocks with
// if_then_else (padding) stay: their conditions would be evaluated in the
// innermost loops of every consumer.
Alternatives AutoInline(const RuleContext& context, schedule::Schedule schedule,
                        const std::string& name) {
  schedule::Schedule attempt = schedule;
  TF_ASSIGN_OR_RETURN(schedule::BlockRv block,
                      attempt.GetBlock(name, context.function));
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, attempt.Get(block));
  if (!IsElementwise(*node) || node->writes.size() != 1 ||
      UsesIfThenElse(*node) || UsesCostlyIntrinsic(*node) ||
      !HasTrivialBindings(*node)) {
    return std::vector{std::move(schedule)};
  }
  const ir::PrimFuncPtr function = schedule.module().Find(context.function);
  if (!IsOutput(*function, node->writes[0].buffer.get())) {
    if (attempt.ComputeInline(block).ok()) return std::vector{attempt};
  }
  return std::vector{std::move(schedule)};
}

}  // namespace tilefarm::space
