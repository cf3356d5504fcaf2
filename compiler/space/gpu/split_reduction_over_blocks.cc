#include <algorithm>
#include <compare>
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
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/gpu/products.h"
#include "compiler/space/postprocs.h"

namespace tilefarm::space {
namespace {

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
// Terms of a part of a row: 16 for each of 256 threads.
constexpr int64_t kMinRowPart = 4096;
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
int64_t PartsOfRows(int64_t rows, int64_t terms) {
  if (rows >= kEnoughBlocks) return 1;
  int64_t parts = 1;
  while (rows * parts < kBlocksForMemory && terms >= 2 * parts * kMinRowPart) {
    parts *= 2;
  }
  return parts;
}

// The loop that is cut, and in how many parts.
struct Cut {
  size_t loop = 0;
  int64_t parts = 1;
  auto operator<=>(const Cut&) const = default;
};

// The elements of a row of a box, which parts of the loop are whole numbers of:
// if the copy engine fetches what matrix units of warpgroups multiply, and the
// loop is along the rows of an operand. Else 1.
int64_t RowOfParts(const ir::BlockNode& block, const BlockLoops& loops,
                   size_t loop, const target::GpuLimits& limits) {
  const std::optional<ProductFactors> factors = FactorsOf(block);
  if (!limits.warpgroup_products || !factors ||
      ir::FindWarpgroupUnit(factors->a->dtype, factors->store->value->dtype) ==
          nullptr) {
    return 1;
  }
  const int64_t row = ir::kBoxRowBytes / factors->a->dtype.bytes();
  for (const ir::LoadNode* factor : {factors->a, factors->b}) {
    const auto last = VariableOf(block, factor->indices.back());
    if (last == static_cast<size_t>(loops[loop].iters[0]) &&
        loops[loop].extent % row == 0) {
      return row;
    }
  }
  return 1;
}

// So many parts of the longest loop; or as many as leave whole rows, of it or
// of another loop.
Cut CutOf(const BlockLoops& loops, size_t longest, int64_t parts, int64_t row) {
  if (row == 1) return {longest, parts};
  Cut best{longest, 1};
  for (size_t i = 0; i < loops.size(); ++i) {
    if (!loops[i].sums) continue;
    const int64_t units = loops[i].extent / (i == longest ? row : 1);
    for (int64_t p = std::min(parts, units); p > best.parts; --p) {
      if (units % p == 0) best = {i, p};
    }
  }
  return best;
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

// An alternative for long reductions with few outputs, which alone would not
// fill the GPU (split-K): the longest reduce loop is cut into parts, whose
// partial results a second kernel combines. Of products and of rows with few
// outputs, it is the first alternative.
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
  std::optional<size_t> longest;
  for (size_t i = 0; i < loops.size(); ++i) {
    if (loops[i].sums && (!longest || loops[i].extent > loops[*longest].extent))
      longest = i;
  }
  if (!longest) return DoesNotApply();
  // A product's other loops have terms, too.
  const int64_t most =
      product ? loops[*longest].extent : loops[*longest].extent / kMinPart;
  int64_t first = 1;
  if (product) {
    first = PartsOfProduct(outputs, terms);
  } else if (!vector && ReadsRows(*node) &&
             IsOnlyReduction(*schedule.module().Find(context.function))) {
    first = PartsOfRows(outputs, terms);
  }
  // A thread for each column of a matrix, whose rows are read side by side.
  if (vector && !ReadsRows(*node)) {
    while (outputs * first < kManyOutputs && first < most) first *= 2;
  }
  while (first > most) first /= 2;
  std::vector<int64_t> ways{first, 1};
  if (terms >= kMinSplitReduction) {
    ways.insert(ways.end(), std::begin(kParts), std::end(kParts));
  }
  const int64_t row =
      product ? RowOfParts(*node, loops, *longest, *context.target.gpu) : 1;
  std::vector<Schedule> results;
  std::set<Cut> tried;
  for (const int64_t parts : ways) {
    if (parts > std::max<int64_t>(most, 1)) continue;
    const Cut cut = CutOf(loops, *longest, parts, row);
    if (!tried.insert(cut).second) continue;
    if (cut.parts == 1) {
      results.push_back(unchanged);
      continue;
    }
    Schedule attempt = schedule;
    const auto halves =
        attempt.Split(loops.rvs[cut.loop], {cut.parts, std::nullopt});
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
