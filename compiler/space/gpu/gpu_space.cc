#include <utility>

#include "base/status_macros.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/design_space.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/gpu/kernels.h"

namespace tilefarm::space {
namespace {

using schedule::Schedule;

constexpr int64_t kDefaultUnroll = 512;

// Every way to apply the rule to the blocks of each state, consumers first.
absl::Status Apply(const RuleContext& context, SketchRule* rule,
                   bool first_only, std::vector<Schedule>& states) {
  std::vector<Schedule> all;
  for (const Schedule& start : states) {
    const std::vector<std::string> names =
        TopBlockNames(*start.module().Find(context.function));
    std::vector<Schedule> ways{start};
    for (const std::string& name : names) {
      TF_RETURN_IF_ERROR(ApplyRule(
          rule, context, name, first_only || names.size() > kMaxBlocks, ways));
    }
    for (Schedule& way : ways) {
      if (all.size() < kMaxSketches) all.push_back(std::move(way));
    }
  }
  states = std::move(all);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Schedule>> ApplyRules(const RuleContext& context,
                                                 Schedule start,
                                                 bool first_only) {
  std::vector<Schedule> states{std::move(start)};
  for (SketchRule* const rule :
       {SplitReductions, InlineForThreads, ChainInRegisters, ChainForWarps,
        LayOutOperands, SplitReductionOverBlocks, TileForWarpgroups,
        TileForWarpMatrices, TileForThreads, InlineForThreads,
        ReduceAcrossThreads, StageTransposed, ReduceInThreads, BindToThreads}) {
    TF_RETURN_IF_ERROR(Apply(context, rule, first_only, states));
  }
  for (Schedule& state : states) {
    TF_ASSIGN_OR_RETURN(const schedule::BlockRv root,
                        state.GetBlock("root", context.function));
    TF_ASSIGN_OR_RETURN(
        const schedule::ExprRv steps,
        SampleOne(state, {0, 16, 64, 512, 1024}, kDefaultUnroll));
    TF_RETURN_IF_ERROR(state.Annotate(root, kUnrollExplicit, steps));
  }
  return states;
}

// The first sketch with its own decisions, or just bound loops.
absl::Status ScheduleFunction(Schedule& schedule, const std::string& function,
                              const target::Target& target) {
  const RuleContext context{function, target};
  auto sketches = ApplyRules(context, schedule, /*first_only=*/true);
  if (sketches.ok()) {
    Schedule attempt = std::move(sketches->front());
    if (FinishForGpu(attempt, function, target).ok()) {
      schedule = std::move(attempt);
      return absl::OkStatus();
    }
  }
  TF_RETURN_IF_ERROR(RewriteUnboundBlocks(schedule, function, target));
  return RewriteThreadReductions(schedule, function);
}

}  // namespace

absl::StatusOr<std::vector<Schedule>> GenerateGpuSketches(
    const RuleContext& context, const ir::PrimFuncPtr& program,
    ir::FloatRule floats) {
  return ApplyRules(context,
                    Schedule(ir::IRModule{{program}}, /*seed=*/0, floats),
                    /*first_only=*/false);
}

absl::Status FinishForGpu(Schedule& schedule, const std::string& function,
                          const target::Target& target) {
  TF_RETURN_IF_ERROR(schedule.EnterPostproc());
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
