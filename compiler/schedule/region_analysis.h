// What primitives that move or copy blocks must know about regions: what a
// block touches while some of its loops run, whether it surely writes all of
// it, and whether a value is final.
//
// Two directions of error matter. A *hull* may be too large: good for what is
// needed. A *dense* region is written in every element: good for what is
// there.
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

// Binds the variables to the loops' ranges; a loop of one iteration is its
// minimum.
void BindLoops(arith::Analyzer& analyzer, const std::vector<ir::ForPtr>& loops);

// Block variable -> binding.
ir::VarMap BindingsOf(const ir::BlockNode& block);
// The ranges of the block variables; `spatial_only`: without reduce ones.
arith::VarRanges DomainOf(const ir::BlockNode& block,
                          bool spatial_only = false);

// The loops above `stmt` that are at or above `loop`, and those below it;
// both outermost first. `loop` null: all of them are below.
struct LoopCut {
  std::vector<ir::ForPtr> outer;
  std::vector<ir::ForPtr> inner;
};
LoopCut CutLoops(const ScheduleState& state, const ir::StmtNode* stmt,
                 const ir::ForNode* loop);
// The loops that have both statements below them, within their scope.
std::vector<ir::ForPtr> SharedLoops(const ScheduleState& state,
                                    const ir::StmtNode* a,
                                    const ir::StmtNode* b);

// The region in terms of loops instead of block variables.
ir::BufferRegion SubstituteRegion(const ir::BufferRegion& region,
                                  const ir::VarMap& vars);

// The hull of the block's accesses while `inner` loops run. Thread loops in
// `outer` count as running where the buffer is shared between their threads.
arith::Region HullOf(arith::Analyzer& analyzer, const ir::BlockNode& block,
                     const ir::BufferRegion& region,
                     const std::vector<ir::ForPtr>& inner,
                     const std::vector<ir::ForPtr>& outer = {});

// The region that `region`, over `iters`, writes in every element; nullopt
// where that is not a box or cannot be shown. `vars` is substituted first.
std::optional<arith::Region> DenseRegion(const ir::BufferRegion& region,
                                         const ir::VarMap& vars,
                                         const arith::VarRanges& iters,
                                         arith::Analyzer& analyzer);

// The block's predicate is false only where a binding leaves its variable's
// domain: it guards a tail and nothing else.
bool PredicateOnlyGuardsDomain(const ScheduleState& state,
                               const ir::BlockNode& block);

// The region lies in what `write` covers while the block's variables run over
// their domains: beyond it the predicate keeps the block from running.
bool RegionInImage(const ir::BlockNode& block, const ir::BufferRegion& write,
                   const arith::Region& region, arith::Analyzer& analyzer);

// An instance of the block surely writes every element of `write`, one of its
// declared regions, which is only a hull where blocks are nested.
bool WritesAll(const ScheduleState& state, const ir::BlockNode& block,
               const ir::BufferRegion& write);

// While the loops `inner` run, the block surely writes every element of
// `needed` through `write`: no condition, predicate or gap leaves one out.
bool SurelyWrites(const ScheduleState& state, const ir::BlockNode& block,
                  const ir::BufferRegion& write,
                  const std::vector<ir::ForPtr>& inner,
                  const arith::Region& needed, arith::Analyzer& analyzer);

// Every instance in the domain of the block's variables runs at least once
// (`exactly_once`: and no more) while `inner` runs; bindings' other variables
// count as constants, so with fewer than all loops this holds only for
// dimensions bound to none of them.
bool CoversDomain(const ScheduleState& state, const ir::BlockNode& block,
                  bool exactly_once);

// No instance runs twice while the loops run.
bool RunsAtMostOnce(const ScheduleState& state, const ir::BlockNode& block,
                    const std::vector<ir::ForPtr>& loops);

// Elements of `buffer` that `producer` writes in one iteration of `loops` are
// not written again, with another value, in another one: no loop of more than
// one iteration feeds a reduce variable or a spatial one that the index does
// not tell apart.
absl::Status CheckFinalIn(const ScheduleState& state,
                          std::string_view primitive,
                          const ir::BlockNode& producer,
                          const ir::BufferNode* buffer,
                          const std::vector<ir::ForPtr>& loops);

// Different spatial instances write different elements.
bool WritesAreDistinct(const ir::BlockNode& block);

// Nothing but loops and sequences stands between the statement and its scope.
absl::Status CheckOnlyLoopsAbove(const ScheduleState& state,
                                 std::string_view primitive,
                                 const ir::StmtNode* stmt);

// The region of the block's access to the buffer; null where there is none.
const ir::BufferRegion* FindRegion(const std::vector<ir::BufferRegion>& regions,
                                   const ir::BufferNode* buffer);

// A name that no buffer of the function has: `base`, `base_1`, ...
std::string FreshBufferName(const ir::PrimFunc& function,
                            std::string_view base);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_REGION_ANALYSIS_H_
