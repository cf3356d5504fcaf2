#include <algorithm>
#include <optional>

#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/postprocs.h"

namespace tilefarm::space {

using schedule::BlockRv;
using schedule::LoopRv;
using schedule::Schedule;

// Splits the initialisation off every reduction of a thread. A reduction that
// threads share keeps it: each thread begins its part with the identity.
absl::Status RewriteThreadReductions(Schedule& schedule,
                                     const std::string& function) {
  for (const ir::BlockPtr& node :
       AllBlocks(*schedule.module().Find(function))) {
    if (!IsReduction(*node)) continue;
    const auto block = schedule.GetBlock(node->name, function);
    if (!block.ok()) continue;  // several blocks have this name
    TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, *block));
    const bool shared =
        std::ranges::any_of(loops.views, [](const LoopView& loop) {
          return loop.sums && loop.kind == ir::ForKind::kThreadBinding;
        });
    if (shared) continue;
    const std::optional<size_t> first =
        FindFirstReduceLoop(loops.views, /*own=*/0);
    // An error leaves the schedule unchanged.
    if (first) {
      schedule.DecomposeReduction(*block, loops.rvs[*first]).IgnoreError();
    }
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::space
