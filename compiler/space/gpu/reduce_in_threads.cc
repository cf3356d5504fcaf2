#include <optional>
#include <vector>

#include "base/status_macros.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/postprocs.h"

namespace tilefarm::space {
namespace {

using schedule::BlockRv;
using schedule::LoopRv;
using schedule::Schedule;

// Computes the consumer where the block's sums are complete, below the spatial
// loops of both, and divides these over threads, whose registers then have the
// sums. False if that is not possible.
absl::StatusOr<bool> ComputeConsumer(const RuleContext& context,
                                     Schedule& schedule, BlockRv block,
                                     const std::vector<LoopRv>& spatial,
                                     const std::vector<LoopRv>& reduce) {
  TF_ASSIGN_OR_RETURN(const std::optional<BlockRv> consumer,
                      FusibleConsumer(schedule, block));
  if (!consumer) return false;
  Schedule attempt = schedule;
  std::vector<LoopRv> order = spatial;
  order.insert(order.end(), reduce.begin(), reduce.end());
  if (!attempt.Reorder(order).ok() ||
      !attempt.ReverseComputeAt(*consumer, spatial.back()).ok() ||
      !attempt.SetScope(block, 0, "local").ok()) {
    return false;
  }
  LoopRv fused = spatial[0];
  if (spatial.size() > 1) {
    const auto one = attempt.Fuse(spatial);
    if (!one.ok()) return false;
    fused = *one;
  }
  TF_ASSIGN_OR_RETURN(const schedule::ExprRv threads,
                      SampleThreads(attempt, *context.target.gpu));
  const auto parts = attempt.Split(fused, {std::nullopt, threads});
  if (!parts.ok() || !attempt.Bind((*parts)[0], "blockIdx.x").ok() ||
      !attempt.Bind((*parts)[1], "threadIdx.x").ok()) {
    return false;
  }
  schedule = std::move(attempt);
  return true;
}

}  // namespace

// A reduction that no rule before has taken, such as a depthwise convolution or
// a pooling: one kernel with what comes before and after.
//
//   for i: P[i] = pad(A)[i]
//   for i, r: C[i] += P[i + r] * W[r]
//   for i: D[i] = relu(C[i])
//   ->  for blockIdx.x, threadIdx.x:
//         for r: C_local += pad(A)[i + r] * W[r]
//         D[i] = relu(C_local)
Alternatives ReduceInThreads(const RuleContext& context, RuleSite site) {
  auto& [unchanged, schedule, block, node] = site;
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
  if (!IsReduction(*node) || node->writes.size() != 1 || IsTiled(*node) ||
      !HasTrivialBindings(*node) || loops.rvs.empty() ||
      PerfectLoops(schedule, loops.rvs) != loops.size()) {
    return DoesNotApply();
  }
  std::vector<LoopRv> spatial, reduce;
  for (size_t i = 0; i < loops.size(); ++i) {
    if (loops[i].kind != ir::ForKind::kSerial) return DoesNotApply();
    (loops[i].reduces ? reduce : spatial).push_back(loops.rvs[i]);
  }
  if (spatial.empty() || reduce.empty()) return DoesNotApply();
  TF_RETURN_IF_ERROR(InlineProducers(schedule, block, IsCheapLoad));
  if (!IsOutput(*schedule.module().Find(context.function),
                node->writes[0].buffer.get())) {
    TF_RETURN_IF_ERROR(
        ComputeConsumer(context, schedule, block, spatial, reduce).status());
  }
  return std::vector{std::move(schedule)};
}

}  // namespace tilefarm::space
