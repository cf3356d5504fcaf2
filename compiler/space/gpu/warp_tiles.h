// What the rules for tensor cores by warps share: which blocks are products of
// the units, and how operands get into shared memory.
#ifndef TILEFARM_COMPILER_SPACE_GPU_WARP_TILES_H_
#define TILEFARM_COMPILER_SPACE_GPU_WARP_TILES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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
// The largest tiles of a warp, which fill its registers (64 x 64 sums are 128
// of 255), and steps of a fetch.
inline constexpr int64_t kMostTileRows = 8, kMostTileColumns = 8;
inline constexpr int64_t kMostSteps = 4;

// A product and the unit that computes it.
struct WarpProductSite : MatrixProduct {
  const ir::WarpProduct* unit = nullptr;
};

// The best unit of the target for such elements; null: it has none.
const ir::WarpProduct* WarpUnitFor(const ProductFactors& factors,
                                   const target::GpuLimits& limits);
// nullopt: the block is no product of matrices, or the target has no unit for
// it.
std::optional<WarpProductSite> FindWarpProduct(const ir::BlockNode& block,
                                               const target::GpuLimits& limits);

// Whether whole tiles of warps make up the product, without padding.
bool TilesDivide(const ir::BlockNode& block, const WarpProductSite& product);

// A product whose tiles are padded to more than this many times its terms would
// be mostly zeros.
inline constexpr double kMostPadding = 2;
int64_t RoundUpBy(int64_t extent, int64_t step);
// The largest power of two from `least` to `largest` to a multiple of which the
// extent may be rounded up, to `most` times as much; `least` if there is none.
int64_t PaddingOf(int64_t extent, int64_t least, int64_t largest, double most);

// Powers of two up to `most`, from `least` or less; the default is `first`.
absl::StatusOr<schedule::ExprRv> SamplePower(schedule::Schedule& schedule,
                                             int64_t least, int64_t most,
                                             int64_t first);

// The loops of a product for warps: `outer` around those of warps; the tiles of
// a warp and the lanes in rows and columns; the terms by fetch, step and
// instruction; and pairs of columns.
struct WarpLoops {
  std::vector<schedule::LoopRv> outer;
  schedule::LoopRv row_warps, column_warps, row_tile, column_tile, row_lanes,
      column_lanes;
  std::vector<schedule::LoopRv> terms;
  schedule::LoopRv pair;
};
struct BoundWarps {
  schedule::LoopRv blocks;  // the loop over them, if it was bound
  schedule::LoopRv lanes, fetches;
};
// Orders the loops, binds those of warps and lanes, and annotates those of
// terms for the unit; draws the stages of the fetches. `block`: also binds the
// outer loops, which are its.
absl::StatusOr<BoundWarps> BindWarps(schedule::Schedule& schedule,
                                     const WarpLoops& loops,
                                     const ir::WarpProduct& unit,
                                     std::optional<schedule::BlockRv> block,
                                     int64_t most_stages, int64_t first_stages);

// Copies both operands into shared memory at the loop, together with what makes
// them element by element. Rows lie apart such that lanes meet different banks.
absl::Status FetchOperands(schedule::Schedule& schedule,
                           schedule::BlockRv block,
                           const WarpProductSite& product, schedule::LoopRv at);
// Likewise one of them, a read of the block. `second_terms`: lanes read every
// second term (lower/warp_matrix_nest.h).
absl::Status FetchOperand(schedule::Schedule& schedule, schedule::BlockRv block,
                          const WarpProductSite& product, int operand,
                          schedule::LoopRv at, bool second_terms = false);

}  // namespace tilefarm::space

#endif  // TILEFARM_COMPILER_SPACE_GPU_WARP_TILES_H_
