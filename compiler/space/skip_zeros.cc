#include "base/status_macros.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {

// Sums whose terms are zero by a remainder, as transposed convolutions are
// written, become dense ones over the terms that count (skip_zeros).
Alternatives SkipZeros(const RuleContext& context, schedule::Schedule schedule,
                       const std::string& name) {
  schedule::Schedule attempt = schedule;
  TF_ASSIGN_OR_RETURN(schedule::BlockRv block,
                      attempt.GetBlock(name, context.function));
  if (attempt.SkipZeros(block).ok()) schedule = std::move(attempt);
  return std::vector{std::move(schedule)};
}

}  // namespace tilefarm::space
