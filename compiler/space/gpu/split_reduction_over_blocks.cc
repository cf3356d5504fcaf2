#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/ir/tensor_box.h"
#include "compiler/ir/warpgroup_product.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/cluster_sums.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/gpu/products.h"
#include "compiler/space/postprocs.h"

namespace tilefarm::space {
namespace {

using schedule::BlockRv;
using schedule::LoopRv;
using schedule::Schedule;

// Shorter reductions are over before a second kernel starts; those of products
// have more to do for each term.
constexpr int64_t kMinSplitReduction = 1024, kMinSplitProduct = 256;
// The parts of a reduction, a sketch for each, since the tiles of what is left
// depend on it: few for products, many for rows.
constexpr int64_t kParts[] = {8, 64};
// Terms of a part: a warp adds one each.
constexpr int64_t kMinPart = 32;
// Outputs of a product's block with good tiles, of 64 x 64, and the terms that
// are worth such tiles.
constexpr int64_t kBlockOutputs = 64 * 64, kMinProductPart = 64;
// Terms that a cluster's block computes in the time that a second kernel takes
// more than smaller parts and their launch.
constexpr int64_t kMostClusterPart = 2 * kMinProductPart;
// Terms of a part of a row: 16 for each of 256 threads.
constexpr int64_t kMinRowPart = 4096;
// Terms of a part of columns, as many as lie in a sector: a block reads 64 KB
// while a second kernel starts.
constexpr int64_t kMinColumnPart = 2048;
// Blocks whose loads together are as many as memory answers at a time.
constexpr int64_t kBlocksForMemory = 4 * kEnoughBlocks;

// The parts of a product that fill the GPU with good tiles; 1: its outputs do.
int64_t PartsOfProduct(int64_t outputs, int64_t terms) {
  const int64_t blocks = std::max<int64_t>(1, outputs / kBlockOutputs);
  // A second kernel is worth more than a quarter of the multiprocessors.
  if (4 * blocks >= 3 * kEnoughBlocks) return 1;
  int64_t parts = 1;
  while (blocks * parts < kEnoughBlocks && terms >= 2 * parts * kMinProductPart)
    parts *= 2;
  return parts;
}

// The parts of rows, of which each has a block, that fill the GPU; 1: the rows
// do, or parts would be over before a second kernel starts.
// `least_part`: terms.
int64_t PartsOfRows(int64_t rows, int64_t terms,
                    int64_t least_part = kMinRowPart) {
  if (rows >= kEnoughBlocks) return 1;
  int64_t parts = 1;
  while (rows * parts < kBlocksForMemory && terms >= 2 * parts * least_part) {
    parts *= 2;
  }
  return parts;
}

// The elements of a row of a box if the copy engine fetches what matrix units
// of warpgroups multiply, and the last of the reduce loops is along the rows of
// an operand: a part has whole rows. Else 0.
int64_t RowOfParts(const ir::BlockNode& block, const BlockLoops& loops,
                   const target::GpuLimits& limits) {
  const std::optional<ProductFactors> factors = FactorsOf(block);
  if (!limits.warpgroup_products || !factors ||
      ir::FindWarpgroupUnit(factors->a->dtype, factors->store->value->dtype) ==
          nullptr) {
    return 0;
  }
  const int64_t row = ir::kBoxRowBytes / factors->a->dtype.bytes();
  size_t last = loops.size();
  for (size_t i = 0; i < loops.size(); ++i) {
    if (loops[i].sums) last = i;
  }
  if (last == loops.size() || loops[last].extent % row != 0) return 0;
  for (const ir::LoadNode* factor : {factors->a, factors->b}) {
    const auto along = VariableOf(block, factor->indices.back());
    if (along == static_cast<size_t>(loops[last].iters[0])) return row;
  }
  return 0;
}

// The most parts up to `parts` that have equal numbers of whole rows.
int64_t PartsOfWholeRows(int64_t terms, int64_t row, int64_t parts) {
  parts = std::min(parts, terms / row);
  while (parts > 1 && terms / row % parts != 0) --parts;
  return parts;
}

// The reduce loop with the most iterations, by its index in the loops.
std::optional<size_t> LongestSum(const BlockLoops& loops) {
  std::optional<size_t> longest;
  for (size_t i = 0; i < loops.size(); ++i) {
    if (loops[i].sums && (!longest || loops[i].extent > loops[*longest].extent))
      longest = i;
  }
  return longest;
}

// Whether the function has no other reduction, which could be computed row by
// row together with this one.
bool IsOnlyReduction(const ir::PrimFunc& function) {
  int reductions = 0;
  for (const ir::BlockPtr& block : AllBlocks(function)) {
    reductions += IsReduction(*block) ? 1 : 0;
  }
  return reductions == 1;
}

}  // namespace

absl::StatusOr<BlockRv> SplitInParts(Schedule& schedule, BlockRv block,
                                     int64_t parts, bool all_terms) {
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
  const std::optional<size_t> longest = LongestSum(loops);
  std::vector<LoopRv> cut;
  for (size_t i = 0; i < loops.size(); ++i) {
    // Loops of one iteration are left out: their variables would have no loop
    // of their own then, as tiles need.
    if (all_terms ? loops[i].sums && loops[i].extent > 1 : i == longest) {
      cut.push_back(loops.rvs[i]);
    }
  }
  if (cut.empty()) return absl::FailedPreconditionError("no terms to divide");
  if (cut.size() > 1) {
    TF_ASSIGN_OR_RETURN(const LoopRv fused, schedule.Fuse(cut));
    cut = {fused};
  }
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> halves,
                      schedule.Split(cut[0], {parts, std::nullopt}));
  TF_ASSIGN_OR_RETURN(const BlockRv partial,
                      schedule.Rfactor(halves[0], /*factor_axis=*/0));
  TF_ASSIGN_OR_RETURN(const BlockLoops own, ViewLoops(schedule, partial));
  std::vector<LoopRv> order, reduce;
  for (size_t i = 0; i < own.size(); ++i) {
    (own[i].sums ? reduce : order).push_back(own.rvs[i]);
  }
  order.insert(order.end(), reduce.begin(), reduce.end());
  if (order.size() > 1) TF_RETURN_IF_ERROR(schedule.Reorder(order));
  return partial;
}

// An alternative for long reductions with few outputs, which alone would not
// fill the GPU (split-K): the longest reduce loop is cut into parts, whose
// partial results a second kernel combines, or of products the blocks of a
// cluster (cluster_sums.h); or all reduce loops as one, so that the copy engine
// fetches whole rows. Of products, rows and columns with few outputs, it is the
// first alternative.
//
//   for i, k: C[i] += A[i, k]
//   ->  for i, k_0, k_1: C_rf[k_0, i] += A[i, ...]
//       for i, k_0:      C[i] += C_rf[k_0, i]
Alternatives SplitReductionOverBlocks(const RuleContext& context,
                                      RuleSite site) {
  auto& [unchanged, schedule, block, node] = site;
  const int64_t terms = ProductOf(*node, ir::IterType::kReduce);
  const int64_t outputs = ProductOf(*node, ir::IterType::kSpatial);
  const bool vector = IsMatrixVector(*node);
  const bool product = HasDataReuse(*node) && !vector;
  if (!IsReduction(*node) || !HasTrivialBindings(*node) ||
      terms < (product || vector ? kMinSplitProduct : kMinSplitReduction) ||
      (!product && outputs >= kManyOutputs)) {
    return DoesNotApply();
  }
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
  const std::optional<size_t> longest = LongestSum(loops);
  if (!longest) return DoesNotApply();
  // A product's other loops have terms, too.
  const int64_t most =
      product ? loops[*longest].extent : loops[*longest].extent / kMinPart;
  int64_t first = 1;
  if (product) {
    first = PartsOfProduct(outputs, terms);
  } else if (IsOnlyReduction(*schedule.module().Find(context.function))) {
    const ir::BufferRegion* const operand = LargestRead(*node);
    const int64_t sector =
        operand == nullptr || ReadsRows(*node)
            ? 1
            : kSectorBytes / std::max(operand->buffer->dtype.bytes(), 1);
    first = PartsOfRows(CeilDiv(outputs, sector), terms,
                        sector == 1 ? kMinRowPart : kMinColumnPart);
  }
  while (first > most) first /= 2;
  const int64_t row =
      product ? RowOfParts(*node, loops, *context.target.gpu) : 0;
  struct Way {
    int64_t parts = 1;
    bool cluster = false;
  };
  std::vector<Way> ways{{first}, {1}};
  if (terms >= kMinSplitReduction) {
    for (const int64_t parts : kParts) ways.push_back({parts});
  }
  // Without a second kernel, where a cluster has blocks for all parts, or
  // larger ones are over before that starts.
  const int64_t most_blocks = context.target.gpu->cluster_blocks;
  if (product && most_blocks > 1) {
    const bool is_first =
        first <= most_blocks || terms <= most_blocks * kMostClusterPart;
    ways.insert(is_first ? ways.begin() : ways.begin() + 1,
                {std::clamp<int64_t>(first, 1, most_blocks), true});
    for (int64_t parts = most_blocks; parts > 1; parts /= 2) {
      ways.push_back({parts, true});
    }
  }
  std::vector<Schedule> results;
  std::set<std::pair<int64_t, bool>> tried;
  for (Way way : ways) {
    if (way.parts > std::max<int64_t>(most, 1)) continue;
    if (row > 0) way.parts = PartsOfWholeRows(terms, row, way.parts);
    if (way.cluster && way.parts == 1) continue;
    if (!tried.insert({way.parts, way.cluster}).second) continue;
    if (way.parts == 1) {
      results.push_back(unchanged);
      continue;
    }
    Schedule attempt = schedule;
    const absl::Status split =
        way.cluster ? attempt.Annotate(
                          block, kClusterSplit,
                          ir::Attr(ir::AttrList{ir::Attr(way.parts),
                                                ir::Attr(int64_t{row > 0})}))
                    : SplitInParts(attempt, block, way.parts, row > 0).status();
    if (split.ok()) results.push_back(std::move(attempt));
  }
  return results;
}

}  // namespace tilefarm::space
