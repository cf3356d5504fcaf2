#include <optional>

#include "base/status_macros.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/postprocs.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

using schedule::BlockRv;
using schedule::LoopRv;
using schedule::Schedule;

// The number of iterations of the loops around the block.
absl::StatusOr<int64_t> Iterations(Schedule schedule, BlockRv block) {
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
  int64_t product = 1;
  for (const LoopView& loop : loops.views) product *= loop.extent;
  return product;
}

// The schedule with the block below the deepest loop of its consumers where
// nothing is computed twice; nullopt if there is none. Reduce loops of
// consumers and their innermost loops, which are for vectors, are not
// candidates.
absl::StatusOr<std::optional<Schedule>> Follow(const RuleContext& context,
                                               const Schedule& schedule,
                                               const std::string& name) {
  Schedule start = schedule;
  TF_ASSIGN_OR_RETURN(BlockRv block, start.GetBlock(name, context.function));
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, start.Get(block));
  if (InTiledNest(*start.module().Find(context.function), *node)) {
    return std::optional<Schedule>();
  }
  if (node->writes.size() != 1 || IsTiled(*node) ||
      IsOutput(*start.module().Find(context.function),
               node->writes[0].buffer.get())) {
    return std::optional<Schedule>();
  }
  TF_ASSIGN_OR_RETURN(std::vector<BlockRv> consumers,
                      start.GetConsumers(block));
  if (consumers.empty()) return std::optional<Schedule>();
  // Their tiles, decided later, determine what would be computed twice.
  for (const BlockRv& consumer : consumers) {
    TF_ASSIGN_OR_RETURN(ir::BlockPtr reader, start.Get(consumer));
    if (IsTiled(*reader)) return std::optional<Schedule>();
  }
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(start, consumers[0]));
  size_t depth = 0;
  while (depth + 1 < loops.size() && !loops[depth].reduces) ++depth;
  while (depth-- > 0) {
    TF_ASSIGN_OR_RETURN(const bool fits,
                        MoveWithoutRepeats(start, block, loops.rvs[depth]));
    if (fits) return std::optional<Schedule>(std::move(start));
  }
  return std::optional<Schedule>();
}

}  // namespace

absl::StatusOr<bool> MoveWithoutRepeats(Schedule& schedule, BlockRv block,
                                        LoopRv loop, double padding) {
  Schedule attempt = schedule;
  TF_ASSIGN_OR_RETURN(const int64_t work, Iterations(attempt, block));
  if (!attempt.ComputeAt(block, loop, /*preserve_unit_loops=*/true).ok()) {
    return false;
  }
  TF_ASSIGN_OR_RETURN(const int64_t moved, Iterations(attempt, block));
  if (static_cast<double>(moved) > static_cast<double>(work) * padding) {
    return false;
  }
  schedule = std::move(attempt);
  return true;
}

// A second alternative for chains of blocks that are not tiled, such as softmax
// and norms: every producer is computed row by row with its consumers, so that
// a row stays in the L1 cache from the first block to the last. In the first
// alternative, random_compute_location samples each place independently, and
// this combination is one among hundreds.
//
//   for i, k: M[i] = max(M[i], A[i, k])       for i:
//   for i, k: S[i] += exp(A[i, k] - M[i])  ->   for k: M[i] = ...
//   for i, j: B[i, j] = ... / S[i]              for k: S[i] += ...
//                                               for j: B[i, j] = ...
Alternatives FollowConsumers(const RuleContext& context, RuleSite site) {
  Schedule followed = site.unchanged;
  int moved = 0;
  for (const std::string& name :
       AllBlockNames(*site.unchanged.module().Find(context.function))) {
    TF_ASSIGN_OR_RETURN(std::optional<Schedule> attempt,
                        Follow(context, followed, name));
    if (!attempt) continue;
    followed = *std::move(attempt);
    ++moved;
  }
  if (moved == 0) return DoesNotApply();
  return std::vector{std::move(site.unchanged), std::move(followed)};
}

}  // namespace tilefarm::space
