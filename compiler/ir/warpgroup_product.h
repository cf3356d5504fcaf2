// Products by the matrix unit of a warpgroup (MachineOp::kWarpgroupProduct):
//
//   sums[64, columns] += a[64, depth] * b[depth, columns]
//
// or, if it does not add, sums = a * b.
//
// Operands are in shared memory, in tiles of rows of 128 bytes as boxes leave
// them (tensor_box.h). An operand whose rows run along depth is read from the
// tile of the address; one whose rows run across it has the next 128 bytes of
// columns in the next tile, `*_tile_bytes` further on (0: rows run along
// depth). The sums are in registers of 128 threads. Thread t has, of rows t /
// 32 * 16 + t % 32 / 4 + 8 * h and columns 8 * c + t % 4 * 2 + q:
//
//   sums[first + h * row_step + c * column_step + q * pair_step]
//
// The first operand may be in registers as well: each warp has the fragments of
// its 16 rows, as of a warp product (matrix_units.h).
#ifndef TILEFARM_COMPILER_IR_WARPGROUP_PRODUCT_H_
#define TILEFARM_COMPILER_IR_WARPGROUP_PRODUCT_H_

#include <cstdint>

#include "compiler/ir/expr.h"
#include "compiler/ir/machine_op.h"

namespace tilefarm::ir {

inline constexpr int64_t kWarpgroup = 128;     // threads
inline constexpr int64_t kWarpgroupRows = 64;  // of a product
// Of results, for each warpgroup: while one is copied, the next one is filled.
inline constexpr int64_t kStoreTiles = 2;

// What the unit multiplies (PTX ISA 8.5, wgmma). Operands have 16 bytes along
// depth twice: 16 numbers of 16 bits, 32 of 8.
struct WarpgroupUnit {
  DataType operand;
  DataType sum;
  int64_t depth;
  bool rows_across;  // whether rows of operands may run across depth
};

// Null if the unit has no such products.
const WarpgroupUnit* FindWarpgroupUnit(DataType operand, DataType sum);
// Whether it has products of so many columns.
bool IsWarpgroupColumns(int64_t columns);

struct WarpgroupProduct {
  Expr sums;  // a load of the first register
  Expr a, b;  // loads of the first element; or a: a variable, four int32 lanes
  int64_t columns = 0;
  int64_t a_tile_bytes = 0, b_tile_bytes = 0;
  int64_t row_step = 0, column_step = 0, pair_step = 0;
  bool adds = true;
};
Expr MakeWarpgroupProduct(const WarpgroupProduct& product);
WarpgroupProduct AsWarpgroupProduct(const MachineOpNode& op);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_WARPGROUP_PRODUCT_H_
