#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/matrix_units.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/cluster_sums.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/gpu/products.h"
#include "compiler/space/gpu/warp_tiles.h"
#include "compiler/space/postprocs.h"

namespace tilefarm::space {
namespace {

using schedule::BlockRv;
using schedule::ExprRv;
using schedule::LoopRv;
using schedule::Schedule;

// The largest tiles of a block are what CUTLASS uses for large products.
constexpr int64_t kMostRowWarps = 2, kMostColumnWarps = 4;
constexpr int64_t kMostStages = 4, kMostGroup = 8;
// The most iterations with zeros over those without.
constexpr double kMostTilePadding = 1.125;  // of one variable, for larger tiles

// The most steps of a fetch that is a whole part of windows (IsWhole).
constexpr int64_t kMostWholeSteps = 12;

// What may be drawn. All combinations divide the loops and fit the target.
struct Choices {
  int64_t rows = 0, row_warps = 0, columns = 0, column_warps = 0, steps = 0,
          stages = 0, group = 0;  // the largest; the others are smaller powers
  bool whole = false;             // the steps are a whole part, no power
};

// The fewest steps, more than what powers offer, whose terms are a whole part.
std::optional<int64_t> WholeSteps(const ir::BlockNode& block,
                                  const WarpProductSite& product,
                                  const std::vector<int64_t>& periods) {
  const int64_t terms = product.unit->terms;
  const int64_t all = IterExtent(block.iters[product.terms]) / terms;
  for (int64_t steps = 1; steps <= kMostWholeSteps; ++steps) {
    if (all % steps != 0 || !IsWhole(steps * terms, periods)) continue;
    return steps == PowerOf(steps, kMostSteps) ? std::nullopt
                                               : std::optional(steps);
  }
  return std::nullopt;
}

// `whole_steps`: the only number of steps; nullopt: powers.
std::optional<Choices> ChoicesOf(const ir::BlockNode& block,
                                 const WarpProductSite& product,
                                 const target::GpuLimits& limits,
                                 std::optional<int64_t> whole_steps) {
  const int64_t m = IterExtent(block.iters[product.rows]);
  const int64_t n = IterExtent(block.iters[product.columns]);
  const int64_t k = IterExtent(block.iters[product.terms]);
  if (!TilesDivide(block, product)) return std::nullopt;
  Choices most;
  most.rows = PowerOf(m / kUnitRows, kMostTileRows);
  most.row_warps = PowerOf(m / kUnitRows / most.rows, kMostRowWarps);
  most.group = PowerOf(m / kUnitRows / most.rows / most.row_warps, kMostGroup);
  most.columns = PowerOf(n / kUnitColumns, kMostTileColumns);
  most.column_warps =
      PowerOf(n / kUnitColumns / most.columns, kMostColumnWarps);
  most.steps =
      whole_steps.value_or(PowerOf(k / product.unit->terms, kMostSteps));
  most.whole = whole_steps.has_value();
  most.stages = kMostStages;
  // A row of either operand has the bytes of its steps and 16 more, or lies
  // across the terms and has up to 32 more.
  const auto bytes = [&] {
    const int64_t elements = kUnitRows * most.rows * most.row_warps +
                             kUnitColumns * most.columns * most.column_warps;
    const int64_t terms = most.steps * product.unit->terms;
    const int64_t results = SumsInCluster(block)
                                ? block.writes[0].buffer->dtype.bytes() *
                                      kUnitRows * most.rows * most.row_warps *
                                      kUnitColumns * most.columns *
                                      most.column_warps
                                : 0;
    return results +
           most.stages *
               std::max(elements * (most.steps * kStepBytes + 16),
                        elements * most.steps * kStepBytes + 2 * terms * 32);
  };
  while (bytes() > limits.block_shared) {
    if (most.stages > 2) {
      --most.stages;
    } else if (most.whole && most.column_warps > 1) {
      most.column_warps /= 2;
    } else if (most.whole && most.columns > 2) {
      most.columns /= 2;
    } else if (most.whole && most.rows > 2) {
      most.rows /= 2;
    } else if (!most.whole && most.steps > 1) {
      most.steps /= 2;
    } else if (most.stages > 1) {
      --most.stages;
    } else {
      return std::nullopt;
    }
  }
  return most;
}

// The first choice: the largest tiles of 128 x 128 and less that leave enough
// blocks.
Choices DefaultOf(const Choices& most, int64_t m, int64_t n) {
  Choices out = most;
  out.group = std::min<int64_t>(most.group, 8);
  if (!out.whole) out.steps = std::min<int64_t>(most.steps, 2);
  out.columns = std::min<int64_t>(most.columns, 8);
  const auto blocks = [&] {
    return m / (kUnitRows * out.rows * out.row_warps) *
           (n / (kUnitColumns * out.columns * out.column_warps));
  };
  while (blocks() < kEnoughBlocks) {
    // Square tiles fetch the fewest elements for each product.
    const bool high =
        out.rows * out.row_warps >= out.columns * out.column_warps;
    if (out.column_warps > 2) {
      out.column_warps /= 2;
    } else if (out.rows > 2 && (high || out.columns == 2)) {
      out.rows /= 2;
    } else if (out.columns > 2) {
      out.columns /= 2;
    } else {
      break;
    }
  }
  return out;
}

// Sizes that no good tiles divide are rounded up, by zeros; `copy`: the block
// that copies the result back, if there is one before or needs to be one.
// FailedPrecondition if most of it were zeros.
absl::Status Pad(Schedule& schedule, BlockRv block,
                 const WarpProductSite& product, std::optional<BlockRv>* copy) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  std::vector<int64_t> padding(node->iters.size(), 1);
  padding[product.rows] =
      PaddingOf(IterExtent(node->iters[product.rows]), 2 * kUnitRows,
                kUnitRows * kMostTileRows, kMostTilePadding);
  padding[product.columns] =
      PaddingOf(IterExtent(node->iters[product.columns]), kUnitColumns,
                kUnitColumns * kMostTileColumns, kMostTilePadding);
  padding[product.terms] =
      PaddingOf(IterExtent(node->iters[product.terms]), product.unit->terms,
                product.unit->terms * kMostSteps, kMostTilePadding);
  double more = 1;
  bool results_grow = false;
  for (size_t i = 0; i < padding.size(); ++i) {
    const int64_t extent = IterExtent(node->iters[i]);
    const int64_t whole = RoundUpBy(extent, padding[i]);
    more *= static_cast<double>(whole) / static_cast<double>(extent);
    results_grow |= i != product.terms && whole > extent;
  }
  if (more == 1) return absl::OkStatus();
  if (more > kMostPadding) {
    return absl::FailedPreconditionError("most of its tiles would be zeros");
  }
  TF_RETURN_IF_ERROR(schedule.PadEinsum(block, std::move(padding)));
  if (!results_grow) return absl::OkStatus();
  TF_ASSIGN_OR_RETURN(const std::vector<BlockRv> consumers,
                      schedule.GetConsumers(block));
  if (consumers.size() != 1) {
    return absl::FailedPreconditionError("no single copy of the result");
  }
  if (*copy) return schedule.ComputeInline(consumers[0]);
  *copy = consumers[0];
  return absl::OkStatus();
}

absl::StatusOr<BoundWarps> TileLoops(Schedule& schedule, BlockRv block,
                                     const WarpProductSite& product,
                                     const Choices& most) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
  const Choices first = DefaultOf(most, IterExtent(node->iters[product.rows]),
                                  IterExtent(node->iters[product.columns]));
  const auto sample = [&](int64_t least, int64_t largest, int64_t choice) {
    return SamplePower(schedule, least, largest, choice);
  };
  TF_ASSIGN_OR_RETURN(const ExprRv group, sample(1, most.group, first.group));
  TF_ASSIGN_OR_RETURN(const ExprRv row_warps,
                      sample(1, most.row_warps, first.row_warps));
  TF_ASSIGN_OR_RETURN(const ExprRv rows, sample(2, most.rows, first.rows));
  TF_ASSIGN_OR_RETURN(const ExprRv column_warps,
                      sample(1, most.column_warps, first.column_warps));
  TF_ASSIGN_OR_RETURN(const ExprRv columns,
                      sample(2, most.columns, first.columns));
  TF_ASSIGN_OR_RETURN(const ExprRv steps, sample(most.whole ? most.steps : 1,
                                                 most.steps, first.steps));
  std::vector<LoopRv> i, j, k, outer;
  for (size_t l = 0; l < loops.size(); ++l) {
    const size_t iter = static_cast<size_t>(loops[l].iters[0]);
    if (iter == product.rows) {
      TF_ASSIGN_OR_RETURN(
          i, schedule.Split(loops.rvs[l],
                            {std::nullopt, group, row_warps, rows, kUnitRows}));
    } else if (iter == product.columns) {
      TF_ASSIGN_OR_RETURN(
          j, schedule.Split(loops.rvs[l], {std::nullopt, column_warps, columns,
                                           kUnitColumns / 2, int64_t{2}}));
    } else if (iter == product.terms) {
      TF_ASSIGN_OR_RETURN(
          k, schedule.Split(loops.rvs[l],
                            {std::nullopt, steps,
                             static_cast<int64_t>(product.unit->terms)}));
    } else {
      outer.push_back(loops.rvs[l]);
    }
  }
  // Blocks that run at the same time share rows and columns.
  outer.insert(outer.end(), {i[0], j[0], i[1]});
  return BindWarps(schedule,
                   {.outer = outer,
                    .row_warps = i[2],
                    .column_warps = j[1],
                    .row_tile = i[3],
                    .column_tile = j[2],
                    .row_lanes = i[4],
                    .column_lanes = j[3],
                    .terms = k,
                    .pair = j[4]},
                   *product.unit, block, most.stages, most.stages);
}

// `whole`: each fetch is a whole part of windows. NotFound: there are none.
absl::Status Tile(const RuleContext& context, Schedule& schedule, BlockRv block,
                  bool fuse, bool whole) {
  const BlockRv sums = block;
  TF_ASSIGN_OR_RETURN(const std::optional<BlockRv> partial,
                      SplitForCluster(schedule, sums));
  if (partial) block = *partial;
  std::optional<BlockRv> copy, result;  // of the block, of what is added up
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, schedule.Get(block));
  std::optional<WarpProductSite> product =
      FindWarpProduct(*node, *context.target.gpu);
  if (!product) {
    TF_ASSIGN_OR_RETURN(
        copy, FlattenProduct(schedule, block, fuse,
                             partial ? std::optional(sums) : std::nullopt));
    fuse = false;  // the copy does
    if (partial) result = std::exchange(copy, std::nullopt);
    TF_ASSIGN_OR_RETURN(node, schedule.Get(block));
    product = FindWarpProduct(*node, *context.target.gpu);
    if (!product) return absl::FailedPreconditionError("no matrix product");
  }
  TF_ASSIGN_OR_RETURN(const std::vector<int64_t> periods,
                      PeriodsOf(schedule, block, product->terms));
  TF_RETURN_IF_ERROR(Pad(schedule, block, *product, &copy));
  TF_ASSIGN_OR_RETURN(node, schedule.Get(block));
  product = FindWarpProduct(*node, *context.target.gpu);
  if (!product) return absl::FailedPreconditionError("no matrix product");
  std::optional<int64_t> whole_steps;
  if (whole) {
    whole_steps = WholeSteps(*node, *product, periods);
    if (!whole_steps) return absl::NotFoundError("no whole parts");
  }
  const std::optional<Choices> most =
      ChoicesOf(*node, *product, *context.target.gpu, whole_steps);
  if (!most) return absl::FailedPreconditionError("no tiles divide it");
  // Before the loops change: the elementwise block to fuse.
  BlockRv writer;
  if (fuse) {
    TF_ASSIGN_OR_RETURN(const std::optional<BlockRv> consumer,
                        FusibleConsumer(schedule, copy.value_or(block)));
    if (!consumer) return absl::FailedPreconditionError("no consumer to fuse");
    writer = *consumer;
    if (copy) TF_RETURN_IF_ERROR(schedule.ComputeInline(*copy));
  }
  TF_RETURN_IF_ERROR(
      schedule.Annotate(block, kTilingStructure, ir::Attr(kWarpTiles)));
  TF_ASSIGN_OR_RETURN(const BoundWarps loops,
                      TileLoops(schedule, block, *product, *most));
  if (fuse || copy) {
    if (!fuse) writer = *copy;
    TF_RETURN_IF_ERROR(schedule.SetScope(block, 0, "local"));
  } else {
    TF_ASSIGN_OR_RETURN(writer, schedule.CacheWrite(block, 0, "local"));
  }
  TF_RETURN_IF_ERROR(schedule.ReverseComputeAt(writer, loops.lanes,
                                               /*preserve_unit_loops=*/true));
  TF_RETURN_IF_ERROR(FetchOperands(schedule, block, *product, loops.fetches));
  return partial ? SumInCluster(schedule, block, writer, loops.blocks, result)
                 : absl::OkStatus();
}

}  // namespace

// Tiles a matrix product for tensor cores (ir::kWarpMatrix), padded to
// multiples of a unit's sizes; convolutions and the like as products
// (products.h):
//
//   for blockIdx.x:                          (groups of rows, columns, rows)
//     for threadIdx.y:                       (warps)
//       for threadIdx.x:                     (lanes: 8 rows, 4 pairs of
//       columns)
//         for k_0:
//           A_shared, B_shared = A, B        (fetched by all threads together)
//           for k_1, k_2, j_4, and rows and columns of the warp's tile:
//             C_local += A_shared * B_shared
//         C = C_local                        (or a fused elementwise consumer)
//
// Windows are fetched by powers of two, or by whole parts; these need fewer
// instructions, and more registers where nothing is asynchronous. The block as
// it is remains an alternative, the first one if the unit rounds operands.
Alternatives TileForWarpMatrices(const RuleContext& context, RuleSite site) {
  const std::optional<ProductFactors> factors = FactorsOf(*site.node);
  const ir::WarpProduct* unit =
      factors ? WarpUnitFor(*factors, *context.target.gpu) : nullptr;
  if (unit == nullptr) return DoesNotApply();
  TF_ASSIGN_OR_RETURN(const bool plain, HasPlainLoops(site));
  if (!plain) return DoesNotApply();
  std::vector<Schedule> results;
  for (const bool whole : {false, true}) {
    for (const bool fuse : {true, false}) {
      Schedule attempt = site.schedule;
      const absl::Status made = Tile(context, attempt, site.block, fuse, whole);
      if (made.ok()) results.push_back(std::move(attempt));
      if (made.ok() || absl::IsNotFound(made)) break;
    }
  }
  if (results.empty()) return DoesNotApply();
  results.insert(unit->split ? results.begin() : results.end(),
                 std::move(site.unchanged));
  return results;
}

}  // namespace tilefarm::space
