#include <algorithm>

#include "base/status_macros.h"
#include "compiler/ir/function_attrs.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {

// Annotates the root for the postproc of the same name: the maximum number of
// parallel jobs per core, the unroll limit beyond the register tile, and, if
// outputs are too large for the caches, whether to use streaming stores.
Alternatives ParallelVectorizeUnroll(const RuleContext& context,
                                     RuleSite site) {
  auto& [unchanged, schedule, root, node] = site;
  if (context.target.cores > 1) {
    const int64_t cores = context.target.cores;
    TF_ASSIGN_OR_RETURN(
        schedule::ExprRv jobs,
        schedule.SampleCategorical({cores, 4 * cores, 16 * cores, 64 * cores},
                                   {0.25, 0.25, 0.25, 0.25}));
    TF_RETURN_IF_ERROR(schedule.Annotate(root, kParallel, jobs));
  }
  TF_RETURN_IF_ERROR(schedule.Annotate(
      root, kVectorize,
      ir::Attr(static_cast<int64_t>(context.target.vector_lanes(4)))));
  TF_ASSIGN_OR_RETURN(
      schedule::ExprRv steps,
      schedule.SampleCategorical({0, 16, 64}, {0.5, 0.25, 0.25}));
  TF_RETURN_IF_ERROR(schedule.Annotate(root, kUnrollExplicit, steps));
  const ir::PrimFuncPtr function = schedule.module().Find(context.function);
  const target::CacheSizes& caches = context.target.caches;
  const int64_t kept = function->attrs.contains(ir::kResultsAreRead)
                           ? std::max(caches.l2_bytes, caches.l3_bytes)
                           : caches.l2_bytes;
  if (context.target.Has(target::Capability::kStreamingStores) &&
      !StreamedBlocks(*function, kept).empty()) {
    TF_ASSIGN_OR_RETURN(schedule::ExprRv streams,
                        schedule.SampleCategorical({0, 1}, {0.5, 0.5}));
    TF_RETURN_IF_ERROR(schedule.Annotate(root, kStream, streams));
  }
  return std::vector{std::move(schedule)};
}

}  // namespace tilefarm::space
