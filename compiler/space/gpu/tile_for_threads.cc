#include <algorithm>
#include <optional>

#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/cluster_sums.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/gpu/products.h"
#include "compiler/space/gpu/thread_tiles.h"
#include "compiler/space/postprocs.h"

namespace tilefarm::space {
namespace {

using schedule::BlockRv;
using schedule::LoopRv;
using schedule::Schedule;

// The alternatives to tile a block.
struct Way {
  bool flatten = false;    // as a product of two matrices
  bool fuse = false;       // the consumer, with the sums in registers
  bool fragments = false;  // operands in registers for each step, too
};

// The loops of a block by level, each in the order of the variables.
struct Levels {
  std::vector<LoopRv> spatial[ThreadTiles::kSpatialFactors];
  std::vector<LoopRv> reduce[ThreadTiles::kReduceFactors];
};

// Splits and reorders the loops; binds the outer ones.
struct Tiled {
  Levels levels;
  LoopRv blocks, threads;
};
absl::StatusOr<Tiled> TileLoops(Schedule& schedule, BlockRv block,
                                const TileFactors& decisions) {
  Tiled tiled;
  Levels& levels = tiled.levels;
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  for (size_t i = 0; i < loops.size(); ++i) {
    const size_t iter = static_cast<size_t>(loops[i].iters[0]);
    const bool reduces = loops[i].sums;
    if (iter == 0 && SumsInCluster(*node)) {
      levels.spatial[0].insert(levels.spatial[0].begin(), loops.rvs[i]);
      continue;
    }
    TF_ASSIGN_OR_RETURN(
        const std::vector<schedule::ExprRv> factors,
        schedule.SampleTile(loops.rvs[i],
                            reduces ? ThreadTiles::kReduceFactors
                                    : ThreadTiles::kSpatialFactors,
                            ThreadTiles::kMaxInnermostFactor, decisions[iter]));
    TF_ASSIGN_OR_RETURN(
        const std::vector<LoopRv> parts,
        schedule.Split(loops.rvs[i], {factors.begin(), factors.end()}));
    for (size_t level = 0; level < parts.size(); ++level) {
      (reduces ? levels.reduce : levels.spatial)[level].push_back(parts[level]);
    }
  }
  std::vector<LoopRv> order;
  for (const auto* level :
       {&levels.spatial[0], &levels.spatial[1], &levels.spatial[2],
        &levels.spatial[3], &levels.reduce[0], &levels.reduce[1],
        &levels.reduce[2], &levels.spatial[4]}) {
    order.insert(order.end(), level->begin(), level->end());
  }
  TF_RETURN_IF_ERROR(schedule.Reorder(order));
  TF_ASSIGN_OR_RETURN(tiled.blocks,
                      BindToBlocks(schedule, block, levels.spatial[0]));
  TF_RETURN_IF_ERROR(
      FuseAndBind(schedule, levels.spatial[1], "vthread.x").status());
  // Lanes are innermost: those of a warp form a tile of all axes.
  std::vector<LoopRv> both = levels.spatial[2];
  both.insert(both.end(), levels.spatial[3].begin(), levels.spatial[3].end());
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> bound,
                      FuseAndBind(schedule, both, "threadIdx.x"));
  tiled.threads = bound[0];
  return tiled;
}

absl::Status Tile(const RuleContext& context, Schedule& schedule, BlockRv block,
                  const Way& way) {
  const BlockRv sums = block;
  TF_ASSIGN_OR_RETURN(const std::optional<BlockRv> partial,
                      SplitForCluster(schedule, sums));
  if (partial) block = *partial;
  // What writes the results.
  std::optional<BlockRv> result;
  if (way.flatten) {
    TF_ASSIGN_OR_RETURN(
        result, FlattenProduct(schedule, block, way.fuse,
                               partial ? std::optional(sums) : std::nullopt));
  } else if (way.fuse) {
    TF_ASSIGN_OR_RETURN(result, FusibleConsumer(schedule, sums));
    if (!result) return absl::FailedPreconditionError("no consumer to fuse");
  }
  TF_ASSIGN_OR_RETURN(
      const ThreadTiles tiles,
      ThreadTiles::Of(schedule, block, *context.target.gpu, way.fragments));
  TF_RETURN_IF_ERROR(
      schedule.Annotate(block, kTilingStructure, ir::Attr(kThreadTiles)));
  const TileFactors factors = tiles.Default();
  TF_ASSIGN_OR_RETURN(const Tiled tiled, TileLoops(schedule, block, factors));
  const Levels& levels = tiled.levels;
  TF_RETURN_IF_ERROR(SampleStages(schedule, levels.reduce[0].back(),
                                  ThreadTiles::kMostStages,
                                  tiles.DefaultStages(factors)));
  if (!context.target.is_opencl()) {
    TF_ASSIGN_OR_RETURN(const schedule::ExprRv resident,
                        SampleOne(schedule, {0, 2}, 0));
    TF_RETURN_IF_ERROR(
        schedule.Annotate(tiled.blocks, ir::kResidentBlocks, resident));
  }
  BlockRv writer;
  if (result && !partial) {
    writer = *result;
    TF_RETURN_IF_ERROR(schedule.SetScope(block, 0, "local"));
  } else {
    TF_ASSIGN_OR_RETURN(writer, schedule.CacheWrite(block, 0, "local"));
  }
  TF_RETURN_IF_ERROR(schedule.ReverseComputeAt(writer, tiled.threads,
                                               /*preserve_unit_loops=*/true));
  ThreadFetch fetch{.at = levels.reduce[0].back(),
                    .windows = tiles.has_periods()};
  if (way.fragments) fetch.fragments = levels.reduce[1].back();
  for (const int operand : tiles.fetched()) {
    TF_RETURN_IF_ERROR(FetchForThreads(schedule, block, operand, fetch));
  }
  return partial ? SumInCluster(schedule, block, writer, tiled.blocks, result)
                 : absl::OkStatus();
}

}  // namespace

// Tiles a block that reuses data for blocks, warps and lanes of a GPU, each
// thread with a tile of sums in its registers:
//
//   for blockIdx.x:                      (all spatial loops, fused)
//     for vthread.x:                     (elements of a thread that are apart)
//       for threadIdx.x:                 (warps, then lanes)
//         for k_0:
//           A_shared, B_shared = A, B    (fetched by all threads together)
//           for k_1, k_2, i_4, j_4:
//             C_local += A_shared * B_shared
//         C = C_local                    (or a fused elementwise consumer)
//
// The alternatives differ in whether the operands of a step are copied into
// registers first, and whether a convolution becomes a product of matrices
// (products.h). As in MetaSchedule (Shao et al., 2022), with warps as a
// level of their own.
Alternatives TileForThreads(const RuleContext& context, RuleSite site) {
  if (!HasDataReuse(*site.node) || IsMatrixVector(*site.node) ||
      site.node->writes.size() != 1) {
    return DoesNotApply();
  }
  TF_ASSIGN_OR_RETURN(const bool plain, HasPlainLoops(site));
  if (!plain) return DoesNotApply();
  const bool windows =
      std::ranges::count(site.node->iters, ir::IterType::kReduce,
                         &ir::IterVar::type) > 1;
  std::vector<Schedule> results;
  for (const bool flatten : {true, false}) {
    if (flatten && !windows) continue;
    for (const bool fuse : {true, false}) {
      const size_t before = results.size();
      for (const bool fragments : {false, true}) {
        Schedule attempt = site.schedule;
        if (Tile(context, attempt, site.block, {flatten, fuse, fragments})
                .ok()) {
          results.push_back(std::move(attempt));
        }
      }
      if (results.size() > before) break;  // a consumer is fused if it can be
    }
  }
  if (results.empty()) return DoesNotApply();
  return results;
}

}  // namespace tilefarm::space
