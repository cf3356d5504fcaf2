// Copies to shared memory that the copy engine makes (arith/box_copy.h), as
// rules schedule them.
#ifndef TILEFARM_COMPILER_SPACE_GPU_ENGINE_COPIES_H_
#define TILEFARM_COMPILER_SPACE_GPU_ENGINE_COPIES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/schedule.h"

namespace tilefarm::space {

// The variables of the last two dimensions, which must be variables each.
std::optional<std::pair<size_t, size_t>> LastTwo(
    const ir::BlockNode& block, const std::vector<ir::Expr>& indices);

// Takes over what other copies do, the padding of a convolution among them.
absl::StatusOr<ir::BlockPtr> CopyFromTensor(schedule::Schedule& schedule,
                                            schedule::BlockRv copy);

// Whether the engine can copy tiles of what the block copies, of `step`
// elements along depth. `across`: its rows are along depth, not its columns.
bool CanCopyTiles(const ir::BlockNode& block, int64_t step, bool across);

// Whether tiles of up to `most` places, which are not along depth, end where
// the tensor does: of a slice before its end, the last tile would have elements
// that are no part of the slice. nullopt: places are no elements side by side,
// but windows, of which IsBoundOf (arith/window_rows.h) knows the last.
std::optional<bool> TilesEndWithTensor(const ir::BlockNode& block, int64_t most,
                                       bool across);

}  // namespace tilefarm::space

#endif  // TILEFARM_COMPILER_SPACE_GPU_ENGINE_COPIES_H_
