// Shared by primitives that rewrite a whole reduction: a check of the loops
// above it, and loops for the blocks that replace it.
#ifndef TILEFARM_COMPILER_SCHEDULE_OWN_LOOPS_H_
#define TILEFARM_COMPILER_SCHEDULE_OWN_LOOPS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/schedule_state.h"

namespace tilefarm::schedule {

// The loops above a reduction, outermost first: plain, serial, each bound to
// one variable, with nothing else below them; they run every instance of the
// variables' domains. FailedPrecondition otherwise.
absl::StatusOr<std::vector<ir::ForPtr>> CheckOwnLoops(
    const ScheduleState& state, const ir::BlockPtr& block);
// The same of a block that is complete or a reduction, and has a variable.
absl::StatusOr<std::vector<ir::ForPtr>> CheckLoopsOfVariables(
    const ScheduleState& state, const ir::BlockPtr& block);

// FailedPrecondition if the block has annotations, which are about the
// reduction as it is.
absl::Status CheckNoAnnotations(const ScheduleState& state,
                                const ir::BlockPtr& block);

// The name of the loop that `iter` is bound to, or of the variable if it is
// bound to another expression.
std::string LoopName(const ir::IterVar& iter);

// A variable of a new block, bound to a new loop.
ir::IterVar NewIter(const std::string& name, int64_t extent, ir::IterType type);

// The loop that `iter`, made by NewIter, is bound to.
ir::Stmt LoopOver(const ir::IterVar& iter, ir::Stmt body);

// `body` inside the loops of `iters`, outermost first.
ir::Stmt LoopsOver(const std::vector<ir::IterVar>& iters, ir::Stmt body);

// A block and the loops around it.
struct BlockNest {
  ir::BlockPtr block;
  ir::Stmt nest;
};
// The block, whose variables NewIter made, inside their loops, outermost first.
// Its body determines its accesses; it has no predicate.
BlockNest MakeNest(ir::BlockNode block);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_OWN_LOOPS_H_
