// reorder: another order for the loops of a chain. add_unit_loop: a loop of
// extent 1 around a block or loop.
//
//   for i, j, k in T.grid(4, 8, 16): C(i, j, k)
//   -> reorder(k, i)
//   for k, j, i in T.grid(16, 8, 4): C(i, j, k)
//
// The loops that are named take each other's places; others stay.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/ir_copy.h"
#include "compiler/schedule/loop_primitives.h"
#include "compiler/schedule/reducer.h"
#include "compiler/schedule/region_analysis.h"

namespace tilefarm::schedule {
namespace {

size_t PositionOf(const std::vector<ir::ForPtr>& loops,
                  const ir::ForPtr& loop) {
  return std::find(loops.begin(), loops.end(), loop) - loops.begin();
}

// Where the chain repeats instances of a reduction, each repetition of the
// first one starts it again: what that leaves depends on the order of the
// reduce loops and all others.
absl::Status CheckReduceLoopsStay(const ScheduleState& state,
                                  const ir::BlockPtr& block,
                                  const std::vector<ir::ForPtr>& before,
                                  const std::vector<ir::ForPtr>& after) {
  if (RunsAtMostOnce(state, *block, before)) return absl::OkStatus();
  const auto reduces = [&](const ir::ForPtr& loop) {
    return LoopFeedsIter(loop.get(), block.get(), ir::IterType::kReduce);
  };
  for (const ir::ForPtr& reduce : before) {
    if (!reduces(reduce)) continue;
    for (const ir::ForPtr& other : before) {
      if (ExtentOf(reduce) == 1 || ExtentOf(other) == 1) continue;
      if ((PositionOf(before, other) < PositionOf(before, reduce)) !=
          (PositionOf(after, other) < PositionOf(after, reduce))) {
        return state.Illegal(
            "reorder", reduce.get(),
            absl::StrCat("block ", block->name, " repeats its instances: loop ",
                         other->var->name,
                         " must stay on its side of this one"));
      }
    }
  }
  return absl::OkStatus();
}

// Loops that feed both a spatial and a reduce variable (parts of a fused one)
// count up to the instance that initialises only in the order that they have.
absl::Status CheckMixedLoopsStay(const ScheduleState& state,
                                 const ir::BlockPtr& block,
                                 const std::vector<ir::ForPtr>& before,
                                 const std::vector<ir::ForPtr>& after) {
  std::vector<ir::ForPtr> mixed;
  for (const ir::ForPtr& loop : before) {
    if (ExtentOf(loop) != 1 &&
        LoopFeedsIter(loop.get(), block.get(), ir::IterType::kReduce) &&
        LoopFeedsIter(loop.get(), block.get(), ir::IterType::kSpatial)) {
      mixed.push_back(loop);
    }
  }
  for (size_t i = 1; i < mixed.size(); ++i) {
    if (PositionOf(after, mixed[i - 1]) > PositionOf(after, mixed[i])) {
      return state.Illegal(
          "reorder", mixed[i].get(),
          absl::StrCat("block ", block->name, " reduces over it and loop ",
                       mixed[i - 1]->var->name,
                       " together with spatial variables: they must keep "
                       "their order"));
    }
  }
  return absl::OkStatus();
}

// Instances that write one element (of a reduction, or of a block that repeats)
// may change places only where the order of their updates does not matter.
absl::Status CheckUpdatesStay(const ScheduleState& state,
                              const ir::BlockPtr& block,
                              const std::vector<ir::ForPtr>& before,
                              const std::vector<ir::ForPtr>& after) {
  if (!HasReduceIter(block.get()) || UpdatesCommute(*block)) {
    return absl::OkStatus();
  }
  ir::ForPtr last;
  for (const ir::ForPtr& loop : before) {
    const bool separates =
        LoopFeedsIter(loop.get(), block.get(), ir::IterType::kSpatial) &&
        !LoopFeedsIter(loop.get(), block.get(), ir::IterType::kReduce);
    if (separates || ExtentOf(loop) == 1) continue;
    if (last != nullptr && PositionOf(after, last) > PositionOf(after, loop)) {
      return state.Illegal(
          "reorder", loop.get(),
          absl::StrCat("block ", block->name,
                       " updates an element in the "
                       "order of this loop and loop ",
                       last->var->name, ", and its update is not commutative"));
    }
    last = loop;
  }
  return absl::OkStatus();
}

// Blocks that share a chain keep their order within an iteration; what one
// reads of another must come from the same iteration.
absl::Status CheckBlocks(const ScheduleState& state,
                         const std::vector<ir::ForPtr>& chain,
                         const std::vector<ir::ForPtr>& placed,
                         const std::vector<ir::ForPtr>& moved) {
  const ir::ForPtr& top = chain[0];
  const std::vector<ir::BlockPtr> blocks = state.ChildBlocks(top.get());
  for (const ir::BlockPtr& block : blocks) {
    for (const ir::IterVar& iter : block->iters) {
      if (iter.type == ir::IterType::kOpaque) {
        return state.Illegal(
            "reorder", block.get(),
            absl::StrCat("variable ", iter.var->name,
                         " is neither data parallel nor a reduction"));
      }
    }
    TF_RETURN_IF_ERROR(CheckAffineBindings(state, "reorder", block.get()));
    TF_RETURN_IF_ERROR(CheckIterationsCommute(state, "reorder", block.get()));
    if (!WritesAreDistinct(*block)) {
      return state.Illegal("reorder", block.get(),
                           "iterations write the same element, and the last "
                           "one must stay the last");
    }
    TF_RETURN_IF_ERROR(CheckUpdatesStay(state, block, chain, placed));
    if (block->init != nullptr) {
      TF_RETURN_IF_ERROR(CheckMixedLoopsStay(state, block, chain, placed));
    }
    if (HasReduceIter(block.get())) {
      TF_RETURN_IF_ERROR(CheckReduceLoopsStay(state, block, chain, placed));
    }
  }
  if (blocks.size() < 2) return absl::OkStatus();
  const BlockScope scope(state, state.Scope(top.get()).get());
  const auto below = [&](const ir::BlockPtr& block) {
    return std::find(blocks.begin(), blocks.end(), block) != blocks.end();
  };
  for (const Dependency& dep : scope.dependencies()) {
    if (dep.kind != DepKind::kRaw || !below(dep.src) || !below(dep.dst)) {
      continue;
    }
    for (const ir::ForPtr& loop : moved) {
      if (LoopFeedsIter(loop.get(), dep.src.get(), ir::IterType::kReduce)) {
        return state.Illegal(
            "reorder", loop.get(),
            absl::StrCat("block ", dep.dst->name, " reads what block ",
                         dep.src->name, " has not finished reducing"));
      }
    }
    if (!IsRegionCovered(state, dep.dst.get())) {
      return state.Illegal("reorder", dep.dst.get(),
                           absl::StrCat("it reads what block ", dep.src->name,
                                        " writes in another iteration"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Reorder(ScheduleState& state, const std::vector<LoopRv>& order) {
  // 1. The loops, each once.
  std::vector<ir::ForPtr> wanted;
  for (const LoopRv rv : order) {
    TF_ASSIGN_OR_RETURN(const ir::ForPtr loop, state.Get("reorder", rv));
    if (std::find(wanted.begin(), wanted.end(), loop) != wanted.end()) {
      return state.Invalid("reorder", loop.get(), "the loop is named twice");
    }
    wanted.push_back(loop);
  }
  if (wanted.size() < 2) return absl::OkStatus();

  // 2. The chain from the outermost to the innermost of them.
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
    const auto found = std::find(chain.begin(), chain.end(), loop);
    if (found == chain.end()) {
      return state.Illegal(
          "reorder", loop.get(),
          absl::StrCat("it is in no chain with loop ", bottom->var->name));
    }
    first = std::min<size_t>(first, found - chain.begin());
  }
  chain.erase(chain.begin(), chain.begin() + first);
  for (size_t i = 0; i + 1 < chain.size(); ++i) {
    if (chain[i]->body != chain[i + 1]) {
      return state.Illegal("reorder", chain[i].get(),
                           absl::StrCat("loop ", chain[i + 1]->var->name,
                                        " is not its only statement"));
    }
  }

  // 3. The new order, and what the blocks below allow.
  std::vector<ir::ForPtr> placed = chain;
  size_t next = 0;
  for (ir::ForPtr& slot : placed) {
    if (std::find(wanted.begin(), wanted.end(), slot) != wanted.end()) {
      slot = wanted[next++];
    }
  }
  TF_RETURN_IF_ERROR(CheckBlocks(state, chain, placed, wanted));
  for (size_t i = 0; i < placed.size(); ++i) {
    for (size_t j = i + 1; j < placed.size(); ++j) {
      const ir::VarNode* inner = placed[j]->var.get();
      if (ir::UsesVar(placed[i]->min, inner) ||
          ir::UsesVar(placed[i]->extent, inner)) {
        return state.Illegal(
            "reorder", placed[i].get(),
            absl::StrCat("its bounds depend on loop ", inner->name));
      }
    }
  }

  // 4. The new nest, from the inside.
  ir::Stmt body = bottom->body;
  for (size_t i = placed.size(); i-- > 0;) {
    body = WithBody(*placed[i], std::move(body));
  }
  state.Replace(chain[0].get(), std::move(body));
  return absl::OkStatus();
}

absl::StatusOr<LoopRv> AddUnitLoop(ScheduleState& state, BlockOrLoop where) {
  ir::Stmt stmt;
  if (const auto* block = std::get_if<BlockRv>(&where)) {
    TF_ASSIGN_OR_RETURN(stmt, state.Get("add_unit_loop", *block));
  } else {
    TF_ASSIGN_OR_RETURN(stmt,
                        state.Get("add_unit_loop", std::get<LoopRv>(where)));
  }
  if (state.Parent(stmt.get()) == nullptr) {
    return state.Illegal("add_unit_loop", stmt.get(),
                         "the root block takes no loop");
  }
  const ir::Var unit = ir::MakeVar("u");
  state.Replace(stmt.get(), ir::MakeFor(unit, ir::IntConst(1), stmt));
  return state.NewLoop(state.LoopOf(unit.get()));
}

}  // namespace tilefarm::schedule
