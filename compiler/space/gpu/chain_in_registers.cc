#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/matrix_units.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/gpu/kernels.h"
#include "compiler/space/gpu/warp_tiles.h"
#include "compiler/space/postprocs.h"

namespace tilefarm::space {
namespace {

using schedule::BlockRv;
using schedule::ExprRv;
using schedule::LoopRv;
using schedule::Schedule;

// A thread that stands for the four of a quad (ir::kRowQuads) has rows as far
// apart as those of the matrix unit's two halves.
constexpr int64_t kRowsApart = kUnitRows;
constexpr int64_t kMostRows = 4, kMostWarps = 8, kMostChunk = 128;
constexpr int64_t kMostChainStages = 3;
constexpr int64_t kFirstRows = 4, kFirstWarps = 4, kFirstChunk = 64,
                  kFirstStages = 2;
// The terms of one instruction.
constexpr int64_t kLeastChunk = 16;

// The blocks of online_product, in its order.
struct OnlineBlocks {
  enum : size_t {
    kScores,
    kLargestPart,
    kLargest,
    kExponentials,
    kTotalPart,
    kTotal,
    kShares,
    kProductPart,
    kProductSum,
    kResult,
    kCount
  };
};

bool AnyBlock(const ir::BlockNode&) { return true; }

// Exponentials, scales and masks become part of the blocks that add, divide and
// compare them.
absl::Status InlineElementwise(Schedule& schedule, BlockRv product,
                               const std::string& function) {
  const auto blocks = [&] {
    return AllBlockNames(*schedule.module().Find(function)).size();
  };
  TF_ASSIGN_OR_RETURN(const std::vector<BlockRv> makers,
                      schedule.GetProducers(product));
  for (const BlockRv maker : makers) {
    size_t before = 0;
    do {
      before = blocks();
      TF_RETURN_IF_ERROR(InlineProducers(schedule, maker, AnyBlock));
    } while (blocks() < before);
  }
  return absl::OkStatus();
}

// Those of blockIdx.x, threadIdx.y, threadIdx.x, and chunks.
constexpr ptrdiff_t kLoopsAround = 4;

// Splits the terms by instruction, around the tile's rows and columns: sums
// begin before all terms.
absl::Status UseUnit(Schedule& schedule, BlockRv block,
                     const ir::WarpProduct& unit) {
  TF_RETURN_IF_ERROR(
      schedule.Annotate(block, kTilingStructure, ir::Attr(kWarpTiles)));
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> loops,
                      schedule.GetLoops(block));
  TF_ASSIGN_OR_RETURN(
      const std::vector<LoopRv> terms,
      schedule.Split(loops.back(),
                     {std::nullopt, static_cast<int64_t>(unit.terms)}));
  std::vector<LoopRv> order = terms;
  order.insert(order.end(), loops.begin() + kLoopsAround, loops.end() - 1);
  TF_RETURN_IF_ERROR(schedule.Reorder(order));
  return schedule.Annotate(terms.back(), ir::kWarpMatrix,
                           ir::Attr(std::string(unit.annotation)));
}

// Whether sums in registers may become the first operand.
bool ChainsInRegisters(const std::optional<WarpProductSite>& site) {
  return site && site->unit->a.is_float() && site->unit->a.bytes() >= 2;
}

// A chain of two products: sums of `terms` scores for each of `columns`, where
// a score is a sum of `depth` products.
struct ChainShape {
  WarpProductSite outer;  // of the program's block
  ir::Buffer values;      // the other operand
  int64_t rows = 0, columns = 0, terms = 0, depth = 0;
  int64_t bytes = 0;  // of an element of the operands
};

// The first product by way of the blocks that online_product would make.
absl::StatusOr<ChainShape> ShapeOf(Schedule schedule, BlockRv block,
                                   const target::GpuLimits& limits) {
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, schedule.Get(block));
  const std::optional<WarpProductSite> product = FindWarpProduct(*node, limits);
  if (!ChainsInRegisters(product)) {
    return absl::FailedPreconditionError("no unit");
  }
  ChainShape shape{.outer = *product};
  shape.values = node->reads[static_cast<size_t>(product->b)].buffer;
  shape.rows = IterExtent(node->iters[product->rows]);
  shape.columns = IterExtent(node->iters[product->columns]);
  shape.terms = IterExtent(node->iters[product->terms]);
  TF_ASSIGN_OR_RETURN(const std::vector<BlockRv> blocks,
                      schedule.OnlineProduct(block, int64_t{1}, 1, int64_t{1}));
  if (blocks.size() != OnlineBlocks::kCount) {
    return absl::FailedPreconditionError("no block makes the scores");
  }
  TF_ASSIGN_OR_RETURN(node, schedule.Get(blocks[OnlineBlocks::kScores]));
  const std::optional<WarpProductSite> inner = FindWarpProduct(*node, limits);
  if (!ChainsInRegisters(inner)) {
    return absl::FailedPreconditionError("no chain of products");
  }
  shape.depth = IterExtent(node->iters[inner->terms]);
  shape.bytes = std::max(product->unit->a.bytes(), inner->unit->a.bytes());
  if (shape.rows % (2 * kRowsApart) != 0 || shape.columns % kUnitColumns != 0 ||
      shape.terms % kLeastChunk != 0 || shape.depth % inner->unit->terms != 0) {
    return absl::FailedPreconditionError("no tiles divide it");
  }
  return shape;
}

// Rows of each thread that stands for a quad, warps of a block, and scores and
// copies of a chunk.
struct OnlineTile {
  int64_t rows, warps, chunk, stages;
};

// Whether a lane's registers hold its part of the scores and exponentials, or
// of both results, and a block's memory the operands.
bool FitsIn(const target::GpuLimits& limits, const ChainShape& shape,
            const OnlineTile& tile) {
  const int64_t lane =
      tile.rows *
      std::max(2 * tile.chunk + shape.columns,
               2 * shape.columns + tile.chunk * shape.bytes / 4) /
      ir::kQuadLanes;
  const int64_t padding = kVectorBytes / shape.bytes;
  const int64_t shared =
      tile.rows * kRowsApart * tile.warps * (shape.depth + padding) +
      tile.stages * tile.chunk * (shape.depth + shape.columns + 2 * padding);
  return lane <= LocalRegisters(limits, tile.warps * ir::kWarpLanes) &&
         shared * shape.bytes <= limits.block_shared;
}

// By default tiles that fit, and smaller ones rather than too few blocks: first
// of fewer rows, then of fewer warps.
absl::StatusOr<OnlineTile> FirstTile(const target::GpuLimits& limits,
                                     const ChainShape& shape, int64_t blocks,
                                     const OnlineTile& most) {
  OnlineTile tile{std::min(kFirstRows, most.rows),
                  std::min(kFirstWarps, most.warps),
                  std::min(kFirstChunk, most.chunk), kFirstStages};
  // There are twice as many operands, each in two parts.
  if (shape.outer.unit->split) tile.rows = 2;
  while (tile.rows > 2 && blocks < kEnoughBlocks * tile.rows * tile.warps) {
    tile.rows /= 2;
  }
  while (tile.warps > 1 && blocks < kEnoughBlocks * tile.rows * tile.warps) {
    tile.warps /= 2;
  }
  while (!FitsIn(limits, shape, tile)) {
    if (tile.rows > 2) {
      tile.rows /= 2;
    } else if (tile.chunk > kLeastChunk) {
      tile.chunk /= 2;
    } else if (tile.stages > 1) {
      --tile.stages;
    } else {
      return absl::FailedPreconditionError("no tile fits");
    }
  }
  return tile;
}

absl::Status ChainOnline(const RuleContext& context, Schedule& schedule,
                         BlockRv block) {
  const target::GpuLimits& limits = *context.target.gpu;
  TF_RETURN_IF_ERROR(InlineElementwise(schedule, block, context.function));
  TF_ASSIGN_OR_RETURN(const ChainShape shape, ShapeOf(schedule, block, limits));
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, schedule.Get(block));
  OnlineTile most{.rows = PowerOf(shape.rows / kRowsApart, kMostRows),
                  .chunk = PowerOf(shape.terms, kMostChunk)};
  most.warps = PowerOf(shape.rows / kRowsApart / most.rows, kMostWarps);
  TF_ASSIGN_OR_RETURN(const OnlineTile first,
                      FirstTile(limits, shape,
                                ProductOf(*node, ir::IterType::kSpatial) /
                                    shape.columns / kRowsApart,
                                most));
  TF_ASSIGN_OR_RETURN(const ExprRv rows,
                      SamplePower(schedule, 2, most.rows, first.rows));
  TF_ASSIGN_OR_RETURN(const ExprRv warps,
                      SamplePower(schedule, 1, most.warps, first.warps));
  TF_ASSIGN_OR_RETURN(const ExprRv chunk, SamplePower(schedule, kLeastChunk,
                                                      most.chunk, first.chunk));
  TF_ASSIGN_OR_RETURN(const std::vector<BlockRv> blocks,
                      schedule.OnlineProduct(block, rows, kRowsApart, chunk));
  const BlockRv scores = blocks[OnlineBlocks::kScores],
                part = blocks[OnlineBlocks::kProductPart],
                result = blocks[OnlineBlocks::kResult];
  TF_ASSIGN_OR_RETURN(node, schedule.Get(scores));
  const std::optional<WarpProductSite> inner = FindWarpProduct(*node, limits);
  if (!inner) return absl::FailedPreconditionError("no chain of products");
  // The same product, chunk by chunk.
  TF_ASSIGN_OR_RETURN(node, schedule.Get(part));
  WarpProductSite outer = shape.outer;
  outer.terms = node->iters.size() - 1;
  outer.b = -1;
  for (size_t r = 0; r < node->reads.size(); ++r) {
    if (node->reads[r].buffer == shape.values) outer.b = static_cast<int>(r);
  }
  // The elementwise block behind it.
  TF_ASSIGN_OR_RETURN(const std::optional<BlockRv> writer,
                      FusibleConsumer(schedule, result));
  if (writer) TF_RETURN_IF_ERROR(schedule.ReverseComputeInline(*writer));

  // Loops: what heads have in common, tiles of rows, threads, and chunks.
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> loops,
                      schedule.GetLoops(blocks[OnlineBlocks::kLargest]));
  const size_t chunks = loops.size() - 2;
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> tiles,
                      schedule.Split(loops[chunks - 2], {std::nullopt, warps}));
  std::vector<LoopRv> grid(loops.begin(),
                           loops.begin() + static_cast<ptrdiff_t>(chunks) - 2);
  grid.push_back(tiles[0]);
  TF_RETURN_IF_ERROR(FuseAndBind(schedule, grid, "blockIdx.x").status());
  TF_RETURN_IF_ERROR(schedule.Bind(tiles[1], "threadIdx.y"));
  const LoopRv threads = loops[chunks - 1];
  TF_RETURN_IF_ERROR(schedule.Bind(threads, "threadIdx.x"));
  TF_RETURN_IF_ERROR(schedule.Annotate(threads, ir::kRowQuads, ir::Attr(1)));
  TF_ASSIGN_OR_RETURN(
      const ExprRv stages,
      SampleOne(schedule, {1, 2, kMostChainStages}, first.stages));
  TF_RETURN_IF_ERROR(
      schedule.Annotate(loops[chunks], ir::kSharedStages, stages));

  for (size_t b = 0; b < blocks.size(); ++b) {
    if (b == OnlineBlocks::kResult) continue;
    TF_ASSIGN_OR_RETURN(node, schedule.Get(blocks[b]));
    for (size_t w = 0; w < node->writes.size(); ++w) {
      TF_RETURN_IF_ERROR(
          schedule.SetScope(blocks[b], static_cast<int>(w), "local"));
    }
  }
  TF_RETURN_IF_ERROR(UseUnit(schedule, scores, *inner->unit));
  TF_RETURN_IF_ERROR(UseUnit(schedule, part, *outer.unit));
  TF_RETURN_IF_ERROR(FetchOperand(schedule, scores, *inner, inner->a, threads));
  TF_RETURN_IF_ERROR(
      FetchOperand(schedule, scores, *inner, inner->b, loops[chunks]));
  return FetchOperand(schedule, part, outer, outer.b, loops[chunks],
                      /*second_terms=*/outer.unit->a.bytes() == 4);
}

}  // namespace

// Attention in one pass over keys and values, with scores in registers (Dao,
// "FlashAttention-2", 2023):
//
//   S = Q K'; M = max(S); D = sum(exp(S - M)); O = (exp(S - M) / D) V
//   ->  for blockIdx.x, threadIdx.y, threadIdx.x:        (a thread's rows)
//         Q_shared
//         for chunks of keys:
//           K_shared, V_shared                        (fetched stages ahead)
//           S += Q_shared * K_shared                         (tensor cores)
//           M, E = exp(S - M), D = D * F + sum(E)
//           O_part += E * V_shared                           (tensor cores)
//           O = O * F + O_part
//         O / D
//
// The first alternative: nothing but rows of Q and of the result is read or
// written once for each row, whatever the number of keys.
Alternatives ChainInRegisters(const RuleContext& context, RuleSite site) {
  if (!ChainsInRegisters(FindWarpProduct(*site.node, *context.target.gpu))) {
    return DoesNotApply();
  }
  TF_ASSIGN_OR_RETURN(const bool plain, HasPlainLoops(site));
  if (!plain) return DoesNotApply();
  if (!ChainOnline(context, site.schedule, site.block).ok()) {
    return DoesNotApply();
  }
  return std::vector{std::move(site.schedule), std::move(site.unchanged)};
}

}  // namespace tilefarm::space
