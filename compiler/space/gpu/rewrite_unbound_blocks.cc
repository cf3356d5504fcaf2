#include <algorithm>
#include <optional>

#include "base/status_macros.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/postprocs.h"

namespace tilefarm::space {
namespace {

using schedule::BlockRv;
using schedule::LoopRv;
using schedule::Schedule;

// The threads of a block: 8 warps, of which a multiprocessor of any kind holds
// several blocks.
constexpr int64_t kThreads = 256;

absl::StatusOr<bool> IsBound(const Schedule& schedule,
                             const std::vector<LoopRv>& loops) {
  for (const LoopRv loop : loops) {
    TF_ASSIGN_OR_RETURN(const ir::ForPtr node, schedule.Get(loop));
    if (node->for_kind == ir::ForKind::kThreadBinding) return true;
  }
  return false;
}

// Spatial loops outside, reduce loops inside.
std::vector<LoopRv> SpatialFirst(Schedule& schedule, BlockRv block,
                                 const std::vector<LoopRv>& loops) {
  const auto viewed = ViewLoops(schedule, block);
  if (!viewed.ok() || viewed->size() != loops.size()) return loops;
  std::vector<LoopRv> order, reduce;
  for (size_t i = 0; i < viewed->size(); ++i) {
    ((*viewed)[i].reduces ? reduce : order).push_back(viewed->rvs[i]);
  }
  order.insert(order.end(), reduce.begin(), reduce.end());
  return order.size() > 1 && schedule.Reorder(order).ok() ? order : loops;
}

// How many of the first loops feed only spatial variables of every block below
// them. Threads that divided a reduction would have to combine their parts,
// which is not possible for each block below a loop that several share.
size_t SpatialLoops(Schedule& schedule, const std::vector<LoopRv>& loops,
                    size_t most) {
  if (most == 0) return 0;
  const auto outermost = schedule.Get(loops[0]);
  if (!outermost.ok()) return 0;
  size_t count = 0;
  for (; count < most; ++count) {
    const auto loop = schedule.Get(loops[count]);
    if (!loop.ok()) break;
    bool reduces = false;
    ir::PreOrder(*outermost, [&](const ir::Stmt& s) {
      const auto* block = ir::As<ir::BlockNode>(s);
      if (block == nullptr) return true;
      for (const ir::IterVar& iter : block->iters) {
        reduces |= iter.type != ir::IterType::kSpatial &&
                   ir::UsesVar(iter.binding, (*loop)->var.get());
      }
      return true;
    });
    if (reduces) break;
  }
  return count;
}

// Binds as many outer loops as may run at the same time.
bool BindOuter(Schedule& schedule, BlockRv block,
               const std::vector<LoopRv>& all) {
  Schedule start = schedule;
  const std::vector<LoopRv> loops = PerfectLoops(start, all) == all.size()
                                        ? SpatialFirst(start, block, all)
                                        : all;
  for (size_t count = SpatialLoops(start, loops, PerfectLoops(start, loops));
       count > 0; --count) {
    Schedule attempt = start;
    LoopRv fused = loops[0];
    if (count > 1) {
      const auto one = attempt.Fuse({loops.begin(), loops.begin() + count});
      if (!one.ok()) continue;
      fused = *one;
    }
    const auto parts = attempt.Split(fused, {std::nullopt, kThreads});
    if (!parts.ok() || !attempt.Bind((*parts)[0], "blockIdx.x").ok() ||
        !attempt.Bind((*parts)[1], "threadIdx.x").ok()) {
      continue;
    }
    schedule = std::move(attempt);
    return true;
  }
  return false;
}

}  // namespace

absl::Status RewriteUnboundBlocks(Schedule& schedule,
                                  const std::string& function,
                                  const target::Target&) {
  TF_ASSIGN_OR_RETURN(const BlockRv root, schedule.GetBlock("root", function));
  // By position, not by name: names need not be unique.
  TF_ASSIGN_OR_RETURN(const std::vector<BlockRv> blocks,
                      schedule.GetChildBlocks(root));
  for (const BlockRv block : blocks) {
    TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> loops,
                        schedule.GetLoops(block));
    TF_ASSIGN_OR_RETURN(const bool bound, IsBound(schedule, loops));
    if (bound || (!loops.empty() && BindOuter(schedule, block, loops))) {
      continue;
    }
    // One thread runs it, in order.
    TF_ASSIGN_OR_RETURN(const LoopRv unit,
                        loops.empty() ? schedule.AddUnitLoop(block)
                                      : schedule.AddUnitLoop(loops[0]));
    TF_RETURN_IF_ERROR(schedule.Bind(unit, "blockIdx.x"));
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::space
