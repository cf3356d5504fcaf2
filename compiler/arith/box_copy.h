// Whether a GPU's copy engine (ir/tensor_box.h) can copy a tile:
//
//   for row, column: tile[row, column] = if_then_else(conditions, T[..], 0)
//
// where columns are along the tensor's last dimension, and rows along another
// one; or along all others as if they were one; or the pixels of a
// convolution's windows at one place of them.
#ifndef TILEFARM_COMPILER_ARITH_BOX_COPY_H_
#define TILEFARM_COMPILER_ARITH_BOX_COPY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "compiler/arith/index_math.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/tensor_box.h"

namespace tilefarm::arith {

struct BoxCopy {
  // How the engine sees the tensor; without the box, but of windows with it.
  // Rows are along row_dim of its sizes, columns along the last one.
  ir::TensorMap map;
  size_t row_dim = 0;
  // The tile's first element, and the place in windows.
  std::array<ir::Expr, ir::kMaxBoxDims> origin;
  std::array<ir::Expr, ir::kMaxSpatial> offsets;
  // The number of the tile's first row, and of all rows of the tensor.
  ir::Expr first_row;
  int64_t tensor_rows = 0;
  // Rows of the tile may be beyond those of the tensor, where the engine has 0
  // and the program perhaps another element: whoever uses them must not.
  bool differs_beyond = false;
};

struct CopiedTile {
  ir::CopiedLoad element;
  ir::Var row, column;
  int64_t rows = 0;  // values of `row`
  // Of the variables of the place in a window; empty: the rows are no windows.
  std::function<bool(const ir::Expr&)> is_place;
  // The windows that are used, where the program copies others, too: the number
  // of the tile's first one, and of all.
  struct Used {
    ir::Expr first;
    int64_t count = 0;
  };
  std::vector<Used> used_windows;
};

// `math` knows the bounds of the variables. nullopt: the engine can't, or there
// are conditions other than the tensor's bounds.
std::optional<BoxCopy> FindBoxCopy(IndexMath& math, const CopiedTile& tile);

}  // namespace tilefarm::arith

#endif  // TILEFARM_COMPILER_ARITH_BOX_COPY_H_
