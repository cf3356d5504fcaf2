// Copies of tiles to shared memory that a GPU's copy engine can make
// (arith/box_copy.h).
#ifndef TILEFARM_COMPILER_LOWER_WARPGROUP_FETCH_H_
#define TILEFARM_COMPILER_LOWER_WARPGROUP_FETCH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/arith/box_copy.h"
#include "compiler/ir/stmt.h"
#include "compiler/lower/index_math.h"
#include "compiler/lower/store_nest.h"

namespace tilefarm::lower {

struct WarpgroupOperand {
  ir::Buffer tensor;  // global memory
  ir::Buffer tile;    // rows, then columns, which are contiguous in the tensor
  int64_t rows = 0, columns = 0;
  bool rows_across = false;  // the columns are those of the product, not depth
  arith::BoxCopy copy;
};

// Why the matrix unit has no such tiles; empty: it has.
std::string WhyNoTile(const WarpgroupOperand& operand);

// `loop`: the loop that fetches tiles. `used_windows`: as in arith::CopiedTile;
// nullopt: the rows are no windows, whose places depend on the loop's variable.
// InvalidArgument with the reason if the engine can't make the copy.
absl::StatusOr<WarpgroupOperand> MatchFetch(
    const StoreNest& nest, const ir::ForNode& loop,
    std::optional<std::vector<arith::CopiedTile::Used>> used_windows,
    IndexMath& math);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_WARPGROUP_FETCH_H_
