// decompose_reduction: the initialisation of a reduction becomes a block of
// its own, before a loop at or above its reduce loops.
//
//   decompose_reduction(C, k_0)
//
//   for i:                          for i:
//     for k_0, j, k_1:        ->      for j_init:
//       C: init C = 0; C += ...         C_init: C = 0
//                                     for k_0, j, k_1:
//                                       C_update: C += ...
//
// Steps:
//   1. Check that the block is a reduction; that no loop above the given one
//      feeds a reduce variable, except loops of one iteration; that no instance
//      runs twice below the loop (its first accumulation would be counted
//      again); and that no other block below the loop accesses the buffer
//      before it is written.
//   2. Make the init block from the spatial variables, below copies of the
//      loops that they use. Conditions about other loops are dropped from its
//      predicate.
//   3. Put it before the loop. The old block loses its init, is renamed, and
//      now declares reads of what it writes.
//
// The result is the init block; variables of the old block follow the update.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/arith/conjuncts.h"
#include "compiler/ir/regions.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/block_primitives.h"
#include "compiler/schedule/ir_copy.h"
#include "compiler/schedule/region_analysis.h"
#include "compiler/schedule/scope_edit.h"

namespace tilefarm::schedule {
namespace {

bool UsesAny(const ir::Expr& expr, const std::vector<ir::ForPtr>& loops) {
  return std::ranges::any_of(loops, [&](const ir::ForPtr& loop) {
    return ir::UsesVar(expr, loop->var.get());
  });
}

// Step 1 for the other blocks below the loop.
absl::Status CheckOtherAccesses(const ScheduleState& state,
                                const ir::BlockPtr& block,
                                const ir::ForPtr& loop) {
  bool seen = false;
  const std::vector<ir::BufferRegion> init_reads = InitReads(*block);
  for (const ir::BlockPtr& other : state.ChildBlocks(loop.get())) {
    if (other == block) {
      seen = true;
      continue;
    }
    for (const ir::BufferRegion& read : init_reads) {
      if (FindRegion(other->writes, read.buffer.get()) == nullptr) continue;
      return state.Illegal(block.get(), "its initialisation reads buffer ",
                           read.buffer->name, ", which block ", other->name,
                           " writes below loop ", loop->var->name);
    }
    for (const ir::BufferRegion& write : block->writes) {
      const bool reads =
          FindRegion(other->reads, write.buffer.get()) != nullptr;
      const bool writes =
          FindRegion(other->writes, write.buffer.get()) != nullptr;
      if (!reads && !writes) continue;
      if (writes || !seen || !IsRegionCovered(state, other.get())) {
        return state.Illegal(block.get(), "block ", other->name, " below loop ",
                             loop->var->name, " uses buffer ",
                             write.buffer->name,
                             " and would see the initialisation");
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckDecompose(const ScheduleState& state,
                            const ir::BlockPtr& block, const ir::ForPtr& loop) {
  const ir::BlockPtr scope = state.Scope(block.get());
  if (scope == nullptr || block->init == nullptr) {
    return state.Illegal(block.get(), "the block has no initialisation");
  }
  if (!state.IsBelow(block.get(), loop.get()) ||
      state.Scope(loop.get()) != scope) {
    return state.Illegal(block.get(), "the block is not below loop ",
                         loop->var->name);
  }
  const BlockScope deps(state, scope.get());
  TF_RETURN_IF_ERROR(CheckReduction(state, deps, block.get()));
  TF_RETURN_IF_ERROR(CheckOnlyLoopsAbove(state, block.get()));
  for (const ir::ForPtr& above : state.LoopsAbove(loop.get())) {
    if (!ir::IsConstInt(above->extent, 1) &&
        LoopFeedsIter(above.get(), block.get(), ir::IterType::kReduce)) {
      return state.Illegal(loop.get(), "loop ", above->var->name,
                           " above it belongs to the reduction, so the "
                           "initialisation would run more than once");
    }
  }
  const LoopCut below = CutLoops(state, block.get(), loop.get());
  std::vector<ir::ForPtr> loops = below.inner;
  loops.insert(loops.begin(), loop);
  TF_RETURN_IF_ERROR(CheckInitSeparates(state, block, loops));
  return CheckOtherAccesses(state, block, loop);
}

// Step 2: make the init nest.
absl::StatusOr<ir::Stmt> MakeInit(const ScheduleState& state,
                                  const ir::BlockPtr& block,
                                  const ir::ForPtr& loop,
                                  ir::BlockPtr* init_block) {
  ir::BlockNode init;
  init.name = block->name + "_init";
  init.annotations = block->annotations;
  ir::VarMap block_vars;
  for (const ir::IterVar& iter : block->iters) {
    if (iter.type != ir::IterType::kSpatial) continue;
    const ir::Var var = ir::MakeVar(iter.var->name, iter.var->dtype);
    block_vars[iter.var.get()] = var;
    init.iters.push_back({var, iter.dom, iter.type, iter.binding});
  }
  for (const ir::BufferRegion& write : block->writes) {
    init.writes.push_back(SubstituteRegion(write, block_vars));
  }
  init.body = CopyWithFreshVars(ir::InitAtStart(*block), block_vars);
  init.reads = ir::DetectAccesses(init).reads;

  const LoopCut cut = CutLoops(state, block.get(), loop.get());
  std::vector<ir::ForPtr> below = cut.inner;
  below.insert(below.begin(), loop);
  std::vector<ir::ForPtr> kept, dropped;
  for (const ir::ForPtr& candidate : below) {
    const bool used =
        LoopFeedsIter(candidate.get(), block.get(), ir::IterType::kSpatial);
    (used ? kept : dropped).push_back(candidate);
  }
  // Conditions on reduce loops alone do not apply to the init; loops of one
  // iteration are replaced by their minimum.
  ir::VarMap units;
  std::vector<ir::ForPtr> spatial = kept;
  for (const ir::ForPtr& outer : cut.outer) {
    if (LoopFeedsIter(outer.get(), block.get(), ir::IterType::kSpatial)) {
      spatial.push_back(outer);
    }
  }
  for (const ir::ForPtr& loop_of_one : dropped) {
    if (ir::IsConstInt(loop_of_one->extent, 1)) {
      units[loop_of_one->var.get()] = loop_of_one->min;
    }
  }
  ir::Expr predicate = ir::BoolConst(true);
  for (const ir::Expr& whole : arith::Conjuncts(block->predicate)) {
    const ir::Expr condition = ir::Substitute(whole, units);
    if (!UsesAny(condition, dropped)) {
      predicate = ir::And(predicate, condition);
    } else if (UsesAny(condition, spatial)) {
      return state.Illegal(block.get(), "its condition ",
                           ir::ToString(condition),
                           " mixes reduce and spatial loops");
    }
  }

  ir::VarMap loop_vars;
  std::vector<ir::Var> new_vars;
  for (const ir::ForPtr& old : kept) {
    new_vars.push_back(ir::MakeVar(old->var->name + "_init", old->var->dtype));
    loop_vars[old->var.get()] = new_vars.back();
  }
  for (ir::IterVar& iter : init.iters) {
    iter.binding = ir::Substitute(iter.binding, loop_vars);
  }
  init.predicate = ir::Substitute(predicate, loop_vars);
  *init_block = ir::BlockOf(std::move(init));
  ir::Stmt nest = *init_block;
  for (size_t i = kept.size(); i > 0; --i) {
    nest = WithVar(*kept[i - 1], new_vars[i - 1], std::move(nest));
  }
  return nest;
}

// Step 3: the update, which is the block without its init.
ir::BlockPtr MakeUpdate(const ir::BlockNode& block) {
  ir::BlockNode update = block;
  update.name = block.name + "_update";
  update.init = nullptr;
  std::vector<ir::BufferRegion> reads;
  for (const ir::BufferRegion& write : block.writes) {
    if (FindRegion(block.reads, write.buffer.get()) == nullptr) {
      reads.push_back(write);
    }
  }
  reads.insert(reads.end(), block.reads.begin(), block.reads.end());
  update.reads = std::move(reads);
  return ir::BlockOf(std::move(update));
}

}  // namespace

absl::StatusOr<BlockRv> DecomposeReduction(ScheduleState& state,
                                           BlockRv block_rv, LoopRv loop_rv) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr block, state.Get(block_rv));
  TF_ASSIGN_OR_RETURN(const ir::ForPtr loop, state.Get(loop_rv));
  TF_RETURN_IF_ERROR(CheckDecompose(state, block, loop));
  ir::BlockPtr init_block;
  TF_ASSIGN_OR_RETURN(ir::Stmt init, MakeInit(state, block, loop, &init_block));
  const ir::BlockPtr update = MakeUpdate(*block);
  const ir::BlockPtr scope = state.Scope(block.get());
  ScopeEditor edit;
  edit.Replace(block.get(), update);
  const ir::Stmt parent = state.Parent(loop.get());
  edit.Insert(parent.get(), PositionOf(BodyOf(parent.get()), loop.get()),
              std::move(init));
  state.Replace(scope.get(), edit.Apply(*scope), {{block.get(), update.get()}});
  return state.NewBlock(init_block);
}

}  // namespace tilefarm::schedule
