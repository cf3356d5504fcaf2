// Sums over whole tiles, on copies padded with zeros (pad_einsum.cc), as parts
// of other primitives.
#ifndef TILEFARM_COMPILER_SCHEDULE_PAD_EINSUM_H_
#define TILEFARM_COMPILER_SCHEDULE_PAD_EINSUM_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/schedule_state.h"
#include "compiler/schedule/scope_edit.h"

namespace tilefarm::schedule {

struct PaddedEinsum {
  ir::BlockPtr block;  // over whole tiles
  // What it accesses instead of each buffer that does not have whole tiles.
  std::vector<std::pair<const ir::BufferNode*, ir::Buffer>> pads;
};

// Adds the new block and the copies to the edit of its scope, but no copy of
// `made_padded`, which the caller makes with padding, or reads with it.
absl::StatusOr<PaddedEinsum> PadEinsumIn(const ScheduleState& state,
                                         const ir::BlockPtr& block,
                                         const std::vector<int64_t>& padding,
                                         const ir::BufferNode* made_padded,
                                         ScopeEditor& edit);

// The block in such loops, each as long as the domain of the variable that is
// bound to it.
ir::Stmt NestOfDomain(const std::vector<ir::ForPtr>& loops,
                      const ir::BlockPtr& block);

// Replaces the block.
absl::StatusOr<PaddedEinsum> PadEinsum(ScheduleState& state,
                                       const ir::BlockPtr& block,
                                       const std::vector<int64_t>& padding);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_PAD_EINSUM_H_
