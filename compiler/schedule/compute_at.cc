// compute_at and reverse_compute_at: a block moves below a loop of its
// consumers (producers), where each iteration computes just what the consumers
// need (what the producers have made available).
//
//   compute_at(B, i_0)                     reverse_compute_at(D, i_0)
//
//   for i, j: B                            for i_0, i_1, j: C
//   for i_0:                               for i, j: D
//     for i_1, j: C                     ->
//   ->                                     for i_0:
//   for i_0:                                 for i_1, j: C
//     for ax0, ax1: B                        for ax0, ax1: D
//     for i_1, j: C
//
// The loops ax0, ax1, ... run over the block's variables; if tiles do not
// divide the extents, a predicate keeps the variables in their domain.
//
// Steps of both:
//   1. Check that the scope is a pipeline of complete and reduction blocks,
//      that loop and block share it, and that only loops are in between.
//   2. Find the positions in the loop's body between the last producer and the
//      first consumer.
//   3. The region needed there (compute_at: the hull of what the consumers
//      below the loop read; reverse: of what the producers write) gives the
//      domain of the block's variables.
//   4. Move the block, then check the conditions on the new program.
//
// compute_at may compute an element several times. Its block is complete or a
// reduction, so each time gives the same value, and each iteration of the loop
// then has its own buffer. reverse_compute_at must run every instance (of a
// reduction: exactly once), after the values that it reads are final.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/block_domain.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/block_primitives.h"
#include "compiler/schedule/reducer.h"
#include "compiler/schedule/region_analysis.h"
#include "compiler/schedule/scope_edit.h"

namespace tilefarm::schedule {
namespace {

enum class Direction : uint8_t { kToConsumers, kToProducers };

struct Move {
  Direction direction;
  ir::BlockPtr block;
  ir::ForPtr loop;
  bool preserve_unit_loops;
  int index;
};

// Step 1: check that the move is possible.
absl::Status CheckMove(const ScheduleState& state, const Move& move,
                       const ir::BlockPtr& scope, const BlockScope& deps) {
  const ir::BlockNode* block = move.block.get();
  if (state.Scope(move.loop.get()) != scope) {
    return state.Illegal(block, "the loop is not in the block's scope");
  }
  if (state.IsBelow(block, move.loop.get())) {
    return state.Illegal(block, "the block is already below the loop");
  }
  TF_RETURN_IF_ERROR(CheckStagePipeline(state, scope.get()));
  TF_RETURN_IF_ERROR(CheckCompleteOrReduction(state, deps, block));
  TF_RETURN_IF_ERROR(CheckOnlyLoopsAbove(state, block));
  TF_RETURN_IF_ERROR(CheckOnlyLoopsAbove(state, move.loop.get()));
  if (!PredicateOnlyGuardsDomain(state, *block) &&
      !CoversDomain(state, *block, /*exactly_once=*/false)) {
    return state.Illegal(block, "its predicate does more than guard a tail");
  }
  if (!WritesAreDistinct(*block)) {
    return state.Illegal(block,
                         "instances write the same element, so their order "
                         "matters");
  }
  // The block gets new loops, in the order of its variables.
  if (HasReduceIter(block)) {
    if (!UpdatesCommute(*block)) {
      return state.Illegal(block,
                           "its update is not commutative, so the order of "
                           "its iterations matters");
    }
    std::vector<ir::ForPtr> loops = state.LoopsAbove(block);
    loops.erase(
        loops.begin(), std::ranges::find_if(loops, [&](const ir::ForPtr& loop) {
          return LoopFeedsIter(loop.get(), block, ir::IterType::kReduce);
        }));
    if (!RunsAtMostOnce(state, *block, loops)) {
      return state.Illegal(block, "its loops repeat updates of an element");
    }
  }
  std::vector<ir::ForPtr> loops = state.LoopsAbove(move.loop.get());
  loops.push_back(move.loop);
  for (const ir::ForPtr& loop : loops) {
    if (loop->for_kind == ir::ForKind::kVectorized) {
      return state.Illegal(loop.get(),
                           "no other block can be computed in a vectorized "
                           "loop");
    }
  }
  // The block must not move across an anti-dependence.
  for (const Dependency& dep : deps.dependencies()) {
    if (dep.kind != DepKind::kWar || dep.src == dep.dst) continue;
    if (dep.dst == move.block || dep.src == move.block) {
      return state.Illegal(block, "block ", dep.dst->name,
                           " overwrites what block ", dep.src->name,
                           " reads before it");
    }
  }
  return absl::OkStatus();
}

// The block with its variables' domains reduced to the instances that run at
// its present place. Other instances must not run at the new place.
absl::StatusOr<ir::BlockNode> WithInstancesThatRun(const ScheduleState& state,
                                                   const Move& move) {
  ir::BlockNode block = *move.block;
  const std::vector<ir::ForPtr> loops = state.LoopsAbove(move.block.get());
  const bool whole =
      state.facts().whole.Ask({{move.block, loops}}, [&](const auto&) {
        return CoversDomain(state, *move.block, /*exactly_once=*/false);
      });
  if (whole) return block;
  ir::BufferRegion instance;
  for (const ir::IterVar& iter : block.iters) {
    instance.region.push_back({iter.binding, ir::IntConst(1)});
  }
  arith::Analyzer analyzer;
  const auto box = DenseRegion(instance, {}, RangesOf(loops), analyzer);
  for (size_t i = 0; box.has_value() && i < block.iters.size(); ++i) {
    ir::Range& dom = block.iters[i].dom;
    const ir::Expr min = analyzer.Simplify(ir::Max(dom.min, (*box)[i].min));
    const ir::Expr end = analyzer.Simplify(
        ir::Min(dom.min + dom.extent, (*box)[i].min + (*box)[i].extent));
    // A reduction begins where its variables do.
    if (block.iters[i].type != ir::IterType::kSpatial &&
        !analyzer.ProveEqual(min, dom.min)) {
      break;
    }
    dom = {min, analyzer.Simplify(end - min)};
    if (i + 1 == block.iters.size()) return block;
  }
  return state.Illegal(move.block.get(),
                       "it is not known which of its instances run");
}

// Step 2: the position of the new nest among the loop body's statements.
absl::StatusOr<int> FindPosition(const ScheduleState& state, const Move& move,
                                 const std::vector<ir::BlockPtr>& producers,
                                 const std::vector<ir::BlockPtr>& consumers) {
  const bool reverse = move.direction == Direction::kToProducers;
  for (const ir::BlockPtr& required : reverse ? producers : consumers) {
    if (!state.IsBelow(required.get(), move.loop.get())) {
      return state.Illegal(move.block.get(), "its ",
                           reverse ? "producer " : "consumer ", required->name,
                           " is not below loop ", move.loop->var->name);
    }
  }
  const int size = static_cast<int>(Statements(move.loop->body).size());
  int first = 0;
  int last = size;
  for (const ir::BlockPtr& producer : producers) {
    first = std::max(first, PositionOf(move.loop->body, producer.get()) + 1);
  }
  for (const ir::BlockPtr& consumer : consumers) {
    const int position = PositionOf(move.loop->body, consumer.get());
    if (position >= 0) last = std::min(last, position);
  }
  if (first > last) {
    return state.Illegal(move.block.get(),
                         "a consumer comes before a producer in "
                         "the body of loop ",
                         move.loop->var->name);
  }
  if (move.index == -1) return last;
  if (move.index == -2) return first;
  if (move.index < first || move.index > last) {
    return state.Illegal(move.block.get(), "index ", move.index,
                         " is not a legal position: -1, -2 "
                         "or ",
                         first, " to ", last);
  }
  return move.index;
}

// Whether the load is within its buffer, whatever condition it stands under.
bool IsInside(arith::Analyzer& analyzer, const ir::LoadNode& load) {
  for (size_t d = 0; d < load.indices.size(); ++d) {
    const arith::ConstBound bound = analyzer.Bounds(load.indices[d]);
    if (bound.min < 0 || bound.max >= load.buffer->shape[d]) return false;
  }
  return true;
}

// The region with all indices in the dimensions where it loads an index that
// the moved block cannot: one that a block of the scope writes, which may not
// be computed yet, or one that only a condition of the reader keeps in bounds.
arith::Region WithLoadedIndicesWidened(const ScheduleState& state,
                                       const ir::BlockPtr& scope,
                                       arith::Analyzer& analyzer,
                                       const ir::BufferNode& buffer,
                                       arith::Region region) {
  const auto is_lost = [&](const ir::Expr& expr) {
    bool found = false;
    ir::PostOrderExprs(expr, [&](const ir::Expr& part) {
      const auto* load = ir::As<ir::LoadNode>(part);
      if (load == nullptr || found) return;
      found = !IsInside(analyzer, *load);
      for (const ir::BlockPtr& block : state.ChildBlocks(scope.get())) {
        found |= FindRegion(block->writes, load->buffer.get()) != nullptr;
      }
    });
    return found;
  };
  for (size_t d = 0; d < region.size(); ++d) {
    if (is_lost(region[d].min) || is_lost(region[d].extent)) {
      region[d] = {ir::IntConst(0), ir::IntConst(buffer.shape[d])};
    }
  }
  return region;
}

// Step 3: the regions of buffers that an iteration of the loop needs (for
// reverse_compute_at: provides).
std::vector<NeededRegion> NeededRegions(
    const ScheduleState& state, const Move& move, arith::Analyzer& analyzer,
    const std::vector<ir::BlockPtr>& others) {
  const bool reverse = move.direction == Direction::kToProducers;
  const auto& accesses = reverse ? move.block->reads : move.block->writes;
  const ir::BlockPtr scope = state.Scope(move.loop.get());
  std::vector<NeededRegion> needed;
  for (const ir::BlockPtr& other : others) {
    const LoopCut cut = CutLoops(state, other.get(), move.loop.get());
    for (const ir::BufferRegion& region :
         reverse ? other->writes : other->reads) {
      if (FindRegion(accesses, region.buffer.get()) == nullptr) continue;
      needed.push_back(
          {region.buffer.get(),
           WithLoadedIndicesWidened(
               state, scope, analyzer, *region.buffer,
               HullOf(analyzer, *other, region, cut.inner,
                      reverse ? std::vector<ir::ForPtr>() : cut.outer))});
    }
  }
  return needed;
}

// Before the move: the values that the block reads are final in an iteration of
// `outer`. compute_at reads them earlier, so they must be the same in all
// iterations of the loops that it shares with a producer and leaves.
absl::Status CheckReadsFinal(const ScheduleState& state, const Move& move,
                             const std::vector<ir::BlockPtr>& producers,
                             const std::vector<ir::ForPtr>& outer) {
  for (const ir::BlockPtr& producer : producers) {
    std::vector<ir::ForPtr> loops = outer;
    if (move.direction == Direction::kToConsumers) {
      loops = SharedLoops(state, producer.get(), move.block.get());
      std::erase_if(loops, [&](const ir::ForPtr& loop) {
        return state.IsBelow(move.loop.get(), loop.get());
      });
    }
    for (const ir::BufferRegion& read : move.block->reads) {
      TF_RETURN_IF_ERROR(
          CheckFinalIn(state, *producer, read.buffer.get(), loops));
    }
  }
  return absl::OkStatus();
}

// reverse_compute_at, after the move: the elements that the block reads in an
// iteration are written in the same iteration.
absl::Status CheckReadsWritten(const ScheduleState& state,
                               const ir::BlockPtr& moved,
                               const ir::ForPtr& loop,
                               const std::vector<ir::BlockPtr>& producers) {
  const LoopCut cut = CutLoops(state, moved.get(), loop.get());
  arith::Analyzer analyzer;
  BindLoops(analyzer, cut.outer);
  for (const ir::BlockPtr& old_producer : producers) {
    const ir::BlockPtr producer = state.Latest(old_producer);
    const LoopCut theirs = CutLoops(state, producer.get(), loop.get());
    for (const ir::BufferRegion& read : moved->reads) {
      const ir::BufferRegion* write =
          FindRegion(producer->writes, read.buffer.get());
      if (write == nullptr) continue;
      const arith::Region hull = HullOf(analyzer, *moved, read, cut.inner);
      const bool covered =
          SurelyWrites(state, *producer, *write, theirs.inner, hull, analyzer);
      if (!covered) {
        return state.Illegal(moved.get(), "it reads more of buffer ",
                             read.buffer->name, " than block ", producer->name,
                             " surely writes in an iteration of loop ",
                             loop->var->name);
      }
    }
  }
  return absl::OkStatus();
}

// reverse_compute_at after the move: every instance runs, in a legal order.
absl::Status CheckAllRun(const ScheduleState& state, const ir::BlockPtr& moved,
                         const ir::ForPtr& loop,
                         const std::vector<ir::BlockPtr>& consumers) {
  const bool reduces = HasReduceIter(moved.get());
  if (!CoversDomain(state, *moved, /*exactly_once=*/reduces)) {
    return state.Illegal(moved.get(), "not every instance would run ",
                         reduces ? "exactly once" : "at least once",
                         " below loop ", loop->var->name);
  }
  const LoopCut cut = CutLoops(state, moved.get(), loop.get());
  for (const ir::ForPtr& outer : cut.outer) {
    if (ir::IsConstInt(outer->extent, 1)) continue;
    const bool serial = outer->for_kind == ir::ForKind::kSerial ||
                        outer->for_kind == ir::ForKind::kUnrolled;
    const bool in_reduce =
        LoopFeedsIter(outer.get(), moved.get(), ir::IterType::kReduce);
    if (!serial && (in_reduce || !LoopFeedsIter(outer.get(), moved.get(),
                                                ir::IterType::kSpatial))) {
      return state.Illegal(outer.get(),
                           "its iterations run at the same time and would "
                           "write the same elements");
    }
    if (!in_reduce) continue;
    if (LoopFeedsIter(outer.get(), moved.get(), ir::IterType::kSpatial)) {
      return state.Illegal(outer.get(),
                           "the loop feeds both spatial and reduce variables "
                           "there, so the reduction may not start with its "
                           "initialisation");
    }
    for (const ir::BlockPtr& consumer : consumers) {
      if (state.IsBelow(state.Latest(consumer).get(), outer.get())) {
        return state.Illegal(outer.get(), "block ", consumer->name,
                             " below it would read an incomplete reduction");
      }
    }
  }
  for (const ir::BlockPtr& old_consumer : consumers) {
    const ir::BlockPtr consumer = state.Latest(old_consumer);
    if (SharedLoops(state, consumer.get(), moved.get()).empty()) continue;
    if (!IsRegionCovered(state, consumer.get())) {
      return state.Illegal(moved.get(), "its consumer ", consumer->name,
                           " would read what has not been computed yet");
    }
  }
  return absl::OkStatus();
}

// After the move, producers come before the block and consumers after it, also
// those outside of the loop.
absl::Status CheckOrder(const ScheduleState& state, const ir::BlockPtr& moved,
                        const std::vector<ir::BlockPtr>& producers,
                        const std::vector<ir::BlockPtr>& consumers) {
  const std::vector<ir::BlockPtr> order =
      state.ChildBlocks(state.Scope(moved.get()).get());
  const auto place_of = [&](const ir::BlockPtr& block) {
    return std::ranges::find(order, block) - order.begin();
  };
  for (const ir::BlockPtr& producer : producers) {
    if (place_of(state.Latest(producer)) > place_of(moved)) {
      return state.Illegal(moved.get(), "it would run before its producer ",
                           producer->name);
    }
  }
  for (const ir::BlockPtr& consumer : consumers) {
    if (place_of(state.Latest(consumer)) < place_of(moved)) {
      return state.Illegal(moved.get(), "it would run after its consumer ",
                           consumer->name);
    }
  }
  return absl::OkStatus();
}

absl::Status MoveBlock(ScheduleState& state, const Move& move) {
  const bool reverse = move.direction == Direction::kToProducers;
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr scope, ScopeOf(state, move.block));
  const BlockScope deps(state, scope.get());
  TF_RETURN_IF_ERROR(CheckMove(state, move, scope, deps));
  if (!reverse && IsOutput(state, move.block.get())) {
    return state.Illegal(move.block.get(),
                         "the block writes an output of its scope");
  }
  const std::vector<ir::BlockPtr> producers = deps.Producers(move.block.get());
  const std::vector<ir::BlockPtr> consumers = deps.Consumers(move.block.get());
  TF_ASSIGN_OR_RETURN(const int position,
                      FindPosition(state, move, producers, consumers));

  std::vector<ir::ForPtr> outer = state.LoopsAbove(move.loop.get());
  outer.push_back(move.loop);
  TF_RETURN_IF_ERROR(CheckReadsFinal(state, move, producers, outer));
  arith::Analyzer analyzer;
  BindLoops(analyzer, outer);
  const std::vector<NeededRegion> needed =
      NeededRegions(state, move, analyzer, reverse ? producers : consumers);
  TF_ASSIGN_OR_RETURN(const ir::BlockNode block,
                      WithInstancesThatRun(state, move));
  auto domains = SolveBlockDomain(analyzer, block,
                                  reverse ? block.reads : block.writes, needed);
  if (!domains.ok()) {
    return state.Illegal(move.block.get(),
                         std::string(domains.status().message()));
  }
  ir::BlockPtr moved;
  ir::Stmt nest =
      MakeNestOver(analyzer, block, *domains, move.preserve_unit_loops, &moved);

  ScopeEditor edit;
  edit.Replace(move.block.get(), ir::NoOp());
  edit.Insert(move.loop.get(), position, std::move(nest));
  state.Replace(scope.get(), edit.Apply(*scope),
                {{move.block.get(), moved.get()}});
  TF_RETURN_IF_ERROR(CheckOrder(state, moved, producers, consumers));
  if (!reverse) return absl::OkStatus();
  const ir::ForPtr loop = state.Latest(move.loop);
  TF_RETURN_IF_ERROR(CheckReadsWritten(state, moved, loop, producers));
  return CheckAllRun(state, moved, loop, consumers);
}

// Takes trace variables; `loop` may also be the mark of a sampled location.
absl::Status MoveByVariables(ScheduleState& state, Direction direction,
                             BlockRv block, LoopRv loop,
                             bool preserve_unit_loops, int index) {
  const bool reverse = direction == Direction::kToProducers;
  switch (state.MarkOf(loop)) {
    case LoopMark::kRoot:
      return state.Get(block).status();
    case LoopMark::kInline:
      return reverse ? ReverseComputeInline(state, block)
                     : ComputeInline(state, block);
    case LoopMark::kNone:
      break;
  }
  Move move{direction, nullptr, nullptr, preserve_unit_loops, index};
  TF_ASSIGN_OR_RETURN(move.block, state.Get(block));
  TF_ASSIGN_OR_RETURN(move.loop, state.Get(loop));
  return MoveBlock(state, move);
}

}  // namespace

absl::Status ComputeAt(ScheduleState& state, BlockRv block, LoopRv loop,
                       bool preserve_unit_loops, int index) {
  return MoveByVariables(state, Direction::kToConsumers, block, loop,
                         preserve_unit_loops, index);
}

absl::Status ReverseComputeAt(ScheduleState& state, BlockRv block, LoopRv loop,
                              bool preserve_unit_loops, int index) {
  return MoveByVariables(state, Direction::kToProducers, block, loop,
                         preserve_unit_loops, index);
}

bool CanComputeAt(const ScheduleState& state, const ir::BlockPtr& block,
                  const ir::ForPtr& loop) {
  const Move move{Direction::kToConsumers, block, loop,
                  /*preserve_unit_loops=*/true,
                  /*index=*/-1};
  return state.Would(
      [&](ScheduleState& trial) { return MoveBlock(trial, move); });
}

}  // namespace tilefarm::schedule
