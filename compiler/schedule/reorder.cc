// reorder: changes the order of the loops of a chain. add_unit_loop: adds a
// loop of extent 1 around a block or loop.
//
//   for i, j, k in T.grid(4, 8, 16): C(i, j, k)
//   -> reorder(k, i)
//   for k, j, i in T.grid(16, 8, 4): C(i, j, k)
//
// The named loops exchange their positions; other loops keep theirs.
#include <algorithm>
#include <string>

#include "absl/algorithm/container.h"
#include "base/status_macros.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/independence.h"
#include "compiler/schedule/ir_copy.h"
#include "compiler/schedule/loop_primitives.h"
#include "compiler/schedule/reducer.h"
#include "compiler/schedule/region_analysis.h"

namespace tilefarm::schedule {
namespace {

size_t LoopPosition(const std::vector<ir::ForPtr>& loops,
                    const ir::ForPtr& loop) {
  return std::ranges::find(loops, loop) - loops.begin();
}

// Whether the block's updates allow the new order. Three orders of loops
// matter: where the chain repeats instances of a reduction, each repetition
// initialises the element again, so the reduce loops keep their order relative
// to all others; loops that feed both a spatial and a reduce variable (parts of
// a fused loop) reach the instance that initialises first only in the present
// order; and instances that write the same element keep theirs unless updates
// commute.
absl::Status CheckUpdatesStay(const ScheduleState& state,
                              const ir::BlockPtr& block,
                              const std::vector<ir::ForPtr>& before,
                              const std::vector<ir::ForPtr>& after) {
  if (!HasReduceIter(block.get())) return absl::OkStatus();
  // Also by way of loops below the chain.
  std::vector<ir::ForPtr> loops = state.LoopsAbove(block.get());
  loops.erase(loops.begin(), std::ranges::find(loops, before[0]));
  const bool repeats = !RunsAtMostOnce(state, *block, loops);
  const bool commutes = UpdatesCommute(*block);
  const auto feeds = [&](const ir::ForPtr& loop, ir::IterType type) {
    return LoopFeedsIter(loop.get(), block.get(), type);
  };
  for (size_t i = 0; i < before.size(); ++i) {
    const ir::ForPtr& inner = before[i];
    const bool reduces = feeds(inner, ir::IterType::kReduce);
    const bool spatial = feeds(inner, ir::IterType::kSpatial);
    for (size_t j = 0; j < i; ++j) {
      const ir::ForPtr& outer = before[j];
      if (ExtentOf(inner) == 1 || ExtentOf(outer) == 1 ||
          LoopPosition(after, outer) < LoopPosition(after, inner)) {
        continue;
      }
      const bool outer_reduces = feeds(outer, ir::IterType::kReduce);
      const bool outer_spatial = feeds(outer, ir::IterType::kSpatial);
      std::string why;
      if (!commutes && (reduces || !spatial) &&
          (outer_reduces || !outer_spatial)) {
        why =
            " updates an element in the order of these loops, and its update "
            "is not commutative";
      } else if (block->init != nullptr && reduces && spatial &&
                 outer_reduces && outer_spatial) {
        why =
            " reduces over these loops together with spatial variables: they "
            "must keep their order";
      } else if (repeats && (reduces || outer_reduces)) {
        why = " repeats its instances: these loops must keep their order";
      } else {
        continue;
      }
      return state.Illegal(inner.get(), "with loop ", outer->var->name,
                           ": block ", block->name, why);
    }
  }
  return absl::OkStatus();
}

// Blocks in one chain keep their order within an iteration, so values that pass
// from one to another must come from the same iteration.
absl::Status CheckBlocks(const ScheduleState& state,
                         const std::vector<ir::ForPtr>& chain,
                         const std::vector<ir::ForPtr>& placed,
                         const std::vector<ir::ForPtr>& moved) {
  const ir::ForPtr& top = chain[0];
  const std::vector<ir::BlockPtr> blocks = state.ChildBlocks(top.get());
  for (const ir::BlockPtr& block : blocks) {
    for (const ir::IterVar& iter : block->iters) {
      if (iter.type == ir::IterType::kOpaque) {
        return state.Illegal(block.get(), "variable ", iter.var->name,
                             " is neither data parallel nor a reduction");
      }
    }
    TF_RETURN_IF_ERROR(CheckAffineBindings(state, block.get()));
    TF_RETURN_IF_ERROR(CheckIterationsCommute(state, block.get()));
    if (!WritesAreDistinct(*block)) {
      return state.Illegal(block.get(),
                           "iterations write the same element, and the last "
                           "one must stay the last");
    }
    TF_RETURN_IF_ERROR(CheckUpdatesStay(state, block, chain, placed));
  }
  if (blocks.size() < 2) return absl::OkStatus();
  const BlockScope scope(state, state.Scope(top.get()).get());
  const auto below = [&](const ir::BlockPtr& block) {
    return absl::c_linear_search(blocks, block);
  };
  for (const Dependency& dep : scope.dependencies()) {
    if (dep.kind != DepKind::kRaw || !below(dep.src) || !below(dep.dst)) {
      continue;
    }
    for (const ir::ForPtr& loop : moved) {
      if (LoopFeedsIter(loop.get(), dep.src.get(), ir::IterType::kReduce)) {
        return state.Illegal(loop.get(), "block ", dep.dst->name,
                             " reads what block ", dep.src->name,
                             " has not finished reducing");
      }
    }
  }
  return CheckIterationsIndependent(state, scope, chain.back(), moved);
}

}  // namespace

absl::Status Reorder(ScheduleState& state, const std::vector<LoopRv>& order) {
  //   1. Get the loops; each may occur once.
  std::vector<ir::ForPtr> wanted;
  for (const LoopRv rv : order) {
    TF_ASSIGN_OR_RETURN(const ir::ForPtr loop, state.Get(rv));
    if (absl::c_linear_search(wanted, loop)) {
      return state.Invalid(loop.get(), "the loop is named twice");
    }
    wanted.push_back(loop);
  }
  if (wanted.size() < 2) return absl::OkStatus();

  //   2. Find the chain from the outermost to the innermost of them.
  ir::ForPtr bottom = wanted[0];
  size_t depth = 0;
  for (const ir::ForPtr& loop : wanted) {
    const size_t own = state.LoopsAbove(loop.get()).size();
    if (own >= depth) {
      depth = own;
      bottom = loop;
    }
  }
  std::vector<ir::ForPtr> chain = state.LoopsAbove(bottom.get());
  chain.push_back(bottom);
  size_t first = chain.size();
  for (const ir::ForPtr& loop : wanted) {
    const auto found = std::ranges::find(chain, loop);
    if (found == chain.end()) {
      return state.Illegal(loop.get(), "it is in no chain with loop ",
                           bottom->var->name);
    }
    first = std::min<size_t>(first, found - chain.begin());
  }
  chain.erase(chain.begin(), chain.begin() + first);
  for (size_t i = 0; i + 1 < chain.size(); ++i) {
    if (chain[i]->body != chain[i + 1]) {
      return state.Illegal(chain[i].get(), "loop ", chain[i + 1]->var->name,
                           " is not its only statement");
    }
  }

  //   3. Make the new order and check that the blocks below allow it.
  std::vector<ir::ForPtr> placed = chain;
  size_t next = 0;
  for (ir::ForPtr& slot : placed) {
    if (absl::c_linear_search(wanted, slot)) slot = wanted[next++];
  }
  TF_RETURN_IF_ERROR(CheckBlocks(state, chain, placed, wanted));
  for (size_t i = 0; i < placed.size(); ++i) {
    for (size_t j = i + 1; j < placed.size(); ++j) {
      const ir::VarNode* inner = placed[j]->var.get();
      if (ir::UsesVar(placed[i]->min, inner) ||
          ir::UsesVar(placed[i]->extent, inner)) {
        return state.Illegal(placed[i].get(), "its bounds depend on loop ",
                             inner->name);
      }
    }
  }

  //   4. Build the new nest from the inside.
  ir::Stmt body = bottom->body;
  for (size_t i = placed.size(); i-- > 0;) {
    body = WithBody(*placed[i], std::move(body));
  }
  state.Replace(chain[0].get(), std::move(body));
  return absl::OkStatus();
}

absl::StatusOr<LoopRv> AddUnitLoop(ScheduleState& state, BlockOrLoop where) {
  TF_ASSIGN_OR_RETURN(const ir::Stmt stmt, state.Get(where));
  if (state.Parent(stmt.get()) == nullptr) {
    return state.Illegal(stmt.get(), "the root block takes no loop");
  }
  const ir::Var unit = ir::MakeVar("u");
  state.Replace(stmt.get(), ir::MakeFor(unit, ir::IntConst(1), stmt));
  return state.NewLoop(state.LoopOf(unit.get()));
}

}  // namespace tilefarm::schedule
