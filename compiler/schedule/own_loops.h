// What primitives that rewrite a whole reduction ask of the loops above it, and
// the loops of the blocks that they write instead.
#ifndef TILEFARM_COMPILER_SCHEDULE_OWN_LOOPS_H_
#define TILEFARM_COMPILER_SCHEDULE_OWN_LOOPS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/schedule_state.h"

namespace tilefarm::schedule {

// The loops above a reduction, outermost first: plain, serial, one for each of
// its variables, and nothing else below them. FailedPrecondition otherwise.
absl::StatusOr<std::vector<ir::ForPtr>> CheckOwnLoops(
    const ScheduleState& state, std::string_view primitive,
    const ir::BlockPtr& block);

// What the loop is called that `iter` is bound to; where it is bound to
// something else, what the variable is called.
std::string LoopName(const ir::IterVar& iter);

// A variable of a new block, and the loop of its own that it is bound to.
ir::IterVar NewIter(const std::string& name, int64_t extent, ir::IterType type);

// The loop that `iter`, one of NewIter's, is bound to.
ir::Stmt LoopOver(const ir::IterVar& iter, ir::Stmt body);

// `body` in the loops of `iters`, outermost first.
ir::Stmt LoopsOver(const std::vector<ir::IterVar>& iters, ir::Stmt body);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_OWN_LOOPS_H_
