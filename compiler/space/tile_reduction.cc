#include "base/status_macros.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/postprocs.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

constexpr int kMaxVectorTile = 256;
constexpr int kMaxRowTile = 8;

// Whether contiguous outputs read contiguous inputs: pooling, sums over outer
// axes.
bool ReadsAlongOutput(const ir::BlockNode& block) {
  const auto* store = ir::As<ir::StoreNode>(block.body);
  if (store == nullptr) return false;
  const auto* last = ir::As<ir::VarNode>(ir::LastIndex(store->indices));
  bool along = false;
  ir::PostOrderExprs(store->value, [&](const ir::Expr& expr) {
    const auto* load = ir::As<ir::LoadNode>(expr);
    along |= load != nullptr && load->buffer != store->buffer &&
             ir::LastIndex(load->indices).get() == last;
  });
  return last != nullptr && along;
}

}  // namespace

// A reduction without data reuse and with contiguous outputs: a tile of the
// last two spatial loops moves inside of the reduce loops, to accumulate in
// registers, and an elementwise consumer is fused tile by tile. The first
// alternative is the unchanged program.
//
//   for h, w, c, r: B[h, w, c] = max(B[h, w, c], A[h + r, w, c])
//   ->  for h, w0, c0: for r: for w1, c1: ...
Alternatives TileReduction(const RuleContext&, RuleSite site) {
  auto& [unchanged, schedule, block, node] = site;
  if (!IsReduction(*node) || HasDataReuse(*node) ||
      !HasTrivialBindings(*node) || !ReadsAlongOutput(*node)) {
    return DoesNotApply();
  }
  std::vector<schedule::LoopRv> spatial, reduce;
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
  for (size_t i = 0; i < loops.size(); ++i) {
    if (loops[i].iters.empty()) continue;
    (loops[i].sums ? reduce : spatial).push_back(loops.rvs[i]);
  }
  if (spatial.empty() || spatial.size() + reduce.size() != loops.size()) {
    return DoesNotApply();
  }
  std::vector<schedule::LoopRv> outer, tile;
  for (size_t i = 0; i < spatial.size(); ++i) {
    if (i + 2 < spatial.size()) {
      outer.push_back(spatial[i]);
      continue;
    }
    const bool vector = i + 1 == spatial.size();
    TF_ASSIGN_OR_RETURN(const std::vector<schedule::LoopRv> parts,
                        SplitInTwo(schedule, spatial[i],
                                   vector ? kMaxVectorTile : kMaxRowTile));
    outer.push_back(parts[0]);
    tile.push_back(parts[1]);
  }
  const schedule::LoopRv innermost_outer = outer.back();
  std::vector<schedule::LoopRv> order = std::move(outer);
  order.insert(order.end(), reduce.begin(), reduce.end());
  order.insert(order.end(), tile.begin(), tile.end());
  if (!schedule.Reorder(order).ok()) return DoesNotApply();
  TF_RETURN_IF_ERROR(
      schedule.Annotate(block, kTilingStructure, ir::Attr("SRS")));
  schedule::Schedule fused = schedule;
  TF_ASSIGN_OR_RETURN(const std::optional<schedule::BlockRv> consumer,
                      FusibleConsumer(fused, block));
  if (consumer && fused
                      .ReverseComputeAt(*consumer, innermost_outer,
                                        /*preserve_unit_loops=*/true)
                      .ok()) {
    schedule = std::move(fused);
  }
  return std::vector{std::move(unchanged), std::move(schedule)};
}

}  // namespace tilefarm::space
