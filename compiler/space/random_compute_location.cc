#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

int CountBlocks(const ir::Stmt& stmt) {
  int count = 0;
  ir::PreOrder(stmt, [&](const ir::Stmt& s) {
    count += s->kind == ir::StmtKind::kBlock;
    return true;
  });
  return count;
}

}  // namespace

// Lets a producer that was neither inlined nor tiled move below its consumer,
// such as padding to the tile that reads it, or partial results to their sum.
Alternatives RandomComputeLocation(const RuleContext& context, RuleSite site) {
  const auto& [unchanged, schedule, block, node] = site;
  if (node->writes.size() != 1 ||
      node->annotations.contains(kTilingStructure) ||
      node->annotations.contains(kPack) ||
      node->annotations.contains(ir::kPrepack) ||
      IsOutput(*schedule.module().Find(context.function),
               node->writes[0].buffer.get())) {
    return DoesNotApply();
  }
  // Moves only blocks that are alone in their nest.
  schedule::Schedule look = schedule;
  TF_ASSIGN_OR_RETURN(std::vector<schedule::LoopRv> loops,
                      look.GetLoops(block));
  TF_ASSIGN_OR_RETURN(std::vector<schedule::BlockRv> consumers,
                      look.GetConsumers(block));
  if (loops.empty() || consumers.empty()) return DoesNotApply();
  TF_ASSIGN_OR_RETURN(ir::ForPtr outer, look.Get(loops[0]));
  if (CountBlocks(outer->body) > 1) return DoesNotApply();
  schedule::Schedule moved = schedule;
  // The root is legal in every candidate; other locations are drawn when the
  // sketch is sampled.
  auto location = moved.SampleComputeLocation(block, -1);
  if (!location.ok() ||
      !moved.ComputeAt(block, *location, /*preserve_unit_loops=*/true).ok()) {
    return DoesNotApply();
  }
  return std::vector{std::move(moved)};
}

}  // namespace tilefarm::space
