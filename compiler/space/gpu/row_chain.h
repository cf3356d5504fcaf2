// What the rules for chains of rows share, such as attention: a product whose
// operand a chain of blocks makes row by row from another product.
#ifndef TILEFARM_COMPILER_SPACE_GPU_ROW_CHAIN_H_
#define TILEFARM_COMPILER_SPACE_GPU_ROW_CHAIN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/schedule.h"
#include "compiler/space/gpu/warp_tiles.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {

// Rows of results may take this part of a block's shared memory, in eighths;
// the rest is for operands.
inline constexpr int64_t kRowsShare = 6;

// How the products of a chain are tiled. Threads are threadIdx.x, the lanes of
// a warp, and threadIdx.y, the warps.
class ChainTiles {
 public:
  virtual ~ChainTiles() = default;
  // Whether the block is a product that TileInner tiles.
  virtual bool IsProduct(const ir::BlockNode& block) const = 0;
  // Tiles the last product: a block of threads has some rows and all columns,
  // so that nothing of the chain is computed twice. Copies its operands into
  // shared memory, with what makes them element by element. Returns the loop of
  // blocks. Called first, and once.
  virtual absl::StatusOr<schedule::LoopRv> TileLast(
      schedule::Schedule& schedule, schedule::BlockRv block) = 0;
  // Tiles a product below the loop of blocks, by the same rows, with its
  // results in shared memory: those of the elementwise block that alone reads
  // them, if there is one.
  virtual absl::Status TileInner(schedule::Schedule& schedule,
                                 schedule::BlockRv block,
                                 std::optional<schedule::BlockRv> writer) = 0;
  // Of a block, all of them: the numbers whose product it is.
  virtual std::vector<schedule::ExprRv> Warps() const = 0;
  // The rows of all tiles over those of the product.
  virtual double Padding() const { return 1; }
};

// Computes the chain of the product's first operand below its tiles of rows,
// reductions by a warp for each row. FailedPrecondition: there is no other
// product in it, or a block that nothing is known of.
absl::Status ChainRows(const RuleContext& context, schedule::Schedule& schedule,
                       schedule::BlockRv last, ChainTiles& tiles);

// Exponentials, scales and masks become part of the blocks that add, divide and
// compare them.
absl::Status InlineExponents(schedule::Schedule& schedule,
                             schedule::BlockRv product,
                             const std::string& function);

// Extents are rounded up to multiples of `least`, or of a larger power of two
// up to `largest` that adds little.
struct PaddingRange {
  int64_t least, largest;
};
struct ChainPadding {
  PaddingRange rows, terms;
  int64_t depth;  // of the terms of scores
};
// Rounds up the extents of a product with a softmax and of what makes its
// exponents (pad_softmax). FailedPrecondition: it is none, or would be mostly
// padding.
absl::Status PadChain(schedule::Schedule& schedule, schedule::BlockRv block,
                      const WarpProductSite& product,
                      const ChainPadding& padding);

// For TileInner: sums go to registers, and from those to shared memory at the
// loop, by `writer` or a copy. Rows lie so many banks apart.
absl::Status StoreShared(schedule::Schedule& schedule, schedule::BlockRv block,
                         std::optional<schedule::BlockRv> writer,
                         schedule::LoopRv at, int banks_apart);

}  // namespace tilefarm::space

#endif  // TILEFARM_COMPILER_SPACE_GPU_ROW_CHAIN_H_
