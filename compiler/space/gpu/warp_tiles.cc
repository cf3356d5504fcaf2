#include "compiler/space/gpu/warp_tiles.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/postprocs.h"

namespace tilefarm::space {
namespace {

// Which variables of the block index the buffer, each as a dimension of its
// own. nullopt: other indices.
std::optional<std::vector<bool>> PlainIndices(
    const ir::BlockNode& block, const std::vector<ir::Expr>& indices) {
  std::vector<bool> uses(block.iters.size());
  for (const ir::Expr& index : indices) {
    if (ir::IsConstInt(index, 0)) continue;
    bool found = false;
    for (size_t i = 0; i < block.iters.size(); ++i) {
      if (index.get() != block.iters[i].var.get() || uses[i]) continue;
      uses[i] = found = true;
    }
    if (!found) return std::nullopt;
  }
  return uses;
}

}  // namespace

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
  std::optional<ProductFactors> factors = FactorsOf(block);
  if (!factors || factors->store->indices.empty()) return std::nullopt;
  const auto sums = PlainIndices(block, factors->store->indices);
  auto a = PlainIndices(block, factors->a->indices);
  auto b = PlainIndices(block, factors->b->indices);
  if (!sums || !a || !b) return std::nullopt;
  // The columns are those of which sums lie side by side.
  const auto columns = VariableOf(block, factors->store->indices.back());
  if (!columns) return std::nullopt;
  WarpProductSite out;
  out.columns = *columns;
  if ((*a)[out.columns]) {
    std::swap(a, b);
    std::swap(factors->a, factors->b);
  }
  int terms = 0;
  out.rows = block.iters.size();
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const bool in_a = (*a)[i], in_b = (*b)[i];
    if (block.iters[i].type == ir::IterType::kReduce) {
      if (!in_a || !in_b) return std::nullopt;
      out.terms = i;
      ++terms;
    } else if (i != out.columns && in_a && !in_b &&
               (out.rows == block.iters.size() ||
                IterExtent(block.iters[i]) >
                    IterExtent(block.iters[out.rows]))) {
      out.rows = i;
    }
  }
  if (terms != 1 || out.rows == block.iters.size() || (*a)[out.columns] ||
      !(*b)[out.columns]) {
    return std::nullopt;
  }
  out.unit = WarpUnitFor(*factors, limits);
  if (out.unit == nullptr) return std::nullopt;
  out.a = ReadOf(block, *factors->a);
  out.b = ReadOf(block, *factors->b);
  return out.a < 0 || out.b < 0 ? std::nullopt : std::optional(out);
}

absl::StatusOr<schedule::ExprRv> SamplePower(schedule::Schedule& schedule,
                                             int64_t least, int64_t most,
                                             int64_t first) {
  return SampleOne(schedule, PowersOfTwo(std::min(least, most), most),
                   std::min(first, most));
}

absl::StatusOr<BoundWarps> BindWarps(schedule::Schedule& schedule,
                                     const WarpLoops& loops,
                                     const ir::WarpProduct& unit, bool blocks,
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
  if (blocks) {
    TF_ASSIGN_OR_RETURN(bound.blocks,
                        FuseAndBind(schedule, loops.outer, "blockIdx.x"));
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
  std::vector<int64_t> stages;
  for (int64_t s = 1; s <= most_stages; ++s) stages.push_back(s);
  TF_ASSIGN_OR_RETURN(const schedule::ExprRv stage,
                      SampleOne(schedule, stages, first_stages));
  TF_RETURN_IF_ERROR(
      schedule.Annotate(loops.terms[0], ir::kSharedStages, stage));
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
  const size_t dims = read.region.size();
  TF_ASSIGN_OR_RETURN(const schedule::BlockRv copy,
                      schedule.CacheRead(block, operand, "shared"));
  TF_RETURN_IF_ERROR(InlineProducers(schedule, copy, ReadsGlobalMemory));
  TF_RETURN_IF_ERROR(
      schedule.ComputeAt(copy, at, /*preserve_unit_loops=*/true));
  // An odd multiple of 16 bytes; of words that lanes read across the terms, as
  // many past a multiple of 32 as four rows of lanes need apart: 8, and 4 of
  // every second row.
  const int bytes = read.buffer->dtype.bytes();
  const bool words =
      bytes == 4 && !ir::UsesVar(read.region[dims - 1].min, terms);
  if (dims > 1) {
    TF_RETURN_IF_ERROR(schedule.StorageAlign(
        copy, 0, static_cast<int>(dims) - 2, words ? 32 : 32 / bytes,
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
