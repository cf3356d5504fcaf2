#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/gpu/row_chain.h"
#include "compiler/space/gpu/warp_tiles.h"
#include "compiler/space/postprocs.h"

namespace tilefarm::space {
namespace {

using schedule::BlockRv;
using schedule::ExprRv;
using schedule::LoopRv;
using schedule::Schedule;

constexpr int64_t kMostRowWarps = 4, kMostColumnWarps = 8;
constexpr int64_t kMostStages = 3;
// The default: 8 warps, two blocks of which fit a multiprocessor.
constexpr int64_t kDefaultTileRows = 2, kDefaultRowWarps = 2,
                  kDefaultColumnWarps = 4, kDefaultTileColumns = 4,
                  kDefaultSteps = 2, kDefaultStages = 2;
// What all products of a chain share.
struct ChainTile {
  ExprRv row_warps, rows, column_warps;
  int64_t most_column_warps = 1;  // of which any divide the inner products
};

// The loops of a product by level.
struct ProductLoops {
  std::vector<LoopRv> outer, i, j, k;
};

absl::StatusOr<BoundWarps> Bind(Schedule& schedule, const ProductLoops& loops,
                                const ir::WarpProduct& unit,
                                std::optional<BlockRv> block) {
  const auto& [outer, i, j, k] = loops;
  WarpLoops warps{.outer = outer,
                  .row_warps = i[1],
                  .column_warps = j[1],
                  .row_tile = i[2],
                  .column_tile = j[2],
                  .row_lanes = i[3],
                  .column_lanes = j[3],
                  .terms = k,
                  .pair = j[4]};
  warps.outer.insert(warps.outer.end(), {i[0], j[0]});
  return BindWarps(schedule, warps, unit, block, kMostStages, kDefaultStages);
}

absl::StatusOr<std::vector<LoopRv>> SplitTerms(Schedule& schedule, LoopRv loop,
                                               int64_t extent,
                                               const ir::WarpProduct& unit) {
  TF_ASSIGN_OR_RETURN(
      const ExprRv steps,
      SamplePower(schedule, 1, PowerOf(extent / unit.terms, kMostSteps),
                  kDefaultSteps));
  return schedule.Split(
      loop, {std::nullopt, steps, static_cast<int64_t>(unit.terms)});
}

// The shared memory of a block of the default tiles, of so many warps by rows:
// scores, and in stages what is fetched for either product.
int64_t DefaultShared(const ir::BlockNode& node, const WarpProductSite& product,
                      int64_t row_warps, int64_t column_warps) {
  const int64_t bytes = product.unit->a.bytes();
  const int64_t rows = kUnitRows * kDefaultTileRows * row_warps;
  const int64_t columns = kUnitColumns * kDefaultTileColumns * column_warps;
  const int64_t terms = IterExtent(node.iters[product.terms]);
  const int64_t row = kDefaultSteps * kStepBytes + kVectorBytes;
  const int64_t values =
      kDefaultSteps * product.unit->terms *
      (IterExtent(node.iters[product.columns]) * bytes + kVectorBytes);
  return rows * terms * 4 +
         kDefaultStages * ((rows + columns) * row + rows * row + values);
}

// Tiles the last product: blocks have some rows and all columns, so that
// nothing of the chain is computed twice. Returns the loop of blocks.
absl::StatusOr<LoopRv> TileLastProduct(const target::GpuLimits& limits,
                                       Schedule& schedule, BlockRv block,
                                       const WarpProductSite& product,
                                       ChainTile& tile) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  TF_ASSIGN_OR_RETURN(const BlockLoops views, ViewLoops(schedule, block));
  const int64_t m = IterExtent(node->iters[product.rows]);
  const int64_t n = IterExtent(node->iters[product.columns]);
  const int64_t terms = IterExtent(node->iters[product.terms]);
  if (!TilesDivide(*node, product)) {
    return absl::FailedPreconditionError("no tiles divide it");
  }
  // The scores of a tile's rows, as float32.
  const int64_t room = limits.block_shared * kRowsShare / 8;
  int64_t row_warps = PowerOf(m / (2 * kUnitRows), kMostRowWarps);
  int64_t rows = PowerOf(m / kUnitRows / row_warps, kMostTileRows);
  while (kUnitRows * rows * row_warps * terms * 4 > room) {
    if (row_warps > 1 && 2 * row_warps >= rows) {
      row_warps /= 2;
    } else if (rows > 2) {
      rows /= 2;
    } else if (row_warps > 1) {
      row_warps /= 2;
    } else {
      return absl::FailedPreconditionError("rows exceed shared memory");
    }
  }
  tile.most_column_warps = PowerOf(n / kUnitColumns, kMostColumnWarps);
  while (terms % (kUnitColumns * tile.most_column_warps) != 0) {
    tile.most_column_warps /= 2;
  }
  int64_t first_row_warps = std::min(kDefaultRowWarps, row_warps);
  while (first_row_warps > 1 &&
         DefaultShared(*node, product, first_row_warps,
                       std::min(kDefaultColumnWarps, tile.most_column_warps)) >
             limits.block_shared) {
    first_row_warps /= 2;
  }
  TF_ASSIGN_OR_RETURN(tile.row_warps,
                      SamplePower(schedule, 1, row_warps, first_row_warps));
  TF_ASSIGN_OR_RETURN(tile.rows,
                      SamplePower(schedule, 2, rows, kDefaultTileRows));
  TF_ASSIGN_OR_RETURN(
      tile.column_warps,
      SamplePower(schedule, 1, tile.most_column_warps, kDefaultColumnWarps));
  ProductLoops loops;
  for (size_t l = 0; l < views.size(); ++l) {
    const size_t iter = static_cast<size_t>(views[l].iters[0]);
    if (iter == product.rows) {
      TF_ASSIGN_OR_RETURN(
          loops.i, schedule.Split(views.rvs[l], {std::nullopt, tile.row_warps,
                                                 tile.rows, kUnitRows}));
    } else if (iter == product.columns) {
      TF_ASSIGN_OR_RETURN(
          loops.j, schedule.Split(views.rvs[l],
                                  {int64_t{1}, tile.column_warps, std::nullopt,
                                   kUnitColumns / 2, int64_t{2}}));
    } else if (iter == product.terms) {
      TF_ASSIGN_OR_RETURN(
          loops.k, SplitTerms(schedule, views.rvs[l], terms, *product.unit));
    } else {
      loops.outer.push_back(views.rvs[l]);
    }
  }
  // Before the loops change: the elementwise block to fuse.
  TF_ASSIGN_OR_RETURN(std::optional<BlockRv> writer,
                      FusibleConsumer(schedule, block));
  TF_ASSIGN_OR_RETURN(const BoundWarps bound,
                      Bind(schedule, loops, *product.unit, block));
  if (writer) {
    TF_RETURN_IF_ERROR(schedule.SetScope(block, 0, "local"));
  } else {
    TF_ASSIGN_OR_RETURN(writer, schedule.CacheWrite(block, 0, "local"));
  }
  TF_RETURN_IF_ERROR(schedule.ReverseComputeAt(*writer, bound.lanes,
                                               /*preserve_unit_loops=*/true));
  TF_RETURN_IF_ERROR(FetchOperands(schedule, block, product, bound.fetches));
  return bound.blocks;
}

// Tiles a product below the loop of blocks, by the same rows.
absl::Status TileInnerProduct(Schedule& schedule, BlockRv block,
                              const WarpProductSite& product,
                              const ChainTile& tile,
                              std::optional<BlockRv> writer) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  TF_RETURN_IF_ERROR(
      schedule.Annotate(block, kTilingStructure, ir::Attr(kWarpTiles)));
  TF_ASSIGN_OR_RETURN(const BlockLoops views, ViewLoops(schedule, block));
  const int64_t n = IterExtent(node->iters[product.columns]);
  const int64_t terms = IterExtent(node->iters[product.terms]);
  if (n % (kUnitColumns * tile.most_column_warps) != 0 ||
      terms % product.unit->terms != 0) {
    return absl::FailedPreconditionError("no tiles divide it");
  }
  TF_ASSIGN_OR_RETURN(
      const ExprRv columns,
      SamplePower(
          schedule, 1,
          PowerOf(n / kUnitColumns / tile.most_column_warps, kMostTileColumns),
          kDefaultTileColumns));
  ProductLoops loops;
  for (size_t l = 1; l < views.size(); ++l) {
    const auto has = [&](size_t iter) {
      return absl::c_linear_search(views[l].iters, static_cast<int>(iter));
    };
    if (has(product.rows) && views[l].extent > 1) {
      TF_ASSIGN_OR_RETURN(
          loops.i, schedule.Split(views.rvs[l], {std::nullopt, tile.row_warps,
                                                 tile.rows, kUnitRows}));
    } else if (has(product.columns)) {
      TF_ASSIGN_OR_RETURN(
          loops.j, schedule.Split(views.rvs[l],
                                  {std::nullopt, tile.column_warps, columns,
                                   kUnitColumns / 2, int64_t{2}}));
    } else if (has(product.terms)) {
      TF_ASSIGN_OR_RETURN(
          loops.k, SplitTerms(schedule, views.rvs[l], terms, *product.unit));
    } else {
      loops.outer.push_back(views.rvs[l]);
    }
  }
  if (loops.i.empty() || loops.j.empty() || loops.k.empty()) {
    return absl::FailedPreconditionError("a loop is missing");
  }
  TF_ASSIGN_OR_RETURN(const BoundWarps bound,
                      Bind(schedule, loops, *product.unit, std::nullopt));
  // Lanes of a warp store 8 rows of 8 columns: rows lie 8 banks apart.
  TF_RETURN_IF_ERROR(
      StoreShared(schedule, block, writer, bound.lanes, /*banks_apart=*/8));
  return FetchOperands(schedule, block, product, bound.fetches);
}

class WarpChain : public ChainTiles {
 public:
  explicit WarpChain(const target::GpuLimits& limits) : limits_(limits) {}

  bool IsProduct(const ir::BlockNode& block) const override {
    return FindWarpProduct(block, limits_).has_value();
  }
  absl::StatusOr<LoopRv> TileLast(Schedule& schedule, BlockRv block) override {
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
    TF_RETURN_IF_ERROR(
        schedule.Annotate(block, kTilingStructure, ir::Attr(kWarpTiles)));
    return TileLastProduct(limits_, schedule, block,
                           *FindWarpProduct(*node, limits_), tile_);
  }
  absl::Status TileInner(Schedule& schedule, BlockRv block,
                         std::optional<BlockRv> writer) override {
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
    return TileInnerProduct(schedule, block, *FindWarpProduct(*node, limits_),
                            tile_, writer);
  }
  std::vector<ExprRv> Warps() const override {
    return {tile_.row_warps, tile_.column_warps};
  }

 private:
  const target::GpuLimits& limits_;
  ChainTile tile_;
};

// So that tiles divide both products.
absl::Status PadForWarps(const RuleContext& context, Schedule& schedule,
                         BlockRv block, const WarpProductSite& product) {
  TF_RETURN_IF_ERROR(InlineExponents(schedule, block, context.function));
  return PadChain(
      schedule, block, product,
      {.rows = {2 * kUnitRows, 4 * kUnitRows},
       .terms = {product.unit->terms, kUnitColumns * kMostColumnWarps},
       .depth = product.unit->terms});
}

}  // namespace

// A product whose operand a chain of blocks makes row by row from another
// product, such as attention: one kernel. A block of threads has some rows, all
// of whose scores are in shared memory.
//
//   S = Q K'; M = max(S); D = sum(exp(S - M)); O = (exp(S - M) / D) V
//   ->  for blockIdx.x:                                  (tiles of rows)
//         for threads: S_local += Q_shared * K_shared    (tensor cores)
//           S_shared = S_local
//         for threads: M_shared, D_shared                (a warp for a row)
//         for k_0:
//           P_shared = exp(S_shared - M_shared) / D_shared
//           for threads: O_local += P_shared * V_shared  (tensor cores)
//
// The first alternative unless the unit rounds operands.
Alternatives ChainForWarps(const RuleContext& context, RuleSite site) {
  const std::optional<WarpProductSite> product =
      FindWarpProduct(*site.node, *context.target.gpu);
  if (!product) return DoesNotApply();
  TF_ASSIGN_OR_RETURN(const bool plain, HasPlainLoops(site));
  if (!plain) return DoesNotApply();
  WarpChain chain(*context.target.gpu);
  if (!TilesDivide(*site.node, *product)) {
    const absl::Status padded =
        PadForWarps(context, site.schedule, site.block, *product);
    if (!padded.ok()) return DoesNotApply();
  }
  if (!ChainRows(context, site.schedule, site.block, chain).ok()) {
    return DoesNotApply();
  }
  std::vector<Schedule> results{std::move(site.schedule)};
  results.insert(product->unit->split ? results.begin() : results.end(),
                 std::move(site.unchanged));
  return results;
}

}  // namespace tilefarm::space
