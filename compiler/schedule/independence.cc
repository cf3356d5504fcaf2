#include "compiler/schedule/independence.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "base/status_macros.h"
#include "compiler/arith/conjuncts.h"
#include "compiler/arith/iter_map.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/region_analysis.h"
#include "compiler/schedule/thread_binding.h"

namespace tilefarm::schedule {
namespace {

// Whether anything outside of a loop reads or writes a buffer.
class OutsideAccess : public ir::Visitor {
 public:
  OutsideAccess(const ir::ForNode* loop, const ir::BufferNode* buffer)
      : loop_(loop), buffer_(buffer) {}
  using Visitor::Visit;
  bool found = false;

 protected:
  void VisitFor(const ir::ForNode& loop) override {
    if (&loop != loop_ && !found) Visitor::VisitFor(loop);
  }
  void VisitLoad(const ir::LoadNode& load) override {
    found |= load.buffer.get() == buffer_;
    Visitor::VisitLoad(load);
  }
  void VisitStore(const ir::StoreNode& store) override {
    found |= store.buffer.get() == buffer_;
    Visitor::VisitStore(store);
  }

 private:
  const ir::ForNode* loop_;
  const ir::BufferNode* buffer_;
};

// IterationOf from the dimensions whose index uses `loops`, or from all.
std::vector<ir::Expr> InvertIndices(const ScheduleState& state,
                                    const std::vector<ir::ForPtr>& loops,
                                    const ir::BlockNode& block,
                                    const ir::BufferRegion& access,
                                    const std::vector<ir::Expr>& element,
                                    bool all_dimensions) {
  std::vector<ir::Expr> indices, outputs;
  arith::VarRanges iters;
  for (size_t i = 0; i < element.size(); ++i) {
    const ir::Range& range = access.region[i];
    const ir::Expr index = ir::Substitute(range.min, BindingsOf(block));
    if (!all_dimensions &&
        std::ranges::none_of(loops, [&](const ir::ForPtr& loop) {
          return ir::UsesVar(index, loop->var.get());
        })) {
      continue;
    }
    indices.push_back(index);
    outputs.push_back(element[i]);
    if (ir::IsConstInt(range.extent, 1)) continue;
    iters.emplace_back(ir::MakeVar("inside"),
                       ir::Range{ir::IntConst(0), range.extent});
    indices.back() = index + iters.back().first;
  }
  const std::vector<ir::ForPtr> above = state.LoopsAbove(&block);
  std::vector<ir::Expr> conditions = arith::Conjuncts(block.predicate);
  bool inner = false;
  for (const ir::ForPtr& loop : above) {
    const auto uses = [&](const ir::Expr& expr) {
      return ir::UsesVar(expr, loop->var.get());
    };
    inner |= absl::c_linear_search(loops, loop);
    if (inner && std::ranges::any_of(indices, uses)) {
      iters.push_back(RangesOf({loop}).front());
    } else {
      std::erase_if(conditions, uses);
    }
  }
  // Every iteration of a loop that no index uses accesses the element.
  if (std::ranges::any_of(loops, [&](const ir::ForPtr& loop) {
        return std::ranges::none_of(
            iters, [&](const auto& iter) { return iter.first == loop->var; });
      })) {
    return {};
  }
  const ir::Expr predicate = std::accumulate(
      conditions.begin(), conditions.end(), ir::BoolConst(true),
      [](const ir::Expr& a, const ir::Expr& b) { return ir::And(a, b); });
  arith::Analyzer analyzer(RangesOf(above));
  const auto map = arith::DetectIterMap(
      indices, iters, predicate, arith::IterMapLevel::kBijective, analyzer,
      /*simplify_trivial=*/false);
  if (!map.ok()) return {};
  const ir::VarMap inverse = arith::InverseIterMap(*map, outputs);
  std::vector<ir::Expr> iteration;
  for (const ir::ForPtr& loop : loops) {
    const auto found = inverse.find(loop->var.get());
    if (found == inverse.end()) return {};
    iteration.push_back(found->second);
  }
  return iteration;
}

// The iteration of `loops`, one expression for each loop, in which the block
// accesses `element`; empty if several iterations may access it. Loops that
// surround all of `loops` are constants.
std::vector<ir::Expr> IterationOf(const ScheduleState& state,
                                  const std::vector<ir::ForPtr>& loops,
                                  const ir::BlockNode& block,
                                  const ir::BufferRegion& access,
                                  const std::vector<ir::Expr>& element) {
  std::vector<ir::Expr> iteration =
      InvertIndices(state, loops, block, access, element,
                    /*all_dimensions=*/false);
  // One loop over threads often runs over several dimensions, and only all of
  // them tell which thread it is.
  if (iteration.empty() &&
      std::ranges::any_of(state.LoopsAbove(&block), [](const ir::ForPtr& loop) {
        return loop->for_kind == ir::ForKind::kThreadBinding;
      })) {
    iteration = InvertIndices(state, loops, block, access, element,
                              /*all_dimensions=*/true);
  }
  return iteration;
}

bool AreApartIn(const ScheduleState& state,
                const std::vector<ir::ForPtr>& loops, const ir::BlockNode& a,
                const ir::BufferRegion& of_a, const ir::BlockNode& b,
                const ir::BufferRegion& of_b) {
  arith::Analyzer analyzer;
  std::vector<ir::Expr> element;
  for (const int64_t extent : of_a.buffer->shape) {
    const ir::Var index = ir::MakeVar("d");
    analyzer.Bind(index, 0, extent);
    element.push_back(index);
  }
  const std::vector<ir::Expr> in_a =
      IterationOf(state, loops, a, of_a, element);
  if (in_a.size() != loops.size()) return false;
  if (&of_a == &of_b) return true;
  const std::vector<ir::Expr> in_b =
      IterationOf(state, loops, b, of_b, element);
  return in_b.size() == loops.size() &&
         std::equal(in_a.begin(), in_a.end(), in_b.begin(),
                    [&](const ir::Expr& x, const ir::Expr& y) {
                      return analyzer.ProveEqual(x, y);
                    });
}

bool FindApart(const ScheduleState& state, const std::vector<ir::ForPtr>& loops,
               const ir::BlockNode& a, const ir::BufferRegion& of_a,
               const ir::BlockNode& b, const ir::BufferRegion& of_b) {
  if (AreApartIn(state, loops, a, of_a, b, of_b)) return true;
  if (loops.empty()) return false;
  // Where blocks of threads are no whole rows, it takes the number of the block
  // to tell which element a thread accesses.
  std::vector<ir::ForPtr> more = state.LoopsAbove(loops.front().get());
  std::erase_if(more, [](const ir::ForPtr& loop) {
    return loop->for_kind != ir::ForKind::kThreadBinding ||
           ir::IsConstInt(loop->extent, 1);
  });
  if (more.empty()) return false;
  more.insert(more.end(), loops.begin(), loops.end());
  return AreApartIn(state, more, a, of_a, b, of_b);
}

}  // namespace

bool IsPrivate(const ScheduleState& state, const BlockScope& scope,
               const ir::ForPtr& loop, const ir::BufferNode* buffer) {
  if (state.AllocSite(buffer) == nullptr) return false;
  // The threads of a block have one copy of what they share, as have the blocks
  // of a cluster.
  if (IsThreadAxis(loop->thread_tag) && ir::IsInShared(*buffer)) return false;
  if (IsClusterAxis(loop->thread_tag) &&
      ir::ScopeOf(*buffer) == ir::MemoryScope::kCluster) {
    return false;
  }
  OutsideAccess outside(loop.get(), buffer);
  outside.Visit(state.FunctionOf(loop.get())->body);
  if (outside.found) return false;
  bool written = false;
  for (const ir::BlockPtr& block : state.ChildBlocks(loop.get())) {
    const bool writes = FindRegion(block->writes, buffer) != nullptr;
    // Behind a condition it may not write at all; region cover knows what a
    // predicate leaves out. An init behind one may be left out while an update
    // is not, or begin another element than the one that is updated.
    if (writes &&
        (!CheckOnlyLoopsAbove(state, block.get()).ok() ||
         (block->init && (!PredicateOnlyGuardsDomain(state, *block) ||
                          !IsReduction(state, scope, block.get()))))) {
      return false;
    }
    if (FindRegion(block->reads, buffer) != nullptr &&
        (!written || !IsRegionCovered(state, block.get(), buffer))) {
      return false;
    }
    if (writes && block->init != nullptr) {
      // The iteration must begin the reduction, too.
      std::vector<ir::ForPtr> loops = state.LoopsAbove(loop.get());
      loops.push_back(loop);
      for (const ir::ForPtr& outer : loops) {
        if (ExtentOf(outer) == 1) continue;
        if (LoopFeedsIter(outer.get(), block.get(), ir::IterType::kReduce)) {
          return false;
        }
      }
    }
    written |= writes;
  }
  return true;
}

bool AreApart(const ScheduleState& state, std::vector<ir::ForPtr> loops,
              const ir::BlockNode& a, const ir::BufferRegion& of_a,
              const ir::BlockNode& b, const ir::BufferRegion& of_b) {
  std::erase_if(loops, [](const ir::ForPtr& loop) {
    return ir::IsConstInt(loop->extent, 1);
  });
  if (loops.size() != 1) return FindApart(state, loops, a, of_a, b, of_b);
  return state.facts().apart.Ask(
      loops[0]->var.get(), {&a, &of_a, state.LoopsAbove(&a)},
      {&b, &of_b, state.LoopsAbove(&b)},
      [&] { return FindApart(state, loops, a, of_a, b, of_b); });
}

absl::Status CheckIterationsIndependent(const ScheduleState& state,
                                        const BlockScope& scope,
                                        const ir::ForPtr& inner,
                                        const std::vector<ir::ForPtr>& loops) {
  for (const Dependency& dep : scope.dependencies()) {
    if (dep.src == dep.dst || !state.IsBelow(dep.src.get(), inner.get()) ||
        !state.IsBelow(dep.dst.get(), inner.get())) {
      continue;
    }
    if (dep.kind == DepKind::kRaw && IsRegionCovered(state, dep.dst.get())) {
      continue;
    }
    const bool reads_first = dep.kind == DepKind::kWar;
    const auto& later =
        dep.kind == DepKind::kRaw ? dep.dst->reads : dep.dst->writes;
    for (const ir::BufferRegion& access : later) {
      const ir::BufferNode* buffer = access.buffer.get();
      const ir::BufferRegion* earlier =
          FindRegion(reads_first ? dep.src->reads : dep.src->writes, buffer);
      if (earlier == nullptr ||
          AreApart(state, loops, *dep.src, *earlier, *dep.dst, access) ||
          IsPrivate(state, scope, inner, buffer)) {
        continue;
      }
      return state.Illegal(inner.get(), "block ", dep.dst->name,
                           dep.kind == DepKind::kRaw ? " reads" : " overwrites",
                           " what block ", dep.src->name,
                           reads_first ? " reads" : " writes",
                           " in another iteration");
    }
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::schedule
