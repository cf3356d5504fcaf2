#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/postprocs.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

constexpr int kMaxTile = 64;
constexpr int64_t kMinExtent = 8;

struct Axes {
  const ir::VarNode* written = nullptr;  // last index of the output
  const ir::VarNode* read = nullptr;     // last index of the input
};

// The axes of a block that reads by columns and writes by rows.
Axes TransposedAxes(const ir::BlockNode& block) {
  const auto* store = ir::As<ir::StoreNode>(block.body);
  if (store == nullptr || block.init != nullptr || !HasTrivialBindings(block)) {
    return {};
  }
  Axes axes;
  axes.written = ir::As<ir::VarNode>(ir::LastIndex(store->indices));
  ir::PostOrderExprs(store->value, [&](const ir::Expr& expr) {
    const auto* load = ir::As<ir::LoadNode>(expr);
    if (load == nullptr || load->indices.size() < 2) return;
    const auto* last = ir::As<ir::VarNode>(ir::LastIndex(load->indices));
    if (last == nullptr || last == axes.written) return;
    for (const ir::Expr& index : load->indices) {
      if (index.get() == axes.written) axes.read = last;
    }
  });
  for (const ir::IterVar& iter : block.iters) {
    const bool chosen =
        iter.var.get() == axes.written || iter.var.get() == axes.read;
    if (iter.type != ir::IterType::kSpatial ||
        (chosen && IterExtent(iter) < kMinExtent)) {
      return {};
    }
  }
  return axes.written != nullptr && axes.read != nullptr ? axes : Axes{};
}

// The variable that the loop feeds; null if it feeds none.
const ir::VarNode* IterOf(const ir::BlockNode& block, const LoopView& loop) {
  if (loop.iters.empty()) return nullptr;
  return block.iters[static_cast<size_t>(loop.iters[0])].var.get();
}

// Tiles the output's rows in whole registers, which as many rows of the input
// fill, read with unit stride. `nullopt` if lanes do not divide the rows.
absl::StatusOr<std::optional<schedule::Schedule>> WholeRegisters(
    const RuleContext& context, RuleSite site, const Axes& axes) {
  auto& [unchanged, schedule, block, node] = site;
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
  const auto* store = ir::As<ir::StoreNode>(node->body);
  const int64_t lanes =
      context.target.vector_lanes(store->buffer->dtype.bytes());
  std::vector<schedule::LoopRv> outer, written, read;
  for (size_t l = 0; l < loops.size(); ++l) {
    const schedule::LoopRv loop = loops.rvs[l];
    const ir::VarNode* var = IterOf(*node, loops[l]);
    if (var == axes.written) {
      if (loops[l].extent % lanes != 0) return std::nullopt;
      TF_ASSIGN_OR_RETURN(const std::vector<schedule::LoopRv> registers,
                          schedule.Split(loop, {std::nullopt, lanes}));
      TF_ASSIGN_OR_RETURN(written,
                          SplitInTwo(schedule, registers[0], kMaxTile));
      written.push_back(registers[1]);
    } else if (var == axes.read) {
      TF_ASSIGN_OR_RETURN(read, SplitInTwo(schedule, loop, kMaxTile));
    } else {
      outer.push_back(loop);
    }
  }
  if (written.size() != 3 || read.size() != 2) return std::nullopt;
  outer.insert(outer.end(),
               {written[0], read[0], written[1], read[1], written[2]});
  if (!schedule.Reorder(outer).ok()) return std::nullopt;
  return std::move(schedule);
}

}  // namespace

// Tiles a block that reads along one axis and writes along another in squares,
// so that the cache lines of both sides stay in the cache until all of their
// elements are used:
//
//   for i, j: B[i, j] = A[j, i]
//   ->  for i0, j0, i1, j1: B[i0 i1, j0 j1] = A[j0 j1, i0 i1]
//
// Alternatively, if rows are whole registers, tiles of as many rows are
// transposed in registers (lower::TransposeLoads), so that stores write whole
// vectors and can be streaming stores:
//
//   ->  for j0, i0, j1, i1, j2 (lanes):
//         B[i0 i1, j0 j1 j2] = A[j0 j1 j2, i0 i1]
Alternatives TileTransposed(const RuleContext& context, RuleSite site) {
  const ir::BlockPtr node = site.node;
  const Axes axes = TransposedAxes(*node);
  if (axes.read == nullptr) return DoesNotApply();
  schedule::Schedule attempt = site.schedule;
  std::vector<schedule::LoopRv> outer, inner;
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(attempt, site.block));
  for (size_t l = 0; l < loops.size(); ++l) {
    const schedule::LoopRv loop = loops.rvs[l];
    const ir::VarNode* var = IterOf(*node, loops[l]);
    const bool tiled = var == axes.read || var == axes.written;
    if (!tiled) {
      outer.push_back(loop);
      continue;
    }
    TF_ASSIGN_OR_RETURN(const std::vector<schedule::LoopRv> parts,
                        SplitInTwo(attempt, loop, kMaxTile));
    outer.push_back(parts[0]);
    inner.push_back(parts[1]);
  }
  outer.insert(outer.end(), inner.begin(), inner.end());
  if (!attempt.Reorder(outer).ok()) return DoesNotApply();
  TF_RETURN_IF_ERROR(attempt.Annotate(site.block, kTilingStructure,
                                      ir::Attr(kTransposedTiles)));
  std::vector<schedule::Schedule> results{std::move(attempt)};
  TF_ASSIGN_OR_RETURN(std::optional<schedule::Schedule> registers,
                      WholeRegisters(context, std::move(site), axes));
  if (registers) results.push_back(*std::move(registers));
  return results;
}

}  // namespace tilefarm::space
