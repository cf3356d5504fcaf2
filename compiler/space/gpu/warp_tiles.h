// What the rules for tensor cores by warps share: which blocks are products of
// the units, and how operands get into shared memory.
#ifndef TILEFARM_COMPILER_SPACE_GPU_WARP_TILES_H_
#define TILEFARM_COMPILER_SPACE_GPU_WARP_TILES_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "compiler/ir/matrix_units.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/schedule.h"
#include "compiler/space/gpu/products.h"
#include "compiler/target/gpu.h"

namespace tilefarm::space {

// Eight rows of a tile, of which a lane has one; eight columns, of which it has
// two.
inline constexpr int64_t kUnitRows = 8, kUnitColumns = 8;
// The terms of an instruction have 32 bytes.
inline constexpr int64_t kStepBytes = 32;

// The products of a block: C[.., i, .., j] += A[.. i .. k ..] * B[.. k .. j
// ..], where the other variables index all of them.
struct WarpProductSite {
  const ir::WarpProduct* unit = nullptr;
  size_t rows = 0, columns = 0, terms = 0;  // variables of the block
  int a = 0, b = 0;                         // reads of the block
};

// The best unit of the target for such elements; null: it has none.
const ir::WarpProduct* WarpUnitFor(const ProductFactors& factors,
                                   const target::GpuLimits& limits);
// nullopt: the block is no product of matrices, or the target has no unit for
// it.
std::optional<WarpProductSite> FindWarpProduct(const ir::BlockNode& block,
                                               const target::GpuLimits& limits);

// Copies an operand into shared memory at the loop, together with what makes it
// element by element. Rows lie apart such that lanes meet different banks.
absl::Status FetchForWarps(schedule::Schedule& schedule,
                           schedule::BlockRv block, int operand,
                           const ir::VarNode* terms, schedule::LoopRv at);

}  // namespace tilefarm::space

#endif  // TILEFARM_COMPILER_SPACE_GPU_WARP_TILES_H_
