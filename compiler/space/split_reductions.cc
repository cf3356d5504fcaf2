#include "base/status_macros.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {

// A reduction to several buffers, such as the sum and the sum of squares of a
// norm, becomes one for each (fission): the other rules are about one result.
Alternatives SplitReductions(const RuleContext&, RuleSite site) {
  if (!IsReduction(*site.node) || !site.schedule.Fission(site.block).ok()) {
    return DoesNotApply();
  }
  return std::vector{std::move(site.schedule)};
}

}  // namespace tilefarm::space
