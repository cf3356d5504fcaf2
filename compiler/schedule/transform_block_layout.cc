// transform_block_layout: a block runs over other variables, each a combination
// of its own.
//
//   transform_block_layout(C, lambda i, j, k: (i * 4 + j, k))
//
//   for i, j, k in (8, 4, 6):            for ax0, ax1 in (32, 6):
//     vi, vj, vk = i, j, k          ->     v0, v1 = ax0, ax1
//     C[vi, vj] += A[vi, vj, vk]           C[v0 // 4, v0 % 4] +=
//                                            A[v0 // 4, v0 % 4, v1]
//
// Buffers keep their layout (see transform_layout). Steps:
//   1. Check that each variable of the block is bound to one plain loop, that
//      these loops are its own, and that their order does not count.
//   2. Check that the map is one to one on the variables, and that no new
//      variable combines spatial with reduce variables.
//   3. Make the new loops, and put the inverse of the map into the block.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/arith/iter_map.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/block_primitives.h"
#include "compiler/schedule/index_map.h"
#include "compiler/schedule/own_loops.h"
#include "compiler/schedule/region_analysis.h"

namespace tilefarm::schedule {
namespace {

// Of a new variable that is computed from old ones; nullopt: of both types.
std::optional<ir::IterType> TypeOf(const ir::Expr& combined,
                                   const ir::BlockNode& block) {
  bool spatial = false, reduces = false;
  for (const ir::IterVar& iter : block.iters) {
    if (!ir::UsesVar(combined, iter.var.get())) continue;
    (iter.type == ir::IterType::kSpatial ? spatial : reduces) = true;
  }
  if (spatial && reduces) return std::nullopt;
  return reduces ? ir::IterType::kReduce : ir::IterType::kSpatial;
}

}  // namespace

absl::Status TransformBlockLayout(ScheduleState& state, BlockRv block_rv,
                                  std::string_view index_map) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr block, state.Get(block_rv));
  TF_ASSIGN_OR_RETURN(const std::vector<ir::ForPtr> loops,
                      CheckLoopsOfVariables(state, block));
  if (!WritesAreDistinct(*block)) {
    return state.Illegal(block.get(),
                         "its instances do not write elements of their own, "
                         "so that their order counts");
  }
  const auto map = IndexMap::Parse(index_map);
  if (!map.ok()) {
    return state.Invalid(block.get(), std::string(map.status().message()));
  }
  if (map->num_inputs() != static_cast<int>(block->iters.size())) {
    return state.Invalid(block.get(), "the index map takes ", map->num_inputs(),
                         " variables, the block has ", block->iters.size());
  }
  std::vector<ir::Expr> vars;
  arith::VarRanges ranges;
  arith::Analyzer old_vars;
  for (const ir::IterVar& iter : block->iters) {
    if (!ir::IsConstInt(iter.dom.min, 0) || !ir::AsInt(iter.dom.extent)) {
      return state.Illegal(block.get(), "variable ", iter.var->name,
                           " does not run from 0 to a constant");
    }
    vars.push_back(iter.var);
    ranges.emplace_back(iter.var, iter.dom);
    old_vars.Bind(iter.var, iter.dom);
  }
  const std::vector<ir::Expr> combined = map->Apply(vars);
  const auto sums = arith::DetectIterMap(
      combined, ranges, nullptr, arith::IterMapLevel::kBijective, old_vars);
  if (!sums.ok()) {
    return state.Illegal(block.get(),
                         "the index map is not one to one on its variables: ",
                         std::string(sums.status().message()));
  }

  ir::BlockNode made = *block;
  made.iters.clear();
  std::vector<ir::Expr> values;
  arith::Analyzer new_vars;
  for (size_t i = 0; i < combined.size(); ++i) {
    const arith::ConstBound bounds = old_vars.Bounds(combined[i]);
    const std::optional<ir::IterType> type = TypeOf(combined[i], *block);
    if (!type) {
      return state.Illegal(block.get(), "new variable ", i,
                           " combines spatial and reduce variables");
    }
    if (!bounds.is_bounded() || bounds.min != 0) {
      return state.Illegal(block.get(), "new variable ", i,
                           " does not start at 0");
    }
    const ir::Var var = ir::MakeVar(absl::StrCat("v", i));
    made.iters.push_back(
        {var, ir::Range{ir::IntConst(0), ir::IntConst(bounds.max + 1)}, *type,
         ir::MakeVar(absl::StrCat("ax", i))});
    new_vars.Bind(var, made.iters.back().dom);
    values.push_back(var);
  }
  ir::VarMap inverse = arith::InverseIterMap(*sums, values);
  for (const ir::IterVar& iter : block->iters) {
    inverse.try_emplace(iter.var.get(), ir::IntConst(0));  // of extent 1
  }
  const auto rewritten = std::static_pointer_cast<const ir::BlockNode>(
      new_vars.Simplify(ir::Substitute(ir::BlockOf(made), inverse)));
  state.Replace(loops[0].get(), LoopsOver(rewritten->iters, rewritten),
                {{block.get(), rewritten.get()}});
  return absl::OkStatus();
}

}  // namespace tilefarm::schedule
