// The primitives that look up, sample, and rewrite loops. Each checks its
// preconditions and rewrites the state as described in schedule_state.h;
// arguments are those of Schedule's methods. The implementation files show the
// loop nests before and after.
#ifndef TILEFARM_COMPILER_SCHEDULE_LOOP_PRIMITIVES_H_
#define TILEFARM_COMPILER_SCHEDULE_LOOP_PRIMITIVES_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/schedule_state.h"

namespace tilefarm::schedule {

// lookup.cc
absl::StatusOr<BlockRv> GetBlock(ScheduleState& state, std::string_view name,
                                 std::string_view func_name);
absl::StatusOr<std::vector<LoopRv>> GetLoops(ScheduleState& state,
                                             BlockRv block);
absl::StatusOr<std::vector<BlockRv>> GetProducers(ScheduleState& state,
                                                  BlockRv block);
absl::StatusOr<std::vector<BlockRv>> GetConsumers(ScheduleState& state,
                                                  BlockRv block);
absl::StatusOr<std::vector<BlockRv>> GetChildBlocks(ScheduleState& state,
                                                    BlockOrLoop scope);

// sampling.cc. An empty `decision` is drawn and stored.
absl::StatusOr<std::vector<ExprRv>> SamplePerfectTile(
    ScheduleState& state, LoopRv loop, int n, int max_innermost_factor,
    std::optional<std::vector<int64_t>>& decision);
absl::StatusOr<std::vector<ExprRv>> SampleTile(
    ScheduleState& state, LoopRv loop, int n, int max_innermost_factor,
    std::optional<std::vector<int64_t>>& decision);
absl::StatusOr<ExprRv> SampleCategorical(ScheduleState& state,
                                         const std::vector<int64_t>& candidates,
                                         const std::vector<double>& probs,
                                         std::optional<int64_t>& decision);
absl::StatusOr<LoopRv> SampleComputeLocation(ScheduleState& state,
                                             BlockRv block,
                                             std::optional<int64_t>& decision);

// split.cc
absl::StatusOr<std::vector<LoopRv>> Split(ScheduleState& state, LoopRv loop,
                                          const std::vector<Factor>& factors,
                                          bool preserve_unit_iters,
                                          bool disable_predication);
// fuse.cc
absl::StatusOr<LoopRv> Fuse(ScheduleState& state,
                            const std::vector<LoopRv>& loops,
                            bool preserve_unit_iters);
// reorder.cc
absl::Status Reorder(ScheduleState& state, const std::vector<LoopRv>& order);
absl::StatusOr<LoopRv> AddUnitLoop(ScheduleState& state, BlockOrLoop where);

// for_kind.cc
absl::Status Parallel(ScheduleState& state, LoopRv loop);
absl::Status Vectorize(ScheduleState& state, LoopRv loop);
absl::Status Unroll(ScheduleState& state, LoopRv loop);
absl::Status Bind(ScheduleState& state, LoopRv loop,
                  std::string_view thread_axis);
// Checks that every loop whose iterations run at the same time may still do so:
// a primitive that moves code can make a buffer shared between iterations that
// was private to each of them.
absl::Status CheckConcurrentLoops(const ScheduleState& state);

// annotate.cc
absl::Status Annotate(ScheduleState& state, BlockOrLoop where,
                      std::string_view key, const AnnValue& value);
absl::Status Unannotate(ScheduleState& state, BlockOrLoop where,
                        std::string_view key);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_LOOP_PRIMITIVES_H_
