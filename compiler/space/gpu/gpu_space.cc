#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/design_space.h"
#include "compiler/space/gpu/cluster_sums.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/gpu/kernels.h"

namespace tilefarm::space {
namespace {

using schedule::Schedule;

constexpr int64_t kDefaultUnroll = 512;

// Every way to apply the rule to the block in the ways so far.
absl::Status Apply(const RuleContext& context, SketchRule* rule,
                   const std::string& name, bool first_only,
                   std::vector<GpuSketch>& ways) {
  std::vector<GpuSketch> next;
  for (const GpuSketch& way : ways) {
    TF_ASSIGN_OR_RETURN(std::vector<Schedule> alternatives,
                        ApplyRule(rule, context, way.schedule, name));
    if (first_only) alternatives.resize(1, way.schedule);
    const double share = way.share / static_cast<double>(alternatives.size());
    for (Schedule& alternative : alternatives) {
      if (next.size() == kMaxSketches) break;
      next.push_back({std::move(alternative), share});
    }
  }
  ways = std::move(next);
  return absl::OkStatus();
}

// Likewise to the blocks of each state, consumers first.
absl::Status Apply(const RuleContext& context, SketchRule* rule,
                   bool first_only, std::vector<GpuSketch>& states) {
  std::vector<GpuSketch> all;
  for (const GpuSketch& start : states) {
    const std::vector<std::string> names =
        TopBlockNames(*start.schedule.module().Find(context.function));
    std::vector<GpuSketch> ways{start};
    for (const std::string& name : names) {
      TF_RETURN_IF_ERROR(Apply(context, rule, name,
                               first_only || names.size() > kMaxBlocks, ways));
    }
    for (GpuSketch& way : ways) {
      if (all.size() < kMaxSketches) all.push_back(std::move(way));
    }
  }
  states = std::move(all);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<GpuSketch>> ApplyRules(const RuleContext& context,
                                                  Schedule start,
                                                  bool first_only) {
  std::vector<GpuSketch> states{{std::move(start)}};
  for (SketchRule* const rule :
       {SplitReductions, InlineForThreads, ChainInRegisters, ChainForWarps,
        ChainForThreads, LayOutOperands, SplitReductionOverBlocks,
        TileForWarpgroups, TileForWarpMatrices, TileForThreads,
        InlineForThreads, ReduceColumns, ReduceAcrossThreads, StageTransposed,
        ReduceInThreads, BindToThreads}) {
    TF_RETURN_IF_ERROR(Apply(context, rule, first_only, states));
  }
  // No rule has tiled the parts of these.
  std::erase_if(states, [&](const GpuSketch& state) {
    return std::ranges::any_of(
        AllBlocks(*state.schedule.module().Find(context.function)),
        [](const ir::BlockPtr& block) { return AwaitsCluster(*block); });
  });
  for (GpuSketch& state : states) {
    Schedule& schedule = state.schedule;
    TF_RETURN_IF_ERROR(
        SampleUnroll(schedule, context.function, kDefaultUnroll));
  }
  return states;
}

// The first sketch that fits with its own decisions, or just bound loops.
absl::Status ScheduleFunction(Schedule& schedule, const std::string& function,
                              const target::Target& target) {
  const RuleContext context{function, target};
  for (const bool first_only : {true, false}) {
    auto sketches = ApplyRules(context, schedule, first_only);
    if (!sketches.ok()) break;
    for (GpuSketch& sketch : *sketches) {
      if (!FinishForGpu(sketch.schedule, function, target).ok()) continue;
      schedule = std::move(sketch.schedule);
      return absl::OkStatus();
    }
  }
  TF_RETURN_IF_ERROR(RewriteUnboundBlocks(schedule, function, target));
  return RewriteThreadReductions(schedule, function);
}

}  // namespace

absl::StatusOr<std::vector<GpuSketch>> GenerateGpuSketches(
    const RuleContext& context, const ir::PrimFuncPtr& program,
    ir::FloatRule floats) {
  return ApplyRules(context,
                    Schedule(ir::IRModule{{program}}, /*seed=*/0, floats),
                    /*first_only=*/false);
}

absl::Status FinishForGpu(Schedule& schedule, const std::string& function,
                          const target::Target& target) {
  TF_RETURN_IF_ERROR(schedule.EnterPostproc());
  // While fetches still show what they fetch.
  TF_RETURN_IF_ERROR(RewriteClusterSums(schedule, function));
  TF_RETURN_IF_ERROR(RewriteCooperativeFetch(schedule, function));
  TF_RETURN_IF_ERROR(RewriteUnboundBlocks(schedule, function, target));
  TF_RETURN_IF_ERROR(RewriteThreadReductions(schedule, function));
  TF_RETURN_IF_ERROR(RewriteThreadUnroll(schedule, function));
  return CheckKernels(*schedule.module().Find(function), *target.gpu);
}

absl::StatusOr<Schedule> DefaultGpuSchedule(const ir::IRModule& module,
                                            const target::Target& target,
                                            ir::FloatRule floats) {
  Schedule schedule(module, /*seed=*/0, floats);
  for (const ir::PrimFuncPtr& function : module.functions) {
    TF_RETURN_IF_ERROR(ScheduleFunction(schedule, function->name, target));
  }
  return schedule;
}

}  // namespace tilefarm::space
