// fuse: a nest of loops, each the only statement in the body of the previous
// one, becomes one loop.
//
//   for i, j in T.grid(4, 8): C(i, j)
//   -> fuse(i, j)
//   for i_j_fused in range(32): C(i_j_fused // 8, i_j_fused % 8)
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/limits.h"
#include "compiler/schedule/loop_primitives.h"
#include "compiler/schedule/loop_rewrite.h"

namespace tilefarm::schedule {

absl::StatusOr<LoopRv> Fuse(ScheduleState& state,
                            const std::vector<LoopRv>& loop_rvs,
                            bool preserve_unit_iters) {
  if (loop_rvs.empty()) {
    return absl::InvalidArgumentError("fuse: it needs a loop");
  }
  //   1. Check that the loops are a chain of plain loops.
  std::vector<ir::ForPtr> loops;
  std::vector<int64_t> extents;
  int64_t total = 1;
  for (const LoopRv rv : loop_rvs) {
    TF_ASSIGN_OR_RETURN(const ir::ForPtr loop, state.Get(rv));
    TF_ASSIGN_OR_RETURN(const int64_t extent, CheckPlainLoop(state, loop));
    if (!loops.empty()) {
      const ir::ForPtr& outer = loops.back();
      if (state.Parent(loop.get()) != outer) {
        return state.Illegal(loop.get(), "it is not directly inside loop ",
                             outer->var->name);
      }
      if (outer->body != loop) {
        return state.Illegal(loop.get(),
                             "it is not the only statement of loop ",
                             outer->var->name);
      }
    }
    if (__builtin_mul_overflow(total, extent, &total) ||
        total > ir::Limits().max_extent) {
      return state.Illegal(loop.get(),
                           "the fused loop is beyond what a loop may run for");
    }
    loops.push_back(loop);
    extents.push_back(extent);
  }

  //   2. Express the old variables in terms of the fused one.
  std::string name = loops[0]->var->name;
  for (size_t i = 1; i < loops.size(); ++i) {
    absl::StrAppend(&name, "_", loops[i]->var->name);
  }
  const ir::Var fused = ir::MakeVar(absl::StrCat(name, "_fused"));
  ir::VarMap values;
  int64_t lower = 1;
  for (size_t i = loops.size(); i-- > 0;) {
    ir::Expr value = ir::IntConst(0);
    if (extents[i] > 1) {
      value = fused;
      if (i > 0) value = FloorMod(value, ir::IntConst(lower * extents[i]));
      value = FloorDiv(std::move(value), ir::IntConst(lower));
    }
    values[loops[i]->var.get()] = std::move(value);
    lower *= extents[i];
  }

  //   3. Make the loop.
  ir::Stmt body = ir::MakeFor(fused, ir::IntConst(total),
                              Substitute(loops.back()->body, values));
  body = SimplifyBindings(body, RangesOf(state.LoopsAbove(loops[0].get())),
                          preserve_unit_iters);
  state.Replace(loops[0].get(), std::move(body));
  return state.NewLoop(state.LoopOf(fused.get()));
}

}  // namespace tilefarm::schedule
