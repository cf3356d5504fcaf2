#include <algorithm>
#include <optional>

#include "base/status_macros.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/postprocs.h"

namespace tilefarm::space {
namespace {

using schedule::LoopRv;
using schedule::Schedule;

// Shorter reductions are over before a second kernel starts.
constexpr int64_t kMinSplitReduction = 1024;
// The parts of a reduction, a sketch for each, since the tiles of what is left
// depend on it: few for products, many for rows.
constexpr int64_t kParts[] = {8, 64};
// Terms of a part: a warp adds one each.
constexpr int64_t kMinPart = 32;

}  // namespace

// An alternative for long reductions with few outputs, which alone would not
// fill the GPU (split-K): the longest reduce loop is cut into parts, whose
// partial results a second kernel combines.
//
//   for i, k: C[i] += A[i, k]
//   ->  for i, k_0, k_1: C_rf[k_0, i] += A[i, ...]
//       for i, k_0:      C[i] += C_rf[k_0, i]
Alternatives SplitReductionOverBlocks(const RuleContext&, RuleSite site) {
  auto& [unchanged, schedule, block, node] = site;
  std::vector<Schedule> results{std::move(unchanged)};
  if (!IsReduction(*node) || !HasTrivialBindings(*node) ||
      ProductOf(*node, ir::IterType::kReduce) < kMinSplitReduction ||
      ProductOf(*node, ir::IterType::kSpatial) >= kManyOutputs) {
    return results;
  }
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
  std::optional<size_t> longest;
  for (size_t i = 0; i < loops.size(); ++i) {
    if (loops[i].sums && (!longest || loops[i].extent > loops[*longest].extent))
      longest = i;
  }
  if (!longest) return results;
  for (const int64_t parts : kParts) {
    if (parts * kMinPart > loops[*longest].extent) continue;
    Schedule attempt = schedule;
    const auto halves =
        attempt.Split(loops.rvs[*longest], {parts, std::nullopt});
    if (!halves.ok()) continue;
    const auto partial = attempt.Rfactor((*halves)[0], /*factor_axis=*/0);
    if (!partial.ok()) continue;
    // The parts become a spatial loop, outside of the others.
    TF_ASSIGN_OR_RETURN(const BlockLoops own, ViewLoops(attempt, *partial));
    std::vector<LoopRv> order, reduce;
    for (size_t i = 0; i < own.size(); ++i) {
      (own[i].sums ? reduce : order).push_back(own.rvs[i]);
    }
    order.insert(order.end(), reduce.begin(), reduce.end());
    if (order.size() > 1 && !attempt.Reorder(order).ok()) continue;
    results.push_back(std::move(attempt));
  }
  return results;
}

}  // namespace tilefarm::space
