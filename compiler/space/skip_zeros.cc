#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {

// Sums whose terms are zero by a remainder, as transposed convolutions are
// written, become dense ones over the terms that count (skip_zeros).
Alternatives SkipZeros(const RuleContext&, RuleSite site) {
  if (!site.schedule.SkipZeros(site.block).ok()) return DoesNotApply();
  return std::vector{std::move(site.schedule)};
}

}  // namespace tilefarm::space
