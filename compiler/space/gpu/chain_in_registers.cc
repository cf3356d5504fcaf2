#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/gpu_rules.h"
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

// The exponentials become part of the blocks that add and divide them.
absl::Status InlineExponentials(Schedule& schedule, BlockRv product) {
  TF_ASSIGN_OR_RETURN(const std::vector<BlockRv> makers,
                      schedule.GetProducers(product));
  for (const BlockRv maker : makers) {
    TF_RETURN_IF_ERROR(InlineProducers(schedule, maker, UsesCostlyIntrinsic));
  }
  return absl::OkStatus();
}

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
  TF_RETURN_IF_ERROR(schedule.Reorder(
      {terms[0], terms[1], loops[loops.size() - 3], loops[loops.size() - 2]}));
  return schedule.Annotate(terms.back(), ir::kWarpMatrix,
                           ir::Attr(std::string(unit.annotation)));
}

// Whether sums in registers may become the first operand.
bool ChainsInRegisters(const std::optional<WarpProductSite>& site) {
  return site && site->unit->a.is_float() && site->unit->a.bytes() >= 2;
}

absl::Status ChainOnline(const RuleContext& context, Schedule& schedule,
                         BlockRv block) {
  const target::GpuLimits& limits = *context.target.gpu;
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, schedule.Get(block));
  const std::optional<WarpProductSite> product = FindWarpProduct(*node, limits);
  if (!ChainsInRegisters(product))
    return absl::FailedPreconditionError("no unit");
  const ir::Buffer values = node->reads[static_cast<size_t>(product->b)].buffer;
  const int64_t m = IterExtent(node->iters[product->rows]);
  const int64_t n = IterExtent(node->iters[product->columns]);
  const int64_t terms = IterExtent(node->iters[product->terms]);
  if (m % (2 * kRowsApart) != 0 || n % kUnitColumns != 0 ||
      terms % kLeastChunk != 0) {
    return absl::FailedPreconditionError("no tiles divide it");
  }
  const int64_t most_rows = PowerOf(m / kRowsApart, kMostRows);
  const int64_t most_warps = PowerOf(m / kRowsApart / most_rows, kMostWarps);
  const int64_t most_chunk = PowerOf(terms, kMostChunk);
  // More blocks of threads by default, where there would be few: first of
  // fewer rows for each warp, then of fewer warps.
  const int64_t all = ProductOf(*node, ir::IterType::kSpatial) / n / kRowsApart;
  // Of two parts of each operand there are twice as many.
  int64_t first_rows = product->unit->split ? kFirstRows / 2 : kFirstRows;
  int64_t first_warps = kFirstWarps;
  while (first_rows > 2 && all < kEnoughBlocks * first_rows * first_warps) {
    first_rows /= 2;
  }
  while (first_warps > 1 && all < kEnoughBlocks * first_rows * first_warps) {
    first_warps /= 2;
  }
  TF_ASSIGN_OR_RETURN(const ExprRv rows,
                      SamplePower(schedule, 2, most_rows, first_rows));
  TF_ASSIGN_OR_RETURN(const ExprRv warps,
                      SamplePower(schedule, 1, most_warps, first_warps));
  TF_ASSIGN_OR_RETURN(const ExprRv chunk, SamplePower(schedule, kLeastChunk,
                                                      most_chunk, kFirstChunk));
  TF_RETURN_IF_ERROR(InlineExponentials(schedule, block));
  TF_ASSIGN_OR_RETURN(const std::vector<BlockRv> blocks,
                      schedule.OnlineProduct(block, rows, kRowsApart, chunk));
  if (blocks.size() != OnlineBlocks::kCount) {
    return absl::FailedPreconditionError("no block makes the scores");
  }
  const BlockRv scores = blocks[OnlineBlocks::kScores],
                part = blocks[OnlineBlocks::kProductPart],
                result = blocks[OnlineBlocks::kResult];
  TF_ASSIGN_OR_RETURN(node, schedule.Get(scores));
  const std::optional<WarpProductSite> inner = FindWarpProduct(*node, limits);
  if (!ChainsInRegisters(inner)) {
    return absl::FailedPreconditionError("no chain of products");
  }
  // The same product, chunk by chunk.
  TF_ASSIGN_OR_RETURN(node, schedule.Get(part));
  WarpProductSite outer = *product;
  outer.terms = node->iters.size() - 1;
  outer.b = -1;
  for (size_t r = 0; r < node->reads.size(); ++r) {
    if (node->reads[r].buffer == values) outer.b = static_cast<int>(r);
  }
  // The elementwise block behind it.
  TF_ASSIGN_OR_RETURN(const std::optional<BlockRv> writer,
                      FusibleConsumer(schedule, result));
  if (writer) TF_RETURN_IF_ERROR(schedule.ReverseComputeInline(*writer));

  // Loops: what heads have in common, tiles of rows, threads, and chunks.
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> loops,
                      schedule.GetLoops(scores));
  const size_t chunks = loops.size() - 4;
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
      SampleOne(schedule, {1, 2, kMostChainStages}, kFirstStages));
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
//   ->  for blockIdx.x, threadIdx.y, threadIdx.x:          (rows of each
//   thread)
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
