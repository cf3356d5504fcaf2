// Copies of tiles to shared memory that a GPU's copy engine can make
// (arith/box_copy.h).
#ifndef TILEFARM_COMPILER_LOWER_WARPGROUP_FETCH_H_
#define TILEFARM_COMPILER_LOWER_WARPGROUP_FETCH_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/arith/box_copy.h"
#include "compiler/ir/stmt.h"
#include "compiler/lower/index_math.h"

namespace tilefarm::lower {

// A store in a perfect nest.
struct StoreNest {
  std::vector<const ir::ForNode*> loops;
  std::vector<ir::Expr> conditions;
  const ir::StoreNode* store = nullptr;  // null: the nest is something else
};
StoreNest NestOf(ir::Stmt stmt);

// The indices of dimensions with several elements; nullopt if others are not 0.
std::optional<std::vector<ir::Expr>> WideIndices(
    const ir::BufferNode& buffer, const std::vector<ir::Expr>& indices);

struct WarpgroupOperand {
  ir::Buffer tensor;  // global memory
  ir::Buffer tile;    // rows, then columns, which are contiguous in the tensor
  int64_t rows = 0, columns = 0;
  bool rows_across = false;  // the columns are those of the product, not depth
  arith::BoxCopy copy;
};

// `loop`: the loop that fetches tiles. `used_windows`: as in arith::CopiedTile;
// nullopt: the rows are no windows, whose places depend on the loop's variable.
// InvalidArgument with the reason if the engine can't make the copy.
absl::StatusOr<WarpgroupOperand> MatchFetch(
    const StoreNest& nest, const ir::ForNode& loop,
    std::optional<std::vector<arith::CopiedTile::Used>> used_windows,
    IndexMath& math);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_WARPGROUP_FETCH_H_
