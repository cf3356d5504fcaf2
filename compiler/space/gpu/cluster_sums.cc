#include "compiler/space/gpu/cluster_sums.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/status_macros.h"
#include "compiler/ir/matrix_units.h"
#include "compiler/ir/thread_axis.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/postprocs.h"

namespace tilefarm::space {
namespace {

using ir::ThreadAxis;
using schedule::BlockRv;
using schedule::LoopRv;
using schedule::Schedule;

// The iterations of each axis of a kernel.
std::map<ThreadAxis, int64_t> AxesOf(const ir::ForPtr& kernel) {
  std::map<ThreadAxis, int64_t> axes;
  ir::PreOrder(kernel, [&](const ir::Stmt& s) {
    const auto* loop = ir::As<ir::ForNode>(s);
    if (loop == nullptr || loop->for_kind != ir::ForKind::kThreadBinding) {
      return true;
    }
    if (const auto axis = ir::ParseThreadAxis(loop->thread_tag)) {
      int64_t& extent = axes.try_emplace(*axis, 1).first->second;
      extent = std::max(extent, ir::AsInt(loop->extent).value_or(1));
    }
    return true;
  });
  return axes;
}

// How many iterations each axis takes of so many: divisors, so that none needs
// a condition. Whole warps of all blocks before more warps of one; what is left
// is serial.
std::map<ThreadAxis, int64_t> Divide(
    int64_t iterations, const std::map<ThreadAxis, int64_t>& axes) {
  int64_t outer = 1;
  for (const auto& [axis, extent] : axes) outer *= extent;
  std::map<ThreadAxis, int64_t> taken;
  for (auto at = axes.rbegin(); at != axes.rend(); ++at) {
    const auto& [axis, extent] = *at;
    outer /= extent;
    const int64_t least = axis == ThreadAxis::kThreadX ? ir::kWarpLanes : 1;
    int64_t own = std::min(extent, std::max(least, iterations / outer));
    own = std::min(own, iterations);
    while (iterations % own != 0) --own;
    taken[axis] = own;
    iterations /= own;
  }
  return taken;
}

// Computes what writes the sums, by vectors, where they are complete, and
// divides the loops of both below the loop over blocks.
absl::Status DivideOverCluster(Schedule& schedule, BlockRv writer) {
  TF_ASSIGN_OR_RETURN(const std::vector<BlockRv> producers,
                      schedule.GetProducers(writer));
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> written,
                      schedule.GetLoops(writer));
  if (producers.empty()) {
    return absl::FailedPreconditionError("nothing is added up");
  }
  const BlockRv sums = producers[0];
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, sums));
  TF_ASSIGN_OR_RETURN(const ir::ForPtr kernel, schedule.Get(loops.rvs[0]));
  std::map<ThreadAxis, int64_t> axes = AxesOf(kernel);
  axes.erase(ThreadAxis::kBlockX);
  int64_t threads = 1, elements = 1;
  for (const auto& [axis, extent] : axes) threads *= extent;
  std::vector<LoopRv> outputs, terms;
  for (size_t i = 1; i < loops.size(); ++i) {
    (loops[i].sums ? terms : outputs).push_back(loops.rvs[i]);
    if (!loops[i].sums) elements *= loops[i].extent;
  }
  if (outputs.empty()) return absl::FailedPreconditionError("no outputs");
  TF_ASSIGN_OR_RETURN(
      int64_t width, WidthInLoop(schedule, writer, written.back(), kVectorBytes,
                                 /*loads_only=*/false));
  while (width > 1 && elements < threads * width) width /= 2;
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> halves,
                      schedule.Split(outputs.back(), {std::nullopt, width}));
  outputs.back() = halves[0];
  std::vector<LoopRv> order = outputs;
  order.insert(order.end(), terms.begin(), terms.end());
  order.push_back(halves[1]);
  TF_RETURN_IF_ERROR(schedule.Reorder(order));
  TF_RETURN_IF_ERROR(schedule.SetScope(sums, 0, "local"));
  TF_RETURN_IF_ERROR(schedule.ReverseComputeAt(writer, outputs.back(),
                                               /*preserve_unit_loops=*/true));
  if (width > 1) {
    TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> lanes,
                        schedule.GetLoops(writer));
    TF_RETURN_IF_ERROR(schedule.Vectorize(halves[1]));
    TF_RETURN_IF_ERROR(schedule.Vectorize(lanes.back()));
  }
  LoopRv fused = outputs[0];
  if (outputs.size() > 1) {
    TF_ASSIGN_OR_RETURN(fused, schedule.Fuse(outputs));
  }
  const auto taken = Divide(elements / width, axes);
  std::vector<schedule::Factor> factors{std::nullopt};
  for (const auto& [axis, extent] : taken) factors.emplace_back(extent);
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> parts,
                      schedule.Split(fused, factors));
  size_t at = 0;
  for (const auto& [axis, extent] : taken) {
    TF_RETURN_IF_ERROR(
        schedule.Bind(parts[++at], std::string(ir::ThreadTag(axis))));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<BlockRv>> SplitForCluster(Schedule& schedule,
                                                       BlockRv block) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  const auto split = node->annotations.find(kClusterSplit);
  if (split == node->annotations.end()) return std::nullopt;
  const ir::AttrList* how = split->second.AsList();
  if (how == nullptr || how->size() != 2) {
    return absl::FailedPreconditionError("not a number of parts");
  }
  const int64_t parts = (*how)[0].AsInt().value_or(1);
  const bool all_terms = (*how)[1].AsInt() == 1;
  TF_RETURN_IF_ERROR(schedule.Unannotate(block, kClusterSplit));
  TF_ASSIGN_OR_RETURN(const BlockRv partial,
                      SplitInParts(schedule, block, parts, all_terms));
  TF_RETURN_IF_ERROR(
      schedule.Annotate(partial, kClusterParts, ir::Attr(int64_t{1})));
  return partial;
}

absl::StatusOr<LoopRv> BindToBlocks(Schedule& schedule, BlockRv block,
                                    const std::vector<LoopRv>& outer) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  std::vector<LoopRv> loops = outer;
  if (SumsInCluster(*node)) {
    TF_ASSIGN_OR_RETURN(const ir::ForPtr part, schedule.Get(outer[0]));
    const ir::IterVar& iter = node->iters[0];
    const ir::Range& index = node->writes[0].region[0];
    if (iter.binding.get() != part->var.get() ||
        index.min.get() != iter.var.get()) {
      return absl::FailedPreconditionError(
          "the part is not the first loop and index");
    }
    loops.erase(loops.begin());
    std::vector<LoopRv> order = loops;
    order.push_back(outer[0]);
    TF_RETURN_IF_ERROR(schedule.Reorder(order));
    TF_RETURN_IF_ERROR(schedule.Bind(
        outer[0], std::string(ir::ThreadTag(ThreadAxis::kCluster))));
  }
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> bound,
                      FuseAndBind(schedule, loops, "blockIdx.x"));
  if (bound.empty()) return absl::FailedPreconditionError("no loop for blocks");
  return bound[0];
}

absl::Status SumInCluster(Schedule& schedule, BlockRv block, BlockRv writer,
                          LoopRv blocks, std::optional<BlockRv> result) {
  TF_RETURN_IF_ERROR(schedule.Unannotate(block, kClusterParts));
  TF_ASSIGN_OR_RETURN(const std::vector<BlockRv> consumers,
                      schedule.GetConsumers(writer));
  if (consumers.size() != 1) {
    return absl::FailedPreconditionError("the parts have no single sum");
  }
  const BlockRv sums = consumers[0];
  if (!result) {
    TF_ASSIGN_OR_RETURN(result, FusibleConsumer(schedule, sums));
  }
  if (!result) {
    TF_ASSIGN_OR_RETURN(result, schedule.CacheWrite(sums, 0, "local"));
  }
  TF_RETURN_IF_ERROR(schedule.SetScope(writer, 0, "shared.cluster"));
  for (const BlockRv moved : {sums, *result}) {
    TF_RETURN_IF_ERROR(schedule.ReverseComputeAt(moved, blocks));
  }
  return schedule.Annotate(*result, kClusterSum, ir::Attr(int64_t{1}));
}

absl::Status RewriteClusterSums(Schedule& schedule,
                                const std::string& function) {
  for (const ir::BlockPtr& node :
       AllBlocks(*schedule.module().Find(function))) {
    if (!node->annotations.contains(kClusterSum)) continue;
    TF_ASSIGN_OR_RETURN(const BlockRv writer,
                        schedule.GetBlock(node->name, function));
    TF_RETURN_IF_ERROR(schedule.Unannotate(writer, kClusterSum));
    TF_RETURN_IF_ERROR(DivideOverCluster(schedule, writer));
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::space
