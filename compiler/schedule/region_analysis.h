// Region analysis for primitives that move or copy blocks: what a block
// accesses while some of its loops run, whether it surely writes all of a
// region, and whether a value is final.
//
// A *hull* may be too large, so it is used for what is needed. In a *dense*
// region, every element is written, so it is used for what is available.
#ifndef TILEFARM_COMPILER_SCHEDULE_REGION_ANALYSIS_H_
#define TILEFARM_COMPILER_SCHEDULE_REGION_ANALYSIS_H_

#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "compiler/arith/int_set.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/schedule_state.h"

namespace tilefarm::schedule {

// Binds the variables to the loops' ranges; the variable of a loop of one
// iteration is replaced by its minimum.
void BindLoops(arith::Analyzer& analyzer, const std::vector<ir::ForPtr>& loops);

// Block variable -> binding.
ir::VarMap BindingsOf(const ir::BlockNode& block);
// The bindings in the order of the variables.
std::vector<ir::Expr> BindingList(const ir::BlockNode& block);
// The ranges of the block variables; `spatial_only`: without reduce ones.
arith::VarRanges DomainOf(const ir::BlockNode& block,
                          bool spatial_only = false);

// The loops above `stmt` up to `loop` (`outer`, which includes it) and below it
// (`inner`), outermost first. If `loop` is null, all of them are inner.
struct LoopCut {
  std::vector<ir::ForPtr> outer;
  std::vector<ir::ForPtr> inner;
};
LoopCut CutLoops(const ScheduleState& state, const ir::StmtNode* stmt,
                 const ir::ForNode* loop);
// The loops, within their scope, that contain both statements.
std::vector<ir::ForPtr> SharedLoops(const ScheduleState& state,
                                    const ir::StmtNode* a,
                                    const ir::StmtNode* b);

// The region in terms of loops instead of block variables.
ir::BufferRegion SubstituteRegion(const ir::BufferRegion& region,
                                  const ir::VarMap& vars);

// The hull of the block's accesses while the `inner` loops run. Thread loops in
// `outer` also run if their threads share the buffer.
arith::Region HullOf(arith::Analyzer& analyzer, const ir::BlockNode& block,
                     const ir::BufferRegion& region,
                     const std::vector<ir::ForPtr>& inner,
                     const std::vector<ir::ForPtr>& outer = {});

// The set of elements that `region` covers completely while `iters` run where
// the condition holds (null: everywhere); nullopt if it is not a box or cannot
// be determined. Applies `vars` to the region first.
std::optional<arith::Region> DenseRegion(const ir::BufferRegion& region,
                                         const ir::VarMap& vars,
                                         const arith::VarRanges& iters,
                                         arith::Analyzer& analyzer,
                                         const ir::Expr& where = nullptr);

// The conditions of the block's predicate that may be false although each
// binding is within its variable's domain, such as those of a split of a copy's
// loops; a constant `true` if there are none.
ir::Expr ConditionsBeyondDomain(const ScheduleState& state,
                                const ir::BlockNode& block);
// The block's predicate is false only if a binding leaves its variable's
// domain: it only guards tails.
bool PredicateOnlyGuardsDomain(const ScheduleState& state,
                               const ir::BlockNode& block);

// The region is inside the region that `write` covers while the block's
// variables run over their domains; outside of it, the predicate is false.
bool RegionInImage(const ir::BlockNode& block, const ir::BufferRegion& write,
                   const arith::Region& region, arith::Analyzer& analyzer);

// An instance of the block surely writes every element of `write`, one of its
// declared regions. A declared region may be only a hull if blocks are nested.
bool WritesAll(const ScheduleState& state, const ir::BlockNode& block,
               const ir::BufferRegion& write);

// While the loops `inner` run, the block surely writes every element of
// `needed` through `write`: no condition, predicate or gap excludes any.
bool SurelyWrites(const ScheduleState& state, const ir::BlockNode& block,
                  const ir::BufferRegion& write,
                  const std::vector<ir::ForPtr>& inner,
                  const arith::Region& needed, arith::Analyzer& analyzer);

// Every instance in the domain of the block's variables runs at least once
// (with `exactly_once`, exactly once) while `inner` runs. Other variables in
// the bindings count as constants, so if `inner` is not all loops, this holds
// only for dimensions that are bound to none of the others.
bool CoversDomain(const ScheduleState& state, const ir::BlockNode& block,
                  bool exactly_once);

// No instance runs more than once while the loops run.
bool RunsAtMostOnce(const ScheduleState& state, const ir::BlockNode& block,
                    const std::vector<ir::ForPtr>& loops);

// Checks that elements of `buffer` that `producer` writes in one iteration of
// `loops` are not overwritten in another iteration: no loop of more than one
// iteration feeds a reduce variable, or a spatial variable on which the written
// element does not depend.
absl::Status CheckFinalIn(const ScheduleState& state,
                          const ir::BlockNode& producer,
                          const ir::BufferNode* buffer,
                          const std::vector<ir::ForPtr>& loops);

// Different spatial instances write different elements.
bool WritesAreDistinct(const ir::BlockNode& block);

// Only loops and sequences are between the statement and its scope.
absl::Status CheckOnlyLoopsAbove(const ScheduleState& state,
                                 const ir::StmtNode* stmt);

// The region of the buffer in the list; null if there is none.
const ir::BufferRegion* FindRegion(const std::vector<ir::BufferRegion>& regions,
                                   const ir::BufferNode* buffer);

// A name that no buffer of the function has: `base`, `base_1`, ...
std::string FreshBufferName(const ir::PrimFunc& function,
                            std::string_view base);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_REGION_ANALYSIS_H_
