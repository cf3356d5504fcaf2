// The primitives that move blocks, their buffers and their reductions. Each
// checks its preconditions and rewrites the state as described in
// schedule_state.h; arguments are those of Schedule's methods. The
// implementation files show the loop nests before and after.
#ifndef TILEFARM_COMPILER_SCHEDULE_BLOCK_PRIMITIVES_H_
#define TILEFARM_COMPILER_SCHEDULE_BLOCK_PRIMITIVES_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/schedule_state.h"

namespace tilefarm::schedule {

// compute_at.cc. With a root mark as `loop` nothing happens; an inline mark
// inlines. `index` is a position among the statements of the loop body; -1 is
// the last possible one (for compute_at, just before the consumers), -2 the
// first.
absl::Status ComputeAt(ScheduleState& state, BlockRv block, LoopRv loop,
                       bool preserve_unit_loops, int index);
absl::Status ReverseComputeAt(ScheduleState& state, BlockRv block, LoopRv loop,
                              bool preserve_unit_loops, int index);
// Whether ComputeAt would succeed there; changes nothing.
// sample_compute_location draws from such loops.
bool CanComputeAt(const ScheduleState& state, const ir::BlockPtr& block,
                  const ir::ForPtr& loop);

// inline.cc
absl::Status ComputeInline(ScheduleState& state, BlockRv block);
absl::Status ReverseComputeInline(ScheduleState& state, BlockRv block);
bool CanComputeInline(const ScheduleState& state, const ir::BlockPtr& block);

// cache.cc
absl::StatusOr<BlockRv> CacheRead(ScheduleState& state, BlockRv block,
                                  int read_buffer_index,
                                  std::string_view storage_scope,
                                  const std::vector<BlockRv>& consumers);
absl::StatusOr<BlockRv> CacheWrite(ScheduleState& state, BlockRv block,
                                   int write_buffer_index,
                                   std::string_view storage_scope,
                                   const std::vector<BlockRv>& consumers);
absl::StatusOr<BlockRv> Reindex(ScheduleState& state, BlockRv block, bool read,
                                int buffer_index);

// decompose_reduction.cc, rfactor.cc
absl::StatusOr<BlockRv> DecomposeReduction(ScheduleState& state, BlockRv block,
                                           LoopRv loop);
absl::StatusOr<BlockRv> Rfactor(ScheduleState& state, LoopRv loop,
                                int factor_axis);

// fission.cc
absl::StatusOr<std::vector<BlockRv>> Fission(ScheduleState& state,
                                             BlockRv block);

// skip_zeros.cc
absl::Status SkipZeros(ScheduleState& state, BlockRv block);

// winograd.cc
absl::StatusOr<std::vector<BlockRv>> Winograd(ScheduleState& state,
                                              BlockRv block, int tile);

// online_softmax.cc
absl::StatusOr<std::vector<BlockRv>> OnlineSoftmax(ScheduleState& state,
                                                   BlockRv block, int64_t chunk,
                                                   int64_t lanes);

// online_product.cc
absl::StatusOr<std::vector<BlockRv>> OnlineProduct(ScheduleState& state,
                                                   BlockRv block,
                                                   const Number& tile,
                                                   int64_t apart,
                                                   const Number& chunk);

// pad_einsum.cc
absl::Status PadEinsum(ScheduleState& state, BlockRv block,
                       const std::vector<int64_t>& padding);

// pad_softmax.cc
absl::Status PadSoftmax(ScheduleState& state, BlockRv block,
                        const std::vector<int64_t>& padding, int64_t depth);

// transform_block_layout.cc
absl::Status TransformBlockLayout(ScheduleState& state, BlockRv block,
                                  std::string_view index_map);

// layout.cc
absl::Status SetScope(ScheduleState& state, BlockRv block, int buffer_index,
                      std::string_view scope);
absl::Status StorageAlign(ScheduleState& state, BlockRv block, int buffer_index,
                          int axis, int factor, int offset);
absl::Status TransformLayout(ScheduleState& state, BlockRv block, bool read,
                             int buffer_index, std::string_view index_map);

// blockize.cc
absl::StatusOr<BlockRv> Blockize(ScheduleState& state, LoopRv loop);
absl::Status Tensorize(ScheduleState& state, BlockOrLoop where,
                       std::string_view intrinsic);

// call_library.cc
absl::Status CallLibrary(ScheduleState& state, BlockRv block,
                         std::string_view kernel);
// Checks that blocks which a library computes are still as CallLibrary
// requires. FailedPrecondition: the primitive must not change such a block.
absl::Status CheckLibraryBlocks(const ScheduleState& state);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_BLOCK_PRIMITIVES_H_
