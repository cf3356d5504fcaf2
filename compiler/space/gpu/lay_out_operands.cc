#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/gpu/products.h"
#include "compiler/space/gpu/warp_tiles.h"

namespace tilefarm::space {
namespace {

using schedule::BlockRv;
using schedule::Schedule;

// What is copied asynchronously has at least so many bytes, and what a fetch
// copies should have as many as a vector.
constexpr int kLeastBytes = 4;

bool IsTerm(const ir::BlockNode& block, std::optional<size_t> variable) {
  return variable && block.iters[*variable].type == ir::IterType::kReduce;
}

// Whether windows slide along the operand's last dimension: x * 2 + v.
bool SlidesAlongRows(const ir::BlockNode& block, const ir::LoadNode& load) {
  const ir::Expr& last = load.indices.back();
  return !VariableOf(block, last) &&
         std::ranges::any_of(block.iters, [&](const ir::IterVar& iter) {
           return iter.type == ir::IterType::kReduce &&
                  ir::UsesVar(last, iter.var.get());
         });
}

// The term with the most values that is an index of its own, as channels are.
std::optional<size_t> Channels(const ir::BlockNode& block,
                               const ir::LoadNode& load) {
  std::optional<size_t> longest;
  for (const ir::Expr& index : load.indices) {
    const std::optional<size_t> variable = VariableOf(block, index);
    if (IsTerm(block, variable) &&
        (!longest || IterExtent(block.iters[*variable]) >
                         IterExtent(block.iters[*longest]))) {
      longest = variable;
    }
  }
  return longest;
}

// "lambda i0, i1, i2: (i0, i2, i1)": dimension `last` becomes the last one.
std::string MoveLast(size_t dims, size_t last) {
  std::vector<std::string> names;
  for (size_t d = 0; d < dims; ++d) names.push_back(absl::StrCat("i", d));
  std::vector<std::string> order = names;
  std::rotate(order.begin() + static_cast<int64_t>(last),
              order.begin() + static_cast<int64_t>(last) + 1, order.end());
  return absl::StrCat("lambda ", absl::StrJoin(names, ", "), ": (",
                      absl::StrJoin(order, ", "), ")");
}

// Makes the block read a copy of the buffer with another order of dimensions.
absl::Status ReadCopy(Schedule& schedule, BlockRv block, int read,
                      const std::string& order) {
  TF_ASSIGN_OR_RETURN(const BlockRv copy,
                      schedule.CacheRead(block, read, "global"));
  TF_RETURN_IF_ERROR(
      schedule.TransformLayout(block, /*read=*/true, read, order));
  return schedule.Annotate(copy, kLaidOut, ir::Attr(int64_t{1}));
}

// `channels`: the variable whose dimension becomes the last one.
absl::Status LayOut(Schedule& schedule, BlockRv block, const ir::LoadNode& load,
                    size_t channels) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  const int read = ReadOf(*node, load);
  size_t dim = 0;
  while (dim < load.indices.size() &&
         VariableOf(*node, load.indices[dim]) != channels) {
    ++dim;
  }
  if (read < 0 || dim == load.indices.size()) {
    return absl::FailedPreconditionError("no dimension of the channels");
  }
  const std::string order = MoveLast(load.indices.size(), dim);
  // What pads the operand is part of the fetches; the copy is of what it reads.
  TF_ASSIGN_OR_RETURN(const std::vector<BlockRv> producers,
                      schedule.GetProducers(block));
  for (const BlockRv rv : producers) {
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr producer, schedule.Get(rv));
    const auto* store = ir::As<ir::StoreNode>(producer->body);
    if (store == nullptr || store->buffer != load.buffer) continue;
    const auto padded = ir::AsCopiedLoad(store->value);
    if (!padded || !IsElementwise(*producer) ||
        padded->load->indices.size() != load.indices.size()) {
      break;
    }
    TF_RETURN_IF_ERROR(
        schedule.TransformLayout(block, /*read=*/true, read, order));
    return ReadCopy(schedule, rv, 0, order);
  }
  return ReadCopy(schedule, block, read, order);
}

}  // namespace

// Convolutions of narrow elements whose windows slide along the dimension that
// is contiguous in memory, of which fetches would copy one element at a time:
// their operands get the channels last, each by a kernel of its own.
//
//   C[n, f, y, x] += A[n, c, y + u, x + v] * W[f, c, u, v]
//   ->  A'[n, y, x, c] = A[n, c, y, x]; W'[f, u, v, c] = W[f, c, u, v]
//       C[n, f, y, x] += A'[n, y + u, x + v, c] * W'[f, u, v, c]
//
// The block as it is remains an alternative.
Alternatives LayOutOperands(const RuleContext& context, RuleSite site) {
  auto& [unchanged, schedule, block, node] = site;
  const std::optional<ProductFactors> factors = FactorsOf(*node);
  if (!factors || factors->a->dtype.bytes() >= kLeastBytes ||
      WarpUnitFor(*factors, *context.target.gpu) == nullptr) {
    return DoesNotApply();
  }
  const bool a_slides = SlidesAlongRows(*node, *factors->a);
  if (a_slides == SlidesAlongRows(*node, *factors->b)) return DoesNotApply();
  const ir::LoadNode& windows = a_slides ? *factors->a : *factors->b;
  const ir::LoadNode& filters = a_slides ? *factors->b : *factors->a;
  const std::optional<size_t> channels = Channels(*node, windows);
  if (!channels ||
      IterExtent(node->iters[*channels]) * windows.buffer->dtype.bytes() <
          kVectorBytes) {
    return DoesNotApply();
  }
  TF_ASSIGN_OR_RETURN(const bool plain, HasPlainLoops(site));
  if (!plain || !LayOut(schedule, block, windows, *channels).ok()) {
    return DoesNotApply();
  }
  // Filters that are read along other terms.
  const std::optional<size_t> along = VariableOf(*node, filters.indices.back());
  if (IsTerm(*node, along) && along != channels &&
      !LayOut(schedule, block, filters, *channels).ok()) {
    return DoesNotApply();
  }
  return std::vector{std::move(schedule), std::move(unchanged)};
}

}  // namespace tilefarm::space
