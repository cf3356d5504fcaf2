#include <algorithm>
#include <optional>

#include "absl/algorithm/container.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/library_call.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/design_space.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/postprocs.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

using schedule::BlockRv;
using schedule::LoopRv;
using schedule::Schedule;

constexpr int64_t kMaxReduceTile = 256;

// The largest divisor of `extent` up to `limit`, in whole vectors where one is.
int64_t BestTile(int64_t extent, int64_t limit, int64_t lanes) {
  int64_t best = 1;
  int64_t best_vectors = 0;
  for (int64_t tile = 1; tile <= limit && tile <= extent; ++tile) {
    if (extent % tile != 0) continue;
    best = tile;
    if (tile % lanes == 0) best_vectors = tile;
  }
  return best_vectors > 0 ? best_vectors : best;
}

// A matmul or convolution as register tiles of a few rows by a few vectors,
// with the reduction cut so that a panel stays in the caches:
//
//   S0 (outer) R0 S1 (register tile below R1): S0 R0 R1 rows x vectors
absl::Status TileInRegisters(Schedule& schedule, BlockRv block,
                             const target::Target& target) {
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, schedule.Get(block));
  TF_ASSIGN_OR_RETURN(std::vector<LoopRv> loops, schedule.GetLoops(block));
  if (loops.size() != node->iters.size()) return absl::OkStatus();
  std::vector<size_t> spatial;
  for (size_t i = 0; i < node->iters.size(); ++i) {
    if (node->iters[i].type == ir::IterType::kSpatial) spatial.push_back(i);
  }
  if (spatial.empty()) return absl::OkStatus();
  const int64_t lanes = target.vector_lanes(4);
  const int64_t width = BestTile(IterExtent(node->iters[spatial.back()]),
                                 std::min<int64_t>(4 * lanes, 64), lanes);
  const int64_t vectors = (width + lanes - 1) / lanes;
  int64_t rows = std::max<int64_t>(1, (target.vector_registers - vectors - 2) /
                                          std::max<int64_t>(vectors, 1));
  rows = std::min<int64_t>(rows, 6);
  Schedule attempt = schedule;
  std::vector<LoopRv> outer, reduce_outer, reduce_inner, tile;
  for (size_t i = 0; i < loops.size(); ++i) {
    const int64_t extent = IterExtent(node->iters[i]);
    int64_t inner = 1;
    const bool reduces = node->iters[i].type == ir::IterType::kReduce;
    if (reduces) {
      inner = BestTile(extent, kMaxReduceTile, 1);
    } else if (i == spatial.back()) {
      inner = width;
    } else if (spatial.size() > 1 && i == spatial[spatial.size() - 2]) {
      inner = BestTile(extent, rows, 1);
    }
    TF_ASSIGN_OR_RETURN(std::vector<LoopRv> parts,
                        attempt.Split(loops[i], {std::nullopt, inner}));
    (reduces ? reduce_outer : outer).push_back(parts[0]);
    (reduces ? reduce_inner : tile).push_back(parts[1]);
  }
  std::vector<LoopRv> order;
  for (const auto* part : {&outer, &reduce_outer, &reduce_inner, &tile}) {
    order.insert(order.end(), part->begin(), part->end());
  }
  TF_RETURN_IF_ERROR(attempt.Reorder(order));
  TF_RETURN_IF_ERROR(
      attempt.Annotate(block, kTilingStructure, ir::Attr("SRRS")));
  schedule = std::move(attempt);
  return absl::OkStatus();
}

// Blocks that the kernel computes are given to it; NotFound where there are
// none. An empty kernel: nobody's.
absl::Status CallKernel(Schedule& schedule, const std::string& function,
                        const std::string& kernel,
                        const std::vector<std::string>& names) {
  bool any = kernel.empty();
  for (const std::string& name : names) {
    if (kernel.empty()) break;
    Schedule attempt = schedule;
    const auto block = attempt.GetBlock(name, function);
    if (!block.ok() || !attempt.CallLibrary(*block, kernel).ok()) continue;
    schedule = std::move(attempt);
    any = true;
  }
  if (any) return absl::OkStatus();
  return absl::NotFoundError("the kernel computes no block of the function");
}

absl::Status ScheduleFunction(Schedule& schedule, const std::string& function,
                              const target::Target& target,
                              const std::string& kernel) {
  const RuleContext context{function, target};
  std::vector<std::string> names;
  for (SketchRule* const rule :
       {SplitReductions, AutoInline, SkipZeros, SplitGroups}) {
    names = TopBlockNames(*schedule.module().Find(function));
    for (const std::string& name : names) {
      TF_ASSIGN_OR_RETURN(std::vector<Schedule> results,
                          ApplyRule(rule, context, schedule, name));
      schedule = std::move(results.front());
    }
  }
  TF_RETURN_IF_ERROR(CallKernel(schedule, function, kernel, names));
  for (const std::string& name : names) {
    Schedule attempt = schedule;
    auto block = attempt.GetBlock(name, function);
    if (!block.ok()) continue;
    TF_ASSIGN_OR_RETURN(ir::BlockPtr node, attempt.Get(*block));
    if (!HasDataReuse(*node) || node->annotations.contains(ir::kLibrary)) {
      continue;
    }
    // Where a step is not legal the block keeps its loops.
    if (TileInRegisters(attempt, *block, target).ok()) {
      schedule = std::move(attempt);
    }
  }
  TF_ASSIGN_OR_RETURN(BlockRv root, schedule.GetBlock("root", function));
  TF_RETURN_IF_ERROR(schedule.Annotate(
      root, kVectorize,
      ir::Attr(static_cast<int64_t>(target.vector_lanes(4)))));
  if (target.cores > 1) {
    TF_RETURN_IF_ERROR(schedule.Annotate(
        root, kParallel, ir::Attr(static_cast<int64_t>(8 * target.cores))));
  }
  TF_RETURN_IF_ERROR(schedule.EnterPostproc());
  TF_RETURN_IF_ERROR(
      RewriteParallelVectorizeUnroll(schedule, function, target));
  return RewriteReductions(schedule, function);
}

}  // namespace

absl::StatusOr<schedule::Schedule> DefaultSchedule(const ir::IRModule& module,
                                                   const target::Target& target,
                                                   ir::FloatRule floats) {
  if (target.is_gpu()) return DefaultGpuSchedule(module, target, floats);
  Schedule schedule(module, /*seed=*/0, floats);
  for (const ir::PrimFuncPtr& function : module.functions) {
    // A function that the heuristic cannot take stays as it is written.
    Schedule attempt = schedule;
    if (ScheduleFunction(attempt, function->name, target, /*kernel=*/"").ok()) {
      schedule = std::move(attempt);
    }
  }
  return schedule;
}

std::vector<schedule::Schedule> LibrarySchedules(
    const ir::PrimFuncPtr& function, const target::Target& target,
    const std::vector<std::string>& libraries, ir::FloatRule floats) {
  std::vector<Schedule> schedules;
  if (target.is_gpu()) return schedules;
  for (const ir::LibraryKernel& kernel : ir::LibraryKernels()) {
    if (!absl::c_linear_search(libraries, kernel.library)) continue;
    Schedule attempt(ir::IRModule{{function}}, /*seed=*/0, floats);
    if (ScheduleFunction(attempt, function->name, target,
                         std::string(kernel.name))
            .ok()) {
      schedules.push_back(std::move(attempt));
    }
  }
  return schedules;
}

}  // namespace tilefarm::space
