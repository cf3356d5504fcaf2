#include "compiler/space/gpu/warp_tiles.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/cluster_sums.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/postprocs.h"

namespace tilefarm::space {
const ir::WarpProduct* WarpUnitFor(const ProductFactors& factors,
                                   const target::GpuLimits& limits) {
  const ir::WarpProduct* found = nullptr;
  for (const ir::WarpProduct& unit : ir::kWarpProducts) {
    if (unit.a == factors.a->dtype && unit.b == factors.b->dtype &&
        unit.sum == factors.store->value->dtype &&
        unit.architecture <= limits.architecture) {
      found = &unit;
    }
  }
  return found;
}

std::optional<WarpProductSite> FindWarpProduct(
    const ir::BlockNode& block, const target::GpuLimits& limits) {
  const std::optional<MatrixProduct> product = FindMatrixProduct(block);
  if (!product) return std::nullopt;
  const ir::WarpProduct* unit = WarpUnitFor(product->factors, limits);
  if (unit == nullptr) return std::nullopt;
  // Fragments of 16 bits are loaded by rows of the copied operands, in which
  // terms lie side by side, or what the tile has of the operand.
  for (const bool is_a : {true, false}) {
    const ir::LoadNode* factor = is_a ? product->factors.a : product->factors.b;
    const auto beside = NeighboursOf(block, *factor);
    if (factor->buffer->dtype.bytes() == 2 && beside != product->terms &&
        beside != (is_a ? product->rows : product->columns)) {
      return std::nullopt;
    }
  }
  return WarpProductSite{*product, unit};
}

bool TilesDivide(const ir::BlockNode& block, const WarpProductSite& product) {
  const auto extent = [&](size_t iter) {
    return IterExtent(block.iters[iter]);
  };
  return extent(product.rows) % (2 * kUnitRows) == 0 &&
         extent(product.columns) % kUnitColumns == 0 &&
         extent(product.terms) % product.unit->terms == 0;
}

int64_t RoundUpBy(int64_t extent, int64_t step) {
  return CeilDiv(extent, step) * step;
}

int64_t PaddingOf(int64_t extent, int64_t least, int64_t largest, double most) {
  int64_t padding = largest;
  while (padding > least && static_cast<double>(RoundUpBy(extent, padding)) >
                                most * static_cast<double>(extent)) {
    padding /= 2;
  }
  return padding;
}

absl::StatusOr<schedule::ExprRv> SamplePower(schedule::Schedule& schedule,
                                             int64_t least, int64_t most,
                                             int64_t first) {
  return SampleOne(schedule, PowersOfTwo(std::min(least, most), most),
                   std::min(first, most));
}

absl::StatusOr<BoundWarps> BindWarps(schedule::Schedule& schedule,
                                     const WarpLoops& loops,
                                     const ir::WarpProduct& unit,
                                     std::optional<schedule::BlockRv> block,
                                     int64_t most_stages,
                                     int64_t first_stages) {
  std::vector<schedule::LoopRv> order = loops.outer;
  order.insert(order.end(),
               {loops.row_warps, loops.column_warps, loops.row_tile,
                loops.column_tile, loops.row_lanes, loops.column_lanes});
  order.insert(order.end(), loops.terms.begin(), loops.terms.end());
  order.push_back(loops.pair);
  TF_RETURN_IF_ERROR(schedule.Reorder(order));
  BoundWarps bound;
  if (block) {
    TF_ASSIGN_OR_RETURN(bound.blocks,
                        BindToBlocks(schedule, *block, loops.outer));
  }
  TF_RETURN_IF_ERROR(FuseAndBind(schedule,
                                 {loops.row_warps, loops.column_warps},
                                 "threadIdx.y")
                         .status());
  TF_RETURN_IF_ERROR(schedule.Bind(loops.row_tile, "vthread.y"));
  TF_RETURN_IF_ERROR(schedule.Bind(loops.column_tile, "vthread.x"));
  TF_ASSIGN_OR_RETURN(
      const std::vector<schedule::LoopRv> lanes,
      FuseAndBind(schedule, {loops.row_lanes, loops.column_lanes},
                  "threadIdx.x"));
  TF_RETURN_IF_ERROR(schedule.Annotate(loops.terms.back(), ir::kWarpMatrix,
                                       ir::Attr(std::string(unit.annotation))));
  TF_RETURN_IF_ERROR(
      SampleStages(schedule, loops.terms[0], most_stages, first_stages));
  bound.lanes = lanes[0];
  bound.fetches = loops.terms[0];
  return bound;
}

absl::Status FetchOperand(schedule::Schedule& schedule, schedule::BlockRv block,
                          const WarpProductSite& product, int operand,
                          schedule::LoopRv at, bool second_terms) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  const ir::VarNode* terms = node->iters[product.terms].var.get();
  const ir::BufferRegion read = node->reads[static_cast<size_t>(operand)];
  size_t row = read.region.size() - 1;  // the dimension that has neighbours
  while (row > 0 && read.buffer->shape[row] == 1) --row;
  TF_ASSIGN_OR_RETURN(const schedule::BlockRv copy,
                      schedule.CacheRead(block, operand, "shared"));
  TF_RETURN_IF_ERROR(
      InlineAllProducers(schedule, copy, ReadsGlobalMemory).status());
  TF_RETURN_IF_ERROR(
      schedule.ComputeAt(copy, at, /*preserve_unit_loops=*/true));
  // An odd multiple of 16 bytes; of words that lanes read across the terms, as
  // many past a multiple of 32 as four rows of lanes need apart: 8, and 4 of
  // every second row.
  const int bytes = read.buffer->dtype.bytes();
  const bool words = bytes == 4 && !ir::UsesVar(read.region[row].min, terms);
  if (row > 0) {
    TF_RETURN_IF_ERROR(schedule.StorageAlign(
        copy, 0, static_cast<int>(row) - 1, words ? 32 : 32 / bytes,
        words ? (second_terms ? 4 : 8) : 16 / bytes));
  }
  return schedule.Annotate(copy, kCooperativeFetch,
                           ir::Attr(kVectorBytes / bytes));
}

absl::Status FetchOperands(schedule::Schedule& schedule,
                           schedule::BlockRv block,
                           const WarpProductSite& product,
                           schedule::LoopRv at) {
  for (const int operand : {product.a, product.b}) {
    TF_RETURN_IF_ERROR(FetchOperand(schedule, block, product, operand, at));
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::space
