#include <algorithm>
#include <set>

#include "base/status_macros.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/postprocs.h"

namespace tilefarm::space {
namespace {

using schedule::BlockRv;
using schedule::LoopRv;
using schedule::Schedule;

// More copies of a statement than a thread has registers serve no purpose.
constexpr int64_t kMostCopies = 256;

bool IsLocal(const ir::BufferRegion& region) {
  return region.buffer->scope == "local";
}

bool UsesLocal(const ir::BlockNode& block) {
  return std::ranges::any_of(block.reads, IsLocal) ||
         std::ranges::any_of(block.writes, IsLocal);
}

bool UsesOnlyLocal(const ir::BlockNode& block) {
  return std::ranges::all_of(block.reads, IsLocal) &&
         std::ranges::all_of(block.writes, IsLocal);
}

// Vectorises the innermost loop of a block that writes registers back, or
// copies into them, as far as it is contiguous.
absl::Status VectorizeCopy(Schedule& schedule, BlockRv block) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> loops,
                      schedule.GetLoops(block));
  if (node->init != nullptr || loops.empty() || node->iters.empty() ||
      UsesOnlyLocal(*node)) {
    return absl::OkStatus();
  }
  TF_ASSIGN_OR_RETURN(const ir::ForPtr loop, schedule.Get(loops.back()));
  if (loop->for_kind != ir::ForKind::kSerial ||
      !ir::UsesVar(node->iters.back().binding, loop->var.get())) {
    return absl::OkStatus();
  }
  arith::Analyzer analyzer;
  const ir::Expr start = analyzer.Simplify(ir::Substitute(
      node->iters.back().binding, {{loop->var.get(), ir::IntConst(0)}}));
  const int64_t extent = ir::AsInt(loop->extent).value_or(1);
  int64_t width = VectorWidth(*node);
  while (width > 1 &&
         (extent % width != 0 || !arith::Divisible(analyzer, start, width))) {
    width /= 2;
  }
  if (width < 2) return absl::OkStatus();
  if (extent == width) return schedule.Vectorize(loops.back());
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> parts,
                      schedule.Split(loops.back(), {std::nullopt, width}));
  return schedule.Vectorize(parts[1]);
}

// Unrolls the innermost loops of a block on registers, whose elements must be
// known when the program is compiled.
absl::Status UnrollRegisters(Schedule& schedule, BlockRv block) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
  // Loops around other blocks are not its own.
  size_t own = loops.size();
  for (const ir::StmtNode* inner = node.get(); own > 0; --own) {
    TF_ASSIGN_OR_RETURN(const ir::ForPtr loop,
                        schedule.Get(loops.rvs[own - 1]));
    if (loop->body.get() != inner) break;
    inner = loop.get();
  }
  // Reduce loops stay, but for those inside of loops over the sums.
  size_t first = loops.size();
  int64_t copies = 1;
  while (first > own) {
    const LoopView& loop = loops[first - 1];
    if (loop.kind == ir::ForKind::kThreadBinding) break;
    if (loop.kind == ir::ForKind::kSerial &&
        (loop.extent > kMostCopies || copies * loop.extent > kMostCopies)) {
      break;
    }
    if (loop.kind == ir::ForKind::kSerial) copies *= loop.extent;
    --first;
  }
  // The outermost reduce loops are for the unroll limit to decide.
  while (first < loops.size() && loops[first].sums) ++first;
  for (size_t i = first; i < loops.size(); ++i) {
    if (loops[i].kind != ir::ForKind::kSerial || loops[i].extent < 2) continue;
    TF_RETURN_IF_ERROR(schedule.Unroll(loops.rvs[i]));
  }
  return absl::OkStatus();
}

absl::Status AnnotateKernels(Schedule& schedule, const std::string& function,
                             int64_t most_steps) {
  TF_ASSIGN_OR_RETURN(const BlockRv root, schedule.GetBlock("root", function));
  TF_ASSIGN_OR_RETURN(const std::vector<BlockRv> blocks,
                      schedule.GetChildBlocks(root));
  std::set<const ir::VarNode*> annotated;
  for (const BlockRv block : blocks) {
    TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> loops,
                        schedule.GetLoops(block));
    if (loops.empty()) continue;
    TF_ASSIGN_OR_RETURN(const ir::ForPtr outer, schedule.Get(loops[0]));
    if (!annotated.insert(outer->var.get()).second ||
        outer->annotations.contains(ir::kUnrollMaxStep)) {
      continue;
    }
    TF_RETURN_IF_ERROR(
        schedule.Annotate(loops[0], ir::kUnrollMaxStep, ir::Attr(most_steps)));
    TF_RETURN_IF_ERROR(
        schedule.Annotate(loops[0], ir::kUnrollExplicit, ir::Attr(1)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SampleUnroll(schedule::Schedule& schedule,
                          const std::string& function, int64_t first) {
  TF_ASSIGN_OR_RETURN(const schedule::BlockRv root,
                      schedule.GetBlock("root", function));
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(root));
  if (node->annotations.contains(kUnrollExplicit)) return absl::OkStatus();
  TF_ASSIGN_OR_RETURN(const schedule::ExprRv steps,
                      SampleOne(schedule, {0, 16, 64, 512, 1024}, first));
  return schedule.Annotate(root, kUnrollExplicit, steps);
}

absl::Status RewriteThreadUnroll(Schedule& schedule,
                                 const std::string& function) {
  TF_ASSIGN_OR_RETURN(const BlockRv root, schedule.GetBlock("root", function));
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(root));
  const auto found = node->annotations.find(kUnrollExplicit);
  int64_t most_steps = 0;
  if (found != node->annotations.end()) {
    most_steps = found->second.AsInt().value_or(0);
    TF_RETURN_IF_ERROR(schedule.Unannotate(root, kUnrollExplicit));
  }
  TF_ASSIGN_OR_RETURN(const std::vector<BlockRv> blocks,
                      schedule.GetChildBlocks(root));
  for (const BlockRv block : blocks) {
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr one, schedule.Get(block));
    if (!UsesLocal(*one)) continue;
    TF_RETURN_IF_ERROR(VectorizeCopy(schedule, block));
    TF_RETURN_IF_ERROR(UnrollRegisters(schedule, block));
  }
  if (most_steps == 0) return absl::OkStatus();
  return AnnotateKernels(schedule, function, most_steps);
}

}  // namespace tilefarm::space
