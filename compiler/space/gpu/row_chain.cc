#include "compiler/space/gpu/row_chain.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "base/status_macros.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/gpu_rules.h"

namespace tilefarm::space {
namespace {

using schedule::BlockRv;
using schedule::ExprRv;
using schedule::LoopRv;
using schedule::Schedule;

// How many times as much one extent may be for larger tiles.
constexpr double kMostChainPadding = 4.0 / 3;

// A warp for each row, of which each lane combines some elements.
absl::Status ReduceRows(Schedule& schedule, BlockRv block,
                        const std::vector<ExprRv>& warps, int64_t lanes) {
  TF_ASSIGN_OR_RETURN(const BlockLoops views, ViewLoops(schedule, block));
  std::vector<LoopRv> rows, terms;
  for (size_t l = 1; l < views.size(); ++l) {
    (views[l].sums ? terms : rows).push_back(views.rvs[l]);
  }
  if (rows.empty() || terms.empty()) {
    return absl::FailedPreconditionError("a loop is missing");
  }
  LoopRv row = rows[0], term = terms[0];
  if (rows.size() > 1) {
    TF_ASSIGN_OR_RETURN(row, schedule.Fuse(rows));
  }
  if (terms.size() > 1) {
    TF_ASSIGN_OR_RETURN(term, schedule.Fuse(terms));
  }
  std::vector<schedule::Factor> factors{std::nullopt};
  factors.insert(factors.end(), warps.begin(), warps.end());
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> row_parts,
                      schedule.Split(row, factors));
  TF_RETURN_IF_ERROR(FuseAndBind(schedule,
                                 {row_parts.begin() + 1, row_parts.end()},
                                 "threadIdx.y")
                         .status());
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> term_parts,
                      schedule.Split(term, {std::nullopt, lanes}));
  TF_RETURN_IF_ERROR(schedule.Bind(term_parts[1], "threadIdx.x"));
  return schedule.SetScope(block, 0, "shared");
}

// Whether the block only moves and converts elements of parameters, in several
// steps.
bool IsOfParameters(const ir::PrimFunc& function, const ir::BlockNode& block) {
  if (!IsElementwise(block)) return false;
  return absl::c_all_of(block.reads, [&](const ir::BufferRegion& read) {
    if (absl::c_linear_search(function.params, read.buffer)) return true;
    bool is_made = false, of_parameters = true;
    ir::PreOrder(function.body, [&](const ir::Stmt& stmt) {
      const auto* writer = ir::As<ir::BlockNode>(stmt);
      if (writer == nullptr || writer == function.body.get()) return true;
      for (const ir::BufferRegion& write : writer->writes) {
        if (write.buffer != read.buffer) continue;
        is_made = true;
        of_parameters = of_parameters && IsOfParameters(function, *writer);
      }
      return true;
    });
    return is_made && of_parameters;
  });
}

// Moves what makes the rows of the product's operand below the loop, readers
// first; nothing is computed twice.
absl::StatusOr<std::vector<BlockRv>> MoveMakers(const RuleContext& context,
                                                Schedule& schedule,
                                                const ir::Buffer& operand,
                                                LoopRv loop, double padding) {
  std::vector<BlockRv> makers;
  const ir::PrimFuncPtr start = schedule.module().Find(context.function);
  std::vector<const ir::BufferNode*> wanted{operand.get()};
  for (const std::string& name : AllBlockNames(*start)) {
    TF_ASSIGN_OR_RETURN(const BlockRv block,
                        schedule.GetBlock(name, context.function));
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
    if (node->writes.size() != 1 || !HasTrivialBindings(*node)) continue;
    // The fetches compute it.
    if (IsOfParameters(*start, *node)) continue;
    const ir::BufferNode* made = node->writes[0].buffer.get();
    if (!absl::c_linear_search(wanted, made) || IsOutput(*start, made)) {
      continue;
    }
    TF_ASSIGN_OR_RETURN(const bool fits,
                        MoveWithoutRepeats(schedule, block, loop, padding));
    if (!fits) continue;
    makers.push_back(block);
    for (const ir::BufferRegion& read : node->reads) {
      wanted.push_back(read.buffer.get());
    }
  }
  return makers;
}

// The one reader of a block's results, if it is elementwise.
absl::StatusOr<std::optional<BlockRv>> ElementwiseReader(Schedule& schedule,
                                                         BlockRv block) {
  TF_ASSIGN_OR_RETURN(const std::vector<BlockRv> readers,
                      schedule.GetConsumers(block));
  if (readers.size() != 1) return std::nullopt;
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(readers[0]));
  return IsElementwise(*node) ? std::optional(readers[0]) : std::nullopt;
}

}  // namespace

absl::Status InlineExponents(Schedule& schedule, BlockRv product,
                             const std::string& function) {
  const auto any = [](const ir::BlockNode&) { return true; };
  const auto blocks = [&] {
    return AllBlockNames(*schedule.module().Find(function)).size();
  };
  TF_ASSIGN_OR_RETURN(const std::vector<BlockRv> makers,
                      schedule.GetProducers(product));
  for (const BlockRv maker : makers) {
    size_t before = 0;
    do {
      before = blocks();
      TF_RETURN_IF_ERROR(InlineProducers(schedule, maker, any));
    } while (blocks() < before);
  }
  return absl::OkStatus();
}

absl::Status PadChain(Schedule& schedule, BlockRv block,
                      const WarpProductSite& product,
                      const ChainPadding& padding) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  std::vector<int64_t> numbers(node->iters.size(), 1);
  double more = 1;
  const auto round_up = [&](size_t iter, const PaddingRange& range) {
    const int64_t extent = IterExtent(node->iters[iter]);
    numbers[iter] =
        PaddingOf(extent, range.least, range.largest, kMostChainPadding);
    more *= static_cast<double>(RoundUpBy(extent, numbers[iter])) /
            static_cast<double>(extent);
  };
  round_up(product.rows, padding.rows);
  round_up(product.columns, {kUnitColumns, kUnitColumns});
  round_up(product.terms, padding.terms);
  if (more > kMostPadding) {
    return absl::FailedPreconditionError("most of its tiles would be zeros");
  }
  TF_RETURN_IF_ERROR(
      schedule.PadSoftmax(block, std::move(numbers), padding.depth));
  // The copy of the results that are wanted, if another block reads them.
  TF_ASSIGN_OR_RETURN(const std::vector<BlockRv> copies,
                      schedule.GetConsumers(block));
  if (copies.size() != 1) return absl::OkStatus();
  TF_ASSIGN_OR_RETURN(const std::vector<BlockRv> readers,
                      schedule.GetConsumers(copies[0]));
  return readers.empty() ? absl::OkStatus() : schedule.ComputeInline(copies[0]);
}

absl::Status StoreShared(Schedule& schedule, BlockRv block,
                         std::optional<BlockRv> writer, LoopRv at,
                         int banks_apart) {
  if (writer) {
    TF_RETURN_IF_ERROR(schedule.SetScope(block, 0, "local"));
  } else {
    TF_ASSIGN_OR_RETURN(writer, schedule.CacheWrite(block, 0, "local"));
  }
  TF_RETURN_IF_ERROR(
      schedule.ReverseComputeAt(*writer, at, /*preserve_unit_loops=*/true));
  TF_RETURN_IF_ERROR(schedule.SetScope(*writer, 0, "shared"));
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr stored, schedule.Get(*writer));
  return schedule.StorageAlign(
      *writer, 0, static_cast<int>(stored->writes[0].region.size()) - 2, 32,
      banks_apart);
}

absl::Status ChainRows(const RuleContext& context, Schedule& schedule,
                       BlockRv last, ChainTiles& tiles) {
  TF_ASSIGN_OR_RETURN(const LoopRv blocks, tiles.TileLast(schedule, last));
  // The fetch of the operand reads what makes it.
  TF_ASSIGN_OR_RETURN(const std::vector<BlockRv> fetches,
                      schedule.GetProducers(last));
  std::vector<BlockRv> makers;
  for (const BlockRv fetch : fetches) {
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr copy, schedule.Get(fetch));
    for (const ir::BufferRegion& read : copy->reads) {
      TF_ASSIGN_OR_RETURN(
          const std::vector<BlockRv> found,
          MoveMakers(context, schedule, read.buffer, blocks, tiles.Padding()));
      makers.insert(makers.end(), found.begin(), found.end());
    }
  }
  int products = 0, elementwise = 0, fused = 0;
  for (const BlockRv maker : makers) {
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr made, schedule.Get(maker));
    if (tiles.IsProduct(*made)) {
      TF_ASSIGN_OR_RETURN(const std::optional<BlockRv> writer,
                          ElementwiseReader(schedule, maker));
      TF_RETURN_IF_ERROR(tiles.TileInner(schedule, maker, writer));
      ++products;
      if (writer) ++fused;
    } else if (IsReduction(*made)) {
      TF_RETURN_IF_ERROR(ReduceRows(schedule, maker, tiles.Warps(),
                                    context.target.gpu->warp_lanes));
    } else {
      ++elementwise;
    }
  }
  if (products == 0) {
    return absl::FailedPreconditionError("no chain of products");
  }
  if (fused != elementwise) {
    return absl::FailedPreconditionError("another block of the chain");
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::space
