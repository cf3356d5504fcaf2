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
Alternatives RandomComputeLocation(const RuleContext& context,
                                   schedule::Schedule schedule,
                                   const std::string& name) {
  schedule::Schedule attempt = schedule;
  TF_ASSIGN_OR_RETURN(schedule::BlockRv block,
                      attempt.GetBlock(name, context.function));
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, attempt.Get(block));
  if (node->writes.size() != 1 ||
      node->annotations.contains(kTilingStructure) ||
      node->annotations.contains(kPack) ||
      node->annotations.contains(ir::kPrepack) ||
      IsOutput(*attempt.module().Find(context.function),
               node->writes[0].buffer.get())) {
    return std::vector{std::move(schedule)};
  }
  // Moves only blocks that are alone in their nest.
  TF_ASSIGN_OR_RETURN(std::vector<schedule::LoopRv> loops,
                      attempt.GetLoops(block));
  TF_ASSIGN_OR_RETURN(std::vector<schedule::BlockRv> consumers,
                      attempt.GetConsumers(block));
  if (loops.empty() || consumers.empty()) {
    return std::vector{std::move(schedule)};
  }
  TF_ASSIGN_OR_RETURN(ir::ForPtr outer, attempt.Get(loops[0]));
  if (CountBlocks(outer->body) > 1) return std::vector{std::move(schedule)};
  schedule::Schedule moved = schedule;
  TF_ASSIGN_OR_RETURN(block, moved.GetBlock(name, context.function));
  // The root is legal in every candidate; other locations are drawn when the
  // sketch is sampled.
  auto location = moved.SampleComputeLocation(block, -1);
  if (!location.ok() ||
      !moved.ComputeAt(block, *location, /*preserve_unit_loops=*/true).ok()) {
    return std::vector{std::move(schedule)};
  }
  return std::vector{std::move(moved)};
}

}  // namespace tilefarm::space
