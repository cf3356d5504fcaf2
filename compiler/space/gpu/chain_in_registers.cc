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
#include "compiler/ir/tensor_box.h"
#include "compiler/ir/warpgroup_product.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/engine_copies.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/gpu/kernels.h"
#include "compiler/space/gpu/row_chain.h"
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
// Of warpgroups: a product of 64 rows for each, which have 16 of a warp.
constexpr int64_t kGroupWarps = ir::kWarpgroup / ir::kWarpLanes;
constexpr int64_t kGroupRows = 2, kMostGroups = 3, kFirstGroups = 2;
constexpr int64_t kFirstGroupChunk = 128, kLeastGroupChunk = 32;

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

// Those of blockIdx.x, threadIdx.y, threadIdx.x, and chunks.
constexpr ptrdiff_t kLoopsAround = 4;

// How a product's loops are split, beside the terms by instruction: over terms
// and over columns at the rows of tiles as the copy engine leaves them. 0: not.
struct UnitSplits {
  int64_t terms = 0, columns = 0;
};

// Splits the terms, around the tile's rows and columns: sums begin before all
// terms.
absl::Status UseUnit(Schedule& schedule, BlockRv block,
                     const ir::WarpProduct& unit, const std::string& annotation,
                     const UnitSplits& at) {
  TF_RETURN_IF_ERROR(
      schedule.Annotate(block, kTilingStructure, ir::Attr(kWarpTiles)));
  TF_ASSIGN_OR_RETURN(std::vector<LoopRv> loops, schedule.GetLoops(block));
  const int64_t step = unit.terms;
  std::vector<schedule::Factor> parts{std::nullopt, step};
  if (at.terms > 0) parts.insert(parts.begin() + 1, at.terms / step);
  TF_ASSIGN_OR_RETURN(std::vector<LoopRv> order,
                      schedule.Split(loops.back(), parts));
  const LoopRv terms = order.back();
  loops.pop_back();
  if (at.columns > 0) {
    TF_ASSIGN_OR_RETURN(
        const std::vector<LoopRv> columns,
        schedule.Split(loops.back(), {std::nullopt, at.columns}));
    loops.pop_back();
    loops.insert(loops.end(), columns.begin(), columns.end());
  }
  order.insert(order.end(), loops.begin() + kLoopsAround, loops.end());
  TF_RETURN_IF_ERROR(schedule.Reorder(order));
  return schedule.Annotate(terms, ir::kWarpMatrix, ir::Attr(annotation));
}

// Fetches an operand by the copy engine, chunk by chunk.
absl::Status FetchByEngine(Schedule& schedule, BlockRv block, int operand,
                           LoopRv at) {
  TF_ASSIGN_OR_RETURN(const BlockRv copy,
                      schedule.CacheRead(block, operand, "shared"));
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr copied,
                      CopyFromTensor(schedule, copy));
  if (!CanCopyTiles(*copied, kLeastGroupChunk, /*across=*/true)) {
    return absl::FailedPreconditionError("the engine cannot fetch it");
  }
  return schedule.ComputeAt(copy, at, /*preserve_unit_loops=*/true);
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
  int64_t depth_step = 0;  // of the unit for the scores
  int64_t bytes = 0;       // of an element of the operands
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
  // In one chunk: the program's own buffers are the largest.
  TF_ASSIGN_OR_RETURN(
      const std::vector<BlockRv> blocks,
      schedule.OnlineProduct(block, int64_t{1}, 1, shape.terms));
  if (blocks.size() != OnlineBlocks::kCount) {
    return absl::FailedPreconditionError("no block makes the scores");
  }
  TF_ASSIGN_OR_RETURN(node, schedule.Get(blocks[OnlineBlocks::kScores]));
  const std::optional<WarpProductSite> inner = FindWarpProduct(*node, limits);
  if (!ChainsInRegisters(inner)) {
    return absl::FailedPreconditionError("no chain of products");
  }
  shape.depth = IterExtent(node->iters[inner->terms]);
  shape.depth_step = inner->unit->terms;
  shape.bytes = std::max(product->unit->a.bytes(), inner->unit->a.bytes());
  return shape;
}

// The shape, after sizes that no tiles divide were rounded up.
absl::StatusOr<ChainShape> WholeShapeOf(Schedule& schedule, BlockRv block,
                                        const target::GpuLimits& limits,
                                        bool by_warpgroups) {
  TF_ASSIGN_OR_RETURN(const ChainShape shape, ShapeOf(schedule, block, limits));
  const bool whole =
      shape.rows % (2 * kRowsApart) == 0 && shape.columns % kUnitColumns == 0 &&
      shape.terms % kLeastChunk == 0 && shape.depth % shape.depth_step == 0;
  // Tiles of warpgroups are large.
  const int64_t group_rows = kRowsApart * kGroupRows * kGroupWarps;
  const bool pads_groups =
      by_warpgroups && 8 * RoundUpBy(shape.rows, group_rows) <= 9 * shape.rows;
  if (whole && (!pads_groups || shape.rows % group_rows == 0)) return shape;
  TF_RETURN_IF_ERROR(PadChain(
      schedule, block, shape.outer,
      {.rows = pads_groups
                   ? PaddingRange{group_rows, group_rows}
                   : PaddingRange{2 * kRowsApart, kRowsApart * kMostRows},
       .terms = {kLeastChunk, kFirstChunk},
       .depth = shape.depth_step}));
  return ShapeOf(schedule, block, limits);
}

// Rows of each thread that stands for a quad, warps of a block, and scores and
// copies of a chunk.
struct OnlineTile {
  int64_t rows, warps, chunk, stages;
};

// Whether a lane's registers hold its part of the scores and of the results,
// and a block's memory the operands. Exponentials take the scores' places, but
// not where code of warps is in another order than the program.
bool FitsIn(const target::GpuLimits& limits, const ChainShape& shape,
            const OnlineTile& tile, bool by_warpgroups) {
  const int64_t threads = tile.warps * ir::kWarpLanes;
  const int64_t scores = by_warpgroups ? tile.chunk : 2 * tile.chunk;
  const int64_t lane = tile.rows * (scores + shape.columns) / ir::kQuadLanes;
  const int64_t padding = by_warpgroups ? 0 : kVectorBytes / shape.bytes;
  const int64_t shared =
      tile.rows * kRowsApart * tile.warps * (shape.depth + padding) +
      tile.stages * tile.chunk * (shape.depth + shape.columns + 2 * padding);
  return lane <= (by_warpgroups ? ConsumerRegisters(limits, threads)
                                : LocalRegisters(limits, threads)) &&
         shared * shape.bytes <= limits.block_shared;
}

// Rows of tiles that the copy engine leaves for warpgroups have so many
// elements; 0: operands have no such tiles.
int64_t GroupRow(const target::GpuLimits& limits, const ChainShape& shape) {
  const int64_t row = ir::kBoxRowBytes / shape.bytes;
  const bool fits = limits.warpgroup_products && shape.bytes == 2 &&
                    shape.rows % (kRowsApart * kGroupRows * kGroupWarps) == 0 &&
                    shape.depth % row == 0 && shape.columns % row == 0 &&
                    shape.terms % kLeastGroupChunk == 0 &&
                    ir::IsWarpgroupColumns(shape.columns);
  return fits ? row : 0;
}

// Of warpgroups: as many rows as are enough blocks, then chunks that fit.
absl::StatusOr<OnlineTile> FirstGroupTile(const target::GpuLimits& limits,
                                          const ChainShape& shape,
                                          int64_t blocks,
                                          const std::vector<int64_t>& warps,
                                          const OnlineTile& most) {
  OnlineTile tile{kGroupRows, kFirstGroups * kGroupWarps,
                  std::min(kFirstGroupChunk, most.chunk), kFirstStages};
  while (tile.warps > kGroupWarps &&
         (!std::ranges::count(warps, tile.warps) ||
          blocks < kEnoughBlocks * tile.rows * tile.warps)) {
    tile.warps -= kGroupWarps;
  }
  while (!FitsIn(limits, shape, tile, /*by_warpgroups=*/true)) {
    if (tile.chunk > kLeastGroupChunk) {
      tile.chunk /= 2;
    } else if (tile.warps > kGroupWarps) {
      tile.warps -= kGroupWarps;
    } else {
      return absl::FailedPreconditionError("no tile fits");
    }
  }
  return tile;
}

// By default tiles that fit, and smaller ones rather than too few blocks: first
// of fewer rows, unless their number is given, then of fewer warps.
absl::StatusOr<OnlineTile> FirstTile(const target::GpuLimits& limits,
                                     const ChainShape& shape, int64_t blocks,
                                     const OnlineTile& most,
                                     std::optional<int64_t> rows) {
  OnlineTile tile{std::min(kFirstRows, most.rows),
                  std::min(kFirstWarps, most.warps),
                  std::min(kFirstChunk, most.chunk), kFirstStages};
  // There are twice as many operands, each in two parts.
  if (shape.outer.unit->split) tile.rows = 2;
  if (rows) tile.rows = *rows;
  const int64_t least_rows = rows.value_or(2);
  while (tile.rows > least_rows &&
         blocks < kEnoughBlocks * tile.rows * tile.warps) {
    tile.rows /= 2;
  }
  while (tile.warps > 1 && blocks < kEnoughBlocks * tile.rows * tile.warps) {
    tile.warps /= 2;
  }
  while (!FitsIn(limits, shape, tile, /*by_warpgroups=*/false)) {
    if (tile.rows > least_rows) {
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

struct ChainWay {
  bool by_warpgroups = false;
  std::optional<int64_t> rows;  // nullopt: as many as are best by default
};

// The numbers of a tile, drawn.
struct DrawnTile {
  ExprRv rows, warps, chunk, stages;
  int64_t default_rows = 0;
};

// Draws numbers of which any fit together, those of the default tile among
// them: more warps than it has first, then larger chunks, then more stages.
absl::StatusOr<DrawnTile> DrawTile(Schedule& schedule,
                                   const target::GpuLimits& limits,
                                   const ChainShape& shape, int64_t blocks,
                                   const ChainWay& way) {
  OnlineTile most{.rows = PowerOf(shape.rows / kRowsApart, kMostRows),
                  .chunk = PowerOf(shape.terms, kMostChunk)};
  if (way.rows.value_or(0) > most.rows) {
    return absl::FailedPreconditionError("too few rows");
  }
  most.warps = PowerOf(shape.rows / kRowsApart / way.rows.value_or(most.rows),
                       kMostWarps);
  OnlineTile first;
  std::vector<int64_t> warps, chunks;
  if (way.by_warpgroups) {
    // There has to be a loop over chunks.
    if (most.chunk == shape.terms) most.chunk /= 2;
    if (most.chunk < kLeastGroupChunk) {
      return absl::FailedPreconditionError("too few terms");
    }
    for (int64_t groups = 1; groups <= kMostGroups; ++groups) {
      const int64_t rows = groups * kGroupWarps * kGroupRows * kRowsApart;
      if (shape.rows % rows == 0) warps.push_back(groups * kGroupWarps);
    }
    TF_ASSIGN_OR_RETURN(first,
                        FirstGroupTile(limits, shape, blocks, warps, most));
    chunks = PowersOfTwo(kLeastGroupChunk, most.chunk);
  } else {
    TF_ASSIGN_OR_RETURN(first,
                        FirstTile(limits, shape, blocks, most, way.rows));
    warps = PowersOfTwo(1, most.warps);
    chunks = PowersOfTwo(std::min(kLeastChunk, most.chunk), most.chunk);
  }
  OnlineTile tile = first;
  const auto keep_fitting = [&](std::vector<int64_t>& numbers,
                                int64_t OnlineTile::*number) {
    std::erase_if(numbers, [&](int64_t one) {
      OnlineTile other = tile;
      other.*number = one;
      return !FitsIn(limits, shape, other, way.by_warpgroups);
    });
    tile.*number = numbers.back();
  };
  keep_fitting(warps, &OnlineTile::warps);
  keep_fitting(chunks, &OnlineTile::chunk);
  std::vector<int64_t> stages = {1, 2, kMostChainStages};
  keep_fitting(stages, &OnlineTile::stages);

  DrawnTile drawn;
  drawn.default_rows = first.rows;
  TF_ASSIGN_OR_RETURN(drawn.rows,
                      SampleOne(schedule, {first.rows}, first.rows));
  TF_ASSIGN_OR_RETURN(drawn.warps, SampleOne(schedule, warps, first.warps));
  TF_ASSIGN_OR_RETURN(drawn.chunk, SampleOne(schedule, chunks, first.chunk));
  TF_ASSIGN_OR_RETURN(drawn.stages, SampleOne(schedule, stages, first.stages));
  return drawn;
}

// Returns how many rows a thread has.
absl::StatusOr<int64_t> ChainOnline(const RuleContext& context,
                                    Schedule& schedule, BlockRv block,
                                    const ChainWay& way) {
  const target::GpuLimits& limits = *context.target.gpu;
  TF_RETURN_IF_ERROR(InlineExponents(schedule, block, context.function));
  TF_ASSIGN_OR_RETURN(const ChainShape shape,
                      WholeShapeOf(schedule, block, limits, way.by_warpgroups));
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, schedule.Get(block));
  const bool by_warpgroups = way.by_warpgroups;
  const int64_t row = by_warpgroups ? GroupRow(limits, shape) : 0;
  if (by_warpgroups && row == 0) {
    return absl::FailedPreconditionError("no tiles of warpgroups");
  }
  TF_ASSIGN_OR_RETURN(const DrawnTile tile,
                      DrawTile(schedule, limits, shape,
                               ProductOf(*node, ir::IterType::kSpatial) /
                                   shape.columns / kRowsApart,
                               way));
  TF_ASSIGN_OR_RETURN(
      const std::vector<BlockRv> blocks,
      schedule.OnlineProduct(block, tile.rows, kRowsApart, tile.chunk));
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
  TF_ASSIGN_OR_RETURN(
      const std::vector<LoopRv> tiles,
      schedule.Split(loops[chunks - 2], {std::nullopt, tile.warps}));
  std::vector<LoopRv> grid(loops.begin(),
                           loops.begin() + static_cast<ptrdiff_t>(chunks) - 2);
  grid.push_back(tiles[0]);
  TF_RETURN_IF_ERROR(FuseAndBind(schedule, grid, "blockIdx.x").status());
  TF_RETURN_IF_ERROR(schedule.Bind(tiles[1], "threadIdx.y"));
  const LoopRv threads = loops[chunks - 1];
  TF_RETURN_IF_ERROR(schedule.Bind(threads, "threadIdx.x"));
  TF_RETURN_IF_ERROR(schedule.Annotate(threads, ir::kRowQuads, ir::Attr(1)));
  TF_RETURN_IF_ERROR(schedule.Annotate(
      loops[chunks], by_warpgroups ? ir::kWarpgroupStages : ir::kSharedStages,
      tile.stages));

  for (size_t b = 0; b < blocks.size(); ++b) {
    if (b == OnlineBlocks::kResult) continue;
    TF_ASSIGN_OR_RETURN(node, schedule.Get(blocks[b]));
    for (size_t w = 0; w < node->writes.size(); ++w) {
      TF_RETURN_IF_ERROR(
          schedule.SetScope(blocks[b], static_cast<int>(w), "local"));
    }
  }
  if (by_warpgroups) {
    TF_RETURN_IF_ERROR(FetchByEngine(schedule, scores, inner->a, threads));
    TF_RETURN_IF_ERROR(
        FetchByEngine(schedule, scores, inner->b, loops[chunks]));
    TF_RETURN_IF_ERROR(FetchByEngine(schedule, part, outer.b, loops[chunks]));
  }
  const auto annotation = [&](const ir::WarpProduct& unit) {
    return std::string(by_warpgroups ? ir::kByWarpgroups : unit.annotation);
  };
  TF_RETURN_IF_ERROR(UseUnit(schedule, scores, *inner->unit,
                             annotation(*inner->unit), {.terms = row}));
  TF_RETURN_IF_ERROR(UseUnit(schedule, part, *outer.unit,
                             annotation(*outer.unit), {.columns = row}));
  if (by_warpgroups) return tile.default_rows;
  TF_RETURN_IF_ERROR(FetchOperand(schedule, scores, *inner, inner->a, threads));
  TF_RETURN_IF_ERROR(
      FetchOperand(schedule, scores, *inner, inner->b, loops[chunks]));
  TF_RETURN_IF_ERROR(FetchOperand(schedule, part, outer, outer.b, loops[chunks],
                                  /*second_terms=*/outer.unit->a.bytes() == 4));
  return tile.default_rows;
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
// Alternatives: with warpgroups, whose matrix unit takes keys and values from
// where the copy engine puts them (lower/warpgroup_chain.h); with warps, of
// threads with more or fewer rows; and the block as it is. All but the last
// read and write nothing but rows of Q and of the result once for each row,
// whatever the number of keys.
Alternatives ChainInRegisters(const RuleContext& context, RuleSite site) {
  if (!ChainsInRegisters(FindWarpProduct(*site.node, *context.target.gpu))) {
    return DoesNotApply();
  }
  TF_ASSIGN_OR_RETURN(const bool plain, HasPlainLoops(site));
  if (!plain) return DoesNotApply();
  std::vector<Schedule> results;
  const auto attempt = [&](const ChainWay& way) {
    Schedule schedule = site.schedule;
    const auto rows = ChainOnline(context, schedule, site.block, way);
    if (rows.ok()) results.push_back(std::move(schedule));
    return rows.value_or(0);
  };
  attempt({.by_warpgroups = true});
  const int64_t first = attempt({});
  for (int64_t rows = 2; rows <= kMostRows && first > 0; rows *= 2) {
    if (rows != first) attempt({.rows = rows});
  }
  if (results.empty()) return DoesNotApply();
  results.push_back(std::move(site.unchanged));
  return results;
}

}  // namespace tilefarm::space
