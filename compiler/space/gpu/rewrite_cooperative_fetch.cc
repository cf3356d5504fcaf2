#include <algorithm>

#include "base/status_macros.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/postprocs.h"

namespace tilefarm::space {
namespace {

using schedule::BlockRv;
using schedule::LoopRv;
using schedule::Schedule;

constexpr int64_t kRegisterBytes = 4;

absl::Status FetchTogether(Schedule& schedule, BlockRv block, int64_t wanted) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> loops,
                      schedule.GetLoops(block));
  if (node->iters.empty()) return absl::OkStatus();  // one element
  // Of threadIdx.y, which may be missing, and of threadIdx.x.
  int64_t rows = 1, threads = 1;
  for (const LoopRv rv : loops) {
    TF_ASSIGN_OR_RETURN(const ir::ForPtr loop, schedule.Get(rv));
    for (const auto& [tag, extent] : {std::pair{"threadIdx.y", &rows},
                                      std::pair{"threadIdx.x", &threads}}) {
      if (loop->thread_tag == tag) {
        *extent = ir::AsInt(loop->extent).value_or(1);
      }
    }
  }
  // Its own loops, one for each variable.
  const size_t own = node->iters.size();
  TF_ASSIGN_OR_RETURN(int64_t width,
                      WidthInLoop(schedule, block, loops.back(), wanted));
  // Narrower vectors rather than threads without one, which need a guard.
  int64_t elements = 1;
  for (auto rv = loops.end() - static_cast<ptrdiff_t>(own); rv != loops.end();
       ++rv) {
    TF_ASSIGN_OR_RETURN(const ir::ForPtr loop, schedule.Get(*rv));
    elements *= ir::AsInt(loop->extent).value_or(1);
  }
  while (width > 1 && elements < rows * threads * width) width /= 2;
  // Two bytes are no register's, and pass through memory of the thread.
  if (width * node->writes[0].buffer->dtype.bytes() < kRegisterBytes) width = 1;
  LoopRv fused = loops.back();
  if (own > 1) {
    TF_ASSIGN_OR_RETURN(
        fused, schedule.Fuse(
                   {loops.end() - static_cast<ptrdiff_t>(own), loops.end()}));
  }
  std::vector<schedule::Factor> factors = {std::nullopt};
  if (rows > 1) factors.emplace_back(rows);
  factors.emplace_back(threads);
  if (width > 1) factors.emplace_back(width);
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> parts,
                      schedule.Split(fused, factors));
  if (width > 1) TF_RETURN_IF_ERROR(schedule.Vectorize(parts.back()));
  const size_t at = rows > 1 ? 2 : 1;
  if (rows > 1) TF_RETURN_IF_ERROR(schedule.Bind(parts[1], "threadIdx.y"));
  return schedule.Bind(parts[at], "threadIdx.x");
}

}  // namespace

// Distributes each annotated copy over the threads of its block:
//
//   for ax0, ax1: A_shared = A
//   ->  for ax_0: for ax_1 (threadIdx.x): for ax_2 (vectorized): A_shared = A
absl::Status RewriteCooperativeFetch(Schedule& schedule,
                                     const std::string& function) {
  for (const ir::BlockPtr& node :
       AllBlocks(*schedule.module().Find(function))) {
    const auto found = node->annotations.find(kCooperativeFetch);
    if (found == node->annotations.end()) continue;
    TF_ASSIGN_OR_RETURN(const BlockRv block,
                        schedule.GetBlock(node->name, function));
    TF_RETURN_IF_ERROR(schedule.Unannotate(block, kCooperativeFetch));
    TF_RETURN_IF_ERROR(
        FetchTogether(schedule, block, found->second.AsInt().value_or(1)));
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::space
