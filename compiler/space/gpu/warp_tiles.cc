#include "compiler/space/gpu/warp_tiles.h"

#include <utility>
#include <vector>

#include "base/status_macros.h"
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

absl::Status FetchForWarps(schedule::Schedule& schedule,
                           schedule::BlockRv block, int operand,
                           const ir::VarNode* terms, schedule::LoopRv at) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  const ir::BufferRegion read = node->reads[static_cast<size_t>(operand)];
  const size_t dims = read.region.size();
  TF_ASSIGN_OR_RETURN(const schedule::BlockRv copy,
                      schedule.CacheRead(block, operand, "shared"));
  TF_RETURN_IF_ERROR(InlineProducers(schedule, copy, ReadsGlobalMemory));
  TF_RETURN_IF_ERROR(
      schedule.ComputeAt(copy, at, /*preserve_unit_loops=*/true));
  // An odd multiple of 16 bytes; of words that lanes read across the terms, 8
  // past a multiple of 32.
  const int bytes = read.buffer->dtype.bytes();
  const bool words =
      bytes == 4 && !ir::UsesVar(read.region[dims - 1].min, terms);
  if (dims > 1) {
    TF_RETURN_IF_ERROR(
        schedule.StorageAlign(copy, 0, static_cast<int>(dims) - 2,
                              words ? 32 : 32 / bytes, words ? 8 : 16 / bytes));
  }
  return schedule.Annotate(copy, kCooperativeFetch,
                           ir::Attr(kVectorBytes / bytes));
}

}  // namespace tilefarm::space
