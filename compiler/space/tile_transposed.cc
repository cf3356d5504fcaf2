#include "base/status_macros.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

constexpr int kMaxTile = 64;
constexpr int64_t kMinExtent = 8;

struct Axes {
  const ir::VarNode* written = nullptr;  // walks the rows of the output
  const ir::VarNode* read = nullptr;     // walks the rows of the input
};

// The two axes of a block that reads by columns what it writes by rows.
Axes TransposedAxes(const ir::BlockNode& block) {
  const auto* store = ir::As<ir::StoreNode>(block.body);
  if (store == nullptr || block.init != nullptr || !HasTrivialBindings(block)) {
    return {};
  }
  Axes axes;
  axes.written = ir::As<ir::VarNode>(store->indices.back());
  ir::PostOrderExprs(store->value, [&](const ir::Expr& expr) {
    const auto* load = ir::As<ir::LoadNode>(expr);
    if (load == nullptr || load->indices.size() < 2) return;
    const auto* last = ir::As<ir::VarNode>(load->indices.back());
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

}  // namespace

// A block that reads along one axis and writes along another goes through
// square tiles, so that the lines of both sides stay in the cache until all of
// them is used:
//
//   for i, j: B[i, j] = A[j, i]
//   ->  for i0, j0, i1, j1: B[i0 i1, j0 j1] = A[j0 j1, i0 i1]
Alternatives TileTransposed(const RuleContext& context,
                            schedule::Schedule schedule,
                            const std::string& name) {
  TF_ASSIGN_OR_RETURN(schedule::BlockRv block,
                      schedule.GetBlock(name, context.function));
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, schedule.Get(block));
  const Axes axes = TransposedAxes(*node);
  if (axes.read == nullptr) return std::vector{std::move(schedule)};
  schedule::Schedule attempt = schedule;
  TF_ASSIGN_OR_RETURN(block, attempt.GetBlock(name, context.function));
  TF_ASSIGN_OR_RETURN(std::vector<schedule::LoopRv> loops,
                      attempt.GetLoops(block));
  std::vector<schedule::LoopRv> outer, inner;
  for (const schedule::LoopRv& loop : loops) {
    TF_ASSIGN_OR_RETURN(ir::ForPtr for_node, attempt.Get(loop));
    bool tiled = false;
    for (const ir::IterVar& iter : node->iters) {
      tiled |= iter.binding == for_node->var &&
               (iter.var.get() == axes.read || iter.var.get() == axes.written);
    }
    if (!tiled) {
      outer.push_back(loop);
      continue;
    }
    TF_ASSIGN_OR_RETURN(std::vector<schedule::ExprRv> factors,
                        SampleTiles(attempt, loop, 2, kMaxTile));
    TF_ASSIGN_OR_RETURN(std::vector<schedule::LoopRv> parts,
                        attempt.Split(loop, {factors[0], factors[1]}));
    outer.push_back(parts[0]);
    inner.push_back(parts[1]);
  }
  outer.insert(outer.end(), inner.begin(), inner.end());
  if (!attempt.Reorder(outer).ok()) return std::vector{std::move(schedule)};
  TF_RETURN_IF_ERROR(
      attempt.Annotate(block, kTilingStructure, ir::Attr(kTransposedTiles)));
  return std::vector{std::move(attempt)};
}

}  // namespace tilefarm::space
