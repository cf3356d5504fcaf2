// Recognises nests that tensor cores of a GPU compute (ir::kWarpMatrix).
#ifndef TILEFARM_COMPILER_LOWER_WARP_MATRIX_NEST_H_
#define TILEFARM_COMPILER_LOWER_WARP_MATRIX_NEST_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/lower/index_math.h"

namespace tilefarm::lower {

// A perfect nest of serial loops around one store.
struct LoopNest {
  std::vector<const ir::ForNode*> loops;  // outermost first
  const ir::StoreNode* store = nullptr;   // null: the nest is not perfect
};
LoopNest PerfectNest(const ir::ForNode& outermost);

// The nest of one thread as products of tiles. Element r, t of operand a, row r
// of a tile of 16 and term t of an instruction, is
//
//   a.buffer[a.base + row tile's first + step's first + r * a.apart + t *
//   a.term]
//
// and likewise element t, c of operand b. The bases do not depend on the lane.
// Operand a may instead be in registers: each lane has what it needs of an
// instruction's terms side by side, 2 of every 8. Of 16-bit numbers these are
// the two of a register, in the order of the registers' chunks
// (ir/matrix_units.h). 32-bit ones have registers of their own; the terms of a
// chunk are then every second one of 8, of operand b as well.
struct WarpMatrixNest {
  struct Operand {
    ir::Buffer buffer;
    ir::Expr base;
    int64_t apart = 0;  // between rows (columns)
    int64_t term = 0;   // between terms
    bool in_registers = false;
  };
  // A tile's rows as lane 0 has them: of its first sums, those 8 rows below,
  // and of the operand.
  struct Rows {
    int64_t sums = 0, lower_sums = 0, operand = 0, lower_operand = 0;
  };
  struct Columns {
    int64_t sums = 0, operand = 0;
  };
  struct Step {
    int64_t a = 0, b = 0;
  };

  int unit = 0;  // of ir::kWarpProducts
  Operand a, b;
  ir::Buffer sums;
  ir::Expr sums_base;
  std::vector<Rows> rows;
  std::vector<Columns> columns;
  std::vector<Step> steps;  // one instruction's terms each
};

// `lane`: the variable of threadIdx.x, of 32 iterations. `value`: of the
// annotation. InvalidArgument says what does not fit.
absl::StatusOr<WarpMatrixNest> AnalyzeWarpMatrix(IndexMath& math,
                                                 const LoopNest& nest,
                                                 const ir::Var& lane,
                                                 std::string_view value,
                                                 int architecture);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_WARP_MATRIX_NEST_H_
