#include <algorithm>

#include "base/status_macros.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/postprocs.h"

namespace tilefarm::space {
namespace {

using schedule::LoopRv;
using schedule::Schedule;

// Vectors of a thread: several loads are in flight at once.
constexpr int64_t kMaxItems = 8;

}  // namespace

absl::StatusOr<schedule::ExprRv> SampleThreads(
    Schedule& schedule, const target::GpuLimits& limits) {
  return SampleOne(schedule,
                   PowersOfTwo(limits.warp_lanes, limits.block_threads),
                   std::min<int64_t>(kDefaultThreads, limits.block_threads));
}

// A block in a nest of its own: its spatial loops become one, which is split
// over blocks, threads, and vectors of a thread; loops of a reduction stay
// inside.
//
//   for i, j: B[i, j] = f(A[i, j])
//   ->  for blockIdx.x, threadIdx.x: for item: for vector (vectorized): ...
Alternatives BindToThreads(const RuleContext& context, RuleSite site) {
  auto& [unchanged, schedule, block, node] = site;
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
  if (loops.rvs.empty() || !HasTrivialBindings(*node) ||
      PerfectLoops(schedule, loops.rvs) != loops.size()) {
    return DoesNotApply();
  }
  TF_ASSIGN_OR_RETURN(const ir::ForPtr innermost,
                      schedule.Get(loops.rvs.back()));
  if (innermost->body.get() != node.get()) return DoesNotApply();
  std::vector<LoopRv> spatial, reduce;
  int64_t outputs = 1;
  for (size_t i = 0; i < loops.size(); ++i) {
    if (loops[i].kind != ir::ForKind::kSerial) return DoesNotApply();
    (loops[i].reduces ? reduce : spatial).push_back(loops.rvs[i]);
    if (!loops[i].reduces) outputs *= loops[i].extent;
  }
  if (spatial.empty()) return DoesNotApply();
  std::vector<LoopRv> order = spatial;
  order.insert(order.end(), reduce.begin(), reduce.end());
  if (order.size() > 1 && !schedule.Reorder(order).ok()) return DoesNotApply();
  LoopRv fused = spatial[0];
  if (spatial.size() > 1) {
    const auto one = schedule.Fuse(spatial);
    if (!one.ok()) return DoesNotApply();
    fused = *one;
  }
  TF_ASSIGN_OR_RETURN(const schedule::ExprRv threads,
                      SampleThreads(schedule, *context.target.gpu));
  const int64_t widest = reduce.empty() ? VectorWidth(*node) : 1;
  std::vector<int64_t> widths, items;
  for (int64_t w = 1; w <= widest; w *= 2) widths.push_back(w);
  for (int64_t n = 1; n <= kMaxItems && n * widest * 32 <= outputs; n *= 2) {
    items.push_back(n);
  }
  if (items.size() < 2 || !reduce.empty()) {
    if (widths.size() < 2) {
      const auto parts = schedule.Split(fused, {std::nullopt, threads});
      if (!parts.ok() || !schedule.Bind((*parts)[0], "blockIdx.x").ok() ||
          !schedule.Bind((*parts)[1], "threadIdx.x").ok()) {
        return DoesNotApply();
      }
      return std::vector{std::move(schedule)};
    }
    items = {1};
  }
  TF_ASSIGN_OR_RETURN(const schedule::ExprRv item,
                      SampleOne(schedule, items, 1));
  TF_ASSIGN_OR_RETURN(const schedule::ExprRv vector,
                      SampleOne(schedule, widths, widest));
  const auto parts =
      schedule.Split(fused, {std::nullopt, item, threads, vector});
  if (!parts.ok()) return DoesNotApply();
  const std::vector<LoopRv>& l = *parts;
  if (!schedule.Reorder({l[0], l[2], l[1], l[3]}).ok() ||
      !schedule.Bind(l[0], "blockIdx.x").ok() ||
      !schedule.Bind(l[2], "threadIdx.x").ok() ||
      !schedule.Vectorize(l[3]).ok()) {
    return DoesNotApply();
  }
  return std::vector{std::move(schedule)};
}

}  // namespace tilefarm::space
