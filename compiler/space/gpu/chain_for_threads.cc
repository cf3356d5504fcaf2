#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/gpu/products.h"
#include "compiler/space/gpu/row_chain.h"
#include "compiler/space/gpu/thread_tiles.h"
#include "compiler/space/gpu/warp_tiles.h"
#include "compiler/space/postprocs.h"

namespace tilefarm::space {
namespace {

using schedule::BlockRv;
using schedule::ExprRv;
using schedule::LoopRv;
using schedule::Schedule;

// The lanes of a warp: so many rows of others. Four threads then read the same
// element of the second operand, and the others the same of the first.
constexpr int64_t kChainRowLanes = 4;
constexpr int64_t kMostThreadRowWarps = 4, kMostThreadColumnWarps = 8;
constexpr int64_t kDefaultThreadRowWarps = 2, kDefaultThreadColumnWarps = 4;
// Sums of a thread in rows, and in columns.
constexpr int64_t kMostThreadRows = 8, kMostThreadColumns = 8;
constexpr int64_t kDefaultThreadColumns = 4;
constexpr int64_t kMostChainTerms = 32, kDefaultChainTerms = 16;
constexpr int64_t kMostFetchStages = 3, kDefaultFetchStages = 2;
// Tiles of so many rows reuse operands about as well as those of products.
constexpr int64_t kGoodRows = 32;
// Steps of a fetch, but not fetches: those of all products together would need
// more registers than there are.
constexpr int64_t kChainUnroll = 64;
// Products of fewer cycles of a multiprocessor, each of 128 multiplications,
// take less than what a chain saves: launches, and its results in memory.
constexpr int64_t kFewCycles = 16 << 10;
constexpr int64_t kMultiplications = 128;

int64_t FloorPower(int64_t n) {
  int64_t power = 1;
  while (power * 2 <= n) power *= 2;
  return power;
}

// The largest power of two by which parts of this size are less than twice n.
int64_t LessThanTwice(int64_t n, int64_t part) {
  int64_t power = 1;
  while (part * power * 2 < 2 * n) power *= 2;
  return power;
}

// How many rows of what extents: all but rows, columns and terms are outer.
struct Extents {
  int64_t outer = 1, rows = 1, columns = 1, terms = 1;
};

Extents ExtentsOf(const ir::BlockNode& block, const MatrixProduct& product) {
  Extents extents;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    (i == product.rows      ? extents.rows
     : i == product.columns ? extents.columns
     : i == product.terms   ? extents.terms
                            : extents.outer) *= IterExtent(block.iters[i]);
  }
  return extents;
}

// The loops of a product by level.
struct ThreadLoops {
  std::vector<LoopRv> outer;
  LoopRv row_warps, column_warps, row_lanes, column_lanes, rows, columns;
  LoopRv fetches, steps;
};
struct BoundLoops {
  std::vector<LoopRv> blocks;  // the one loop, if it was bound
  LoopRv lanes;
};

// The terms of a fetch: no more than there are.
absl::Status SplitFetches(Schedule& schedule, LoopRv loop, int64_t extent,
                          ThreadLoops& loops) {
  TF_ASSIGN_OR_RETURN(
      const ExprRv terms,
      SamplePower(schedule, 1, std::min(kMostChainTerms, FloorPower(extent)),
                  kDefaultChainTerms));
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> parts,
                      schedule.Split(loop, {std::nullopt, terms}));
  loops.fetches = parts[0];
  loops.steps = parts[1];
  return absl::OkStatus();
}

absl::StatusOr<BoundLoops> Bind(Schedule& schedule, const ThreadLoops& loops,
                                bool blocks) {
  std::vector<LoopRv> order = loops.outer;
  order.insert(order.end(), {loops.row_warps, loops.column_warps,
                             loops.row_lanes, loops.column_lanes, loops.fetches,
                             loops.steps, loops.rows, loops.columns});
  TF_RETURN_IF_ERROR(schedule.Reorder(order));
  BoundLoops bound;
  if (blocks) {
    TF_ASSIGN_OR_RETURN(bound.blocks,
                        FuseAndBind(schedule, loops.outer, "blockIdx.x"));
  }
  TF_RETURN_IF_ERROR(FuseAndBind(schedule,
                                 {loops.row_warps, loops.column_warps},
                                 "threadIdx.y")
                         .status());
  TF_ASSIGN_OR_RETURN(
      const std::vector<LoopRv> lanes,
      FuseAndBind(schedule, {loops.row_lanes, loops.column_lanes},
                  "threadIdx.x"));
  bound.lanes = lanes[0];
  TF_RETURN_IF_ERROR(SampleStages(schedule, loops.fetches, kMostFetchStages,
                                  kDefaultFetchStages));
  return bound;
}

class ThreadChain : public ChainTiles {
 public:
  explicit ThreadChain(const target::GpuLimits& limits)
      : limits_(limits),
        row_lanes_(std::min<int64_t>(kChainRowLanes, limits.warp_lanes)),
        column_lanes_(limits.warp_lanes / row_lanes_) {}

  bool IsProduct(const ir::BlockNode& block) const override {
    return FindMatrixProduct(block).has_value();
  }
  absl::StatusOr<LoopRv> TileLast(Schedule& schedule, BlockRv block) override;
  absl::Status TileInner(Schedule& schedule, BlockRv block,
                         std::optional<BlockRv> writer) override;
  std::vector<ExprRv> Warps() const override {
    return {row_warps_, column_warps_};
  }
  double Padding() const override { return padding_; }
  // Whether the chain by its default tiles is faster than its blocks apart.
  bool is_good() const { return is_good_; }

 private:
  // Decides the tiles of rows. FailedPrecondition: none fits.
  absl::Status SampleRows(Schedule& schedule, const Extents& extents);
  absl::Status SplitRows(Schedule& schedule, LoopRv loop,
                         ThreadLoops& loops) const;
  absl::Status Fetch(Schedule& schedule, BlockRv block, LoopRv at) const;

  const target::GpuLimits& limits_;
  int64_t row_lanes_, column_lanes_;
  ExprRv row_warps_, column_warps_, rows_;
  int64_t most_columns_ = 1;  // of threads
  double padding_ = 1;
  bool is_good_ = false;
};

absl::Status ThreadChain::SampleRows(Schedule& schedule,
                                     const Extents& extents) {
  if (extents.rows < 2 * row_lanes_) {
    return absl::FailedPreconditionError("too few rows for tiles");
  }
  // The scores of a tile's rows, as float32.
  const int64_t room =
      limits_.block_shared * kRowsShare / 8 / (4 * extents.terms) / row_lanes_;
  if (room < 1) {
    return absl::FailedPreconditionError("rows exceed shared memory");
  }
  // Any tiles that are drawn have less than twice the rows and columns.
  const int64_t most_rows =
      std::min(room, LessThanTwice(extents.rows, row_lanes_));
  const int64_t most_warps =
      FloorPower(limits_.block_threads / limits_.warp_lanes);
  const int64_t row_warps =
      std::min({kMostThreadRowWarps, most_warps, FloorPower(most_rows)});
  const int64_t rows =
      std::min(kMostThreadRows, FloorPower(most_rows / row_warps));
  const int64_t column_warps = std::min(
      {kMostThreadColumnWarps, most_warps / row_warps,
       LessThanTwice(std::min(extents.columns, extents.terms), column_lanes_)});
  most_columns_ = column_warps * column_lanes_;
  // As many rows by default as leave blocks for all multiprocessors.
  const int64_t warps = std::min(kDefaultThreadRowWarps, row_warps);
  const auto tile_rows = [&](int64_t n) { return row_lanes_ * warps * n; };
  const auto blocks = [&](int64_t n) {
    return extents.outer * CeilDiv(extents.rows, tile_rows(n));
  };
  int64_t first = rows;
  while (first > 1 && blocks(first) < kEnoughBlocks) first /= 2;
  TF_ASSIGN_OR_RETURN(
      row_warps_, SamplePower(schedule, 1, row_warps, kDefaultThreadRowWarps));
  TF_ASSIGN_OR_RETURN(rows_, SamplePower(schedule, 1, rows, first));
  TF_ASSIGN_OR_RETURN(column_warps_, SamplePower(schedule, 1, column_warps,
                                                 kDefaultThreadColumnWarps));
  const int64_t tile = tile_rows(first);
  padding_ = static_cast<double>(CeilDiv(extents.rows, tile) * tile) /
             static_cast<double>(extents.rows);
  const int64_t cycles = 2 * extents.outer * extents.rows * extents.columns *
                         extents.terms / kEnoughBlocks / kMultiplications;
  is_good_ = tile >= kGoodRows || cycles < kFewCycles;
  return absl::OkStatus();
}

absl::Status ThreadChain::SplitRows(Schedule& schedule, LoopRv loop,
                                    ThreadLoops& loops) const {
  TF_ASSIGN_OR_RETURN(
      const std::vector<LoopRv> parts,
      schedule.Split(loop, {std::nullopt, row_warps_, row_lanes_, rows_}));
  loops.outer.push_back(parts[0]);
  loops.row_warps = parts[1];
  loops.row_lanes = parts[2];
  loops.rows = parts[3];
  return absl::OkStatus();
}

absl::Status ThreadChain::Fetch(Schedule& schedule, BlockRv block,
                                LoopRv at) const {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  const std::optional<MatrixProduct> product = FindMatrixProduct(*node);
  if (!product) return absl::FailedPreconditionError("no product of matrices");
  for (const int operand : {product->a, product->b}) {
    TF_RETURN_IF_ERROR(FetchForThreads(schedule, block, operand, {.at = at}));
  }
  return absl::OkStatus();
}

absl::StatusOr<LoopRv> ThreadChain::TileLast(Schedule& schedule,
                                             BlockRv block) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  const MatrixProduct product = *FindMatrixProduct(*node);
  const Extents extents = ExtentsOf(*node, product);
  TF_RETURN_IF_ERROR(
      schedule.Annotate(block, kTilingStructure, ir::Attr(kWarpTiles)));
  TF_RETURN_IF_ERROR(SampleRows(schedule, extents));
  TF_ASSIGN_OR_RETURN(const BlockLoops views, ViewLoops(schedule, block));
  ThreadLoops loops;
  for (size_t l = 0; l < views.size(); ++l) {
    const size_t iter = static_cast<size_t>(views[l].iters[0]);
    if (iter == product.rows) {
      TF_RETURN_IF_ERROR(SplitRows(schedule, views.rvs[l], loops));
    } else if (iter == product.columns) {
      TF_ASSIGN_OR_RETURN(
          const std::vector<LoopRv> parts,
          schedule.Split(views.rvs[l],
                         {column_warps_, column_lanes_, std::nullopt}));
      loops.column_warps = parts[0];
      loops.column_lanes = parts[1];
      loops.columns = parts[2];
    } else if (iter == product.terms) {
      TF_RETURN_IF_ERROR(
          SplitFetches(schedule, views.rvs[l], views[l].extent, loops));
    } else {
      loops.outer.push_back(views.rvs[l]);
    }
  }
  // Before the loops change: the elementwise block to fuse.
  TF_ASSIGN_OR_RETURN(std::optional<BlockRv> writer,
                      FusibleConsumer(schedule, block));
  TF_ASSIGN_OR_RETURN(const BoundLoops bound,
                      Bind(schedule, loops, /*blocks=*/true));
  if (writer) {
    TF_RETURN_IF_ERROR(schedule.SetScope(block, 0, "local"));
  } else {
    TF_ASSIGN_OR_RETURN(writer, schedule.CacheWrite(block, 0, "local"));
  }
  TF_RETURN_IF_ERROR(schedule.ReverseComputeAt(*writer, bound.lanes,
                                               /*preserve_unit_loops=*/true));
  TF_RETURN_IF_ERROR(Fetch(schedule, block, loops.fetches));
  return bound.blocks[0];
}

absl::Status ThreadChain::TileInner(Schedule& schedule, BlockRv block,
                                    std::optional<BlockRv> writer) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  const MatrixProduct product = *FindMatrixProduct(*node);
  TF_RETURN_IF_ERROR(
      schedule.Annotate(block, kTilingStructure, ir::Attr(kWarpTiles)));
  TF_ASSIGN_OR_RETURN(const BlockLoops views, ViewLoops(schedule, block));
  const int64_t n = IterExtent(node->iters[product.columns]);
  TF_ASSIGN_OR_RETURN(
      const ExprRv columns,
      SamplePower(schedule, 1,
                  std::min(kMostThreadColumns, LessThanTwice(n, most_columns_)),
                  kDefaultThreadColumns));
  ThreadLoops loops;
  int found = 0;
  for (size_t l = 1; l < views.size(); ++l) {
    const auto has = [&](size_t iter) {
      return absl::c_linear_search(views[l].iters, static_cast<int>(iter));
    };
    if (has(product.rows) && views[l].extent > 1) {
      TF_RETURN_IF_ERROR(SplitRows(schedule, views.rvs[l], loops));
    } else if (has(product.columns)) {
      TF_ASSIGN_OR_RETURN(
          const std::vector<LoopRv> parts,
          schedule.Split(views.rvs[l], {std::nullopt, column_warps_,
                                        column_lanes_, columns}));
      loops.outer.push_back(parts[0]);
      loops.column_warps = parts[1];
      loops.column_lanes = parts[2];
      loops.columns = parts[3];
    } else if (has(product.terms)) {
      TF_RETURN_IF_ERROR(
          SplitFetches(schedule, views.rvs[l], views[l].extent, loops));
    } else {
      loops.outer.push_back(views.rvs[l]);
      continue;
    }
    ++found;
  }
  if (found != 3) return absl::FailedPreconditionError("a loop is missing");
  TF_ASSIGN_OR_RETURN(const BoundLoops bound,
                      Bind(schedule, loops, /*blocks=*/false));
  // Rows of lanes lie some banks apart.
  TF_RETURN_IF_ERROR(
      StoreShared(schedule, block, writer, bound.lanes, /*banks_apart=*/8));
  return Fetch(schedule, block, loops.fetches);
}

}  // namespace

// Like chain_for_warps, by threads with sums of their own: for floats that
// tensor cores would round, and rows, columns and terms of any number.
//
//   S = Q K'; M = max(S); D = sum(exp(S - M)); O = (exp(S - M) / D) V
//   ->  for blockIdx.x:                                  (tiles of rows)
//         for threads: S_local += Q_shared * K_shared
//           S_shared = S_local
//         for threads: M_shared, D_shared                (a warp for a row)
//         for k_0:
//           P_shared = exp(S_shared - M_shared) / D_shared
//           for threads: O_local += P_shared * V_shared
//
// The first alternative for rows enough, or little work.
Alternatives ChainForThreads(const RuleContext& context, RuleSite site) {
  const std::optional<MatrixProduct> product = FindMatrixProduct(*site.node);
  if (!product) return DoesNotApply();
  const std::optional<WarpProductSite> unit =
      FindWarpProduct(*site.node, *context.target.gpu);
  if (unit && !unit->unit->split && TilesDivide(*site.node, *unit)) {
    return DoesNotApply();
  }
  TF_ASSIGN_OR_RETURN(const bool plain, HasPlainLoops(site));
  if (!plain) return DoesNotApply();
  ThreadChain chain(*context.target.gpu);
  const auto status = ChainRows(context, site.schedule, site.block, chain);
  if (!status.ok() ||
      !SampleUnroll(site.schedule, context.function, kChainUnroll).ok()) {
    return DoesNotApply();
  }
  std::vector<Schedule> results{std::move(site.schedule)};
  results.insert(chain.is_good() ? results.end() : results.begin(),
                 std::move(site.unchanged));
  return results;
}

}  // namespace tilefarm::space
