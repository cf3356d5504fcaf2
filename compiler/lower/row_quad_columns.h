// How the four lanes of a quad divide the columns of a kernel's rows
// (ir::kRowQuads): for spread_over_quads.cc.
#ifndef TILEFARM_COMPILER_LOWER_ROW_QUAD_COLUMNS_H_
#define TILEFARM_COMPILER_LOWER_ROW_QUAD_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/lower/index_math.h"

namespace tilefarm::lower {

// Of every 8 columns lane q of a quad has 2 * q and the next, as a fragment of
// sums does (matrix_units.h).
inline constexpr int64_t kQuadColumns = 8;

// A loop over columns, of which each lane runs a part: the loop's variable v,
// which `coefficient` * v of a column's number depend on, is
//
//   v = (g * lanes + q // weight % lanes) * pair + p
//
// with g < groups and p < pair. Loops whose coefficient is a multiple of 8 stay
// as they are.
struct ColumnLoop {
  int64_t coefficient = 1;
  int64_t groups = 1;
  int64_t lanes = 1;
  int64_t weight = 1;
  int64_t pair = 1;
  // Of the terms of a product, whose first operand is in registers: each lane
  // needs what all four have.
  bool terms = false;

  bool operator==(const ColumnLoop&) const = default;
};

enum class QuadRole {
  kAlike,      // writes local memory, the same in all lanes of a quad
  kColumns,    // each lane computes its columns
  kReduction,  // combines columns into an element that all lanes have
  kProduct,    // a nest of ir::kWarpMatrix
  kOnce,       // writes memory that threads share, without columns
};

struct RowQuads {
  // The dimension over columns, of local buffers that have one.
  std::map<const ir::BufferNode*, size_t> dims;
  // The loops that lanes divide.
  std::map<const ir::VarNode*, ColumnLoop> loops;
  std::map<const ir::StoreNode*, QuadRole> roles;

  // Where a lane has the column, an index of one of `dims`, in terms of the
  // loop's p and g, and of loops that are not divided.
  struct Parts {
    ir::Expr group, pair;
  };
  ir::Expr OwnIndex(IndexMath& math, const ir::Expr& column,
                    const std::map<const ir::VarNode*, Parts>& parts) const;
};

// Of the code of a thread whose variables are unique; `thread`: that of
// threadIdx.x, an iteration of which computes whole rows. InvalidArgument says
// what lanes cannot divide.
absl::StatusOr<RowQuads> DivideColumns(const ir::Stmt& body,
                                       const ir::VarNode* thread);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_ROW_QUAD_COLUMNS_H_
