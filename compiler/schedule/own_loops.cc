#include "compiler/schedule/own_loops.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/regions.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/loop_rewrite.h"
#include "compiler/schedule/region_analysis.h"

namespace tilefarm::schedule {

namespace {

// What both checks have in common.
absl::StatusOr<std::vector<ir::ForPtr>> CheckLoops(const ScheduleState& state,
                                                   const ir::BlockPtr& block) {
  TF_RETURN_IF_ERROR(CheckOnlyLoopsAbove(state, block.get()));
  const std::vector<ir::ForPtr> loops = state.LoopsAbove(block.get());
  if (loops.empty() || loops.size() != block->iters.size() ||
      !ir::IsConstInt(block->predicate, 1) ||
      !IsOnlyChild(state, loops[0].get(), block.get())) {
    return state.Illegal(block.get(),
                         "its loops are not its own, one for each variable");
  }
  for (const ir::ForPtr& loop : loops) {
    TF_RETURN_IF_ERROR(CheckPlainLoop(state, loop).status());
    const bool bound = std::ranges::any_of(
        block->iters, [&](const auto& i) { return i.binding == loop->var; });
    if (!bound || loop->for_kind != ir::ForKind::kSerial) {
      return state.Illegal(loop.get(),
                           "the loop is not serial or not a variable's own");
    }
  }
  if (!CoversDomain(state, *block, /*exactly_once=*/true)) {
    return state.Illegal(block.get(), "not every instance of its domain runs");
  }
  return loops;
}

}  // namespace

absl::StatusOr<std::vector<ir::ForPtr>> CheckOwnLoops(
    const ScheduleState& state, const ir::BlockPtr& block) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr scope, ScopeOf(state, block));
  TF_RETURN_IF_ERROR(
      CheckReduction(state, BlockScope(state, scope.get()), block.get()));
  return CheckLoops(state, block);
}

absl::StatusOr<std::vector<ir::ForPtr>> CheckLoopsOfVariables(
    const ScheduleState& state, const ir::BlockPtr& block) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr scope, ScopeOf(state, block));
  TF_RETURN_IF_ERROR(CheckCompleteOrReduction(
      state, BlockScope(state, scope.get()), block.get()));
  return CheckLoops(state, block);
}

absl::Status CheckNoAnnotations(const ScheduleState& state,
                                const ir::BlockPtr& block) {
  if (block->annotations.empty()) return absl::OkStatus();
  return state.Illegal(block.get(), "its annotation ",
                       block->annotations.begin()->first,
                       " is about the reduction as it is");
}

std::string LoopName(const ir::IterVar& iter) {
  const auto* loop = ir::As<ir::VarNode>(iter.binding);
  return loop != nullptr ? loop->name : iter.var->name;
}

ir::IterVar NewIter(const std::string& name, int64_t extent,
                    ir::IterType type) {
  return {ir::MakeVar(absl::StrCat("v", name)),
          {ir::IntConst(0), ir::IntConst(extent)},
          type,
          ir::MakeVar(name)};
}

ir::Stmt LoopOver(const ir::IterVar& iter, ir::Stmt body) {
  return ir::MakeFor(std::static_pointer_cast<const ir::VarNode>(iter.binding),
                     iter.dom.extent, std::move(body));
}

ir::Stmt LoopsOver(const std::vector<ir::IterVar>& iters, ir::Stmt body) {
  for (size_t i = iters.size(); i-- > 0;) {
    body = LoopOver(iters[i], std::move(body));
  }
  return body;
}

BlockNest MakeNest(ir::BlockNode block) {
  block.predicate = ir::BoolConst(true);
  const ir::BlockPtr made = ir::BlockWithAccesses(std::move(block));
  return {made, LoopsOver(made->iters, made)};
}

}  // namespace tilefarm::schedule
