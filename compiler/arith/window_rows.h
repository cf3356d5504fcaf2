// Which elements of a tensor the rows of a tile have, where the tensor's last
// dimension runs along a row.
#ifndef TILEFARM_COMPILER_ARITH_WINDOW_ROWS_H_
#define TILEFARM_COMPILER_ARITH_WINDOW_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "compiler/arith/index_math.h"
#include "compiler/ir/expr.h"

namespace tilefarm::arith {

// The number with these digits, of which each but the first is below its count,
// in its simplest form.
ir::Expr NumberOf(IndexMath& math, const std::vector<ir::Expr>& digits,
                  const std::vector<int64_t>& counts);

// An element's place in a tensor as another one with the same elements.
struct TensorView {
  std::vector<ir::Expr> indices;
  std::vector<int64_t> shape;
};
// As the tensor whose dimensions from `first` to the last but one are one, with
// the index of that one in its simplest form.
TensorView MergeRows(IndexMath& math, const std::vector<ir::Expr>& indices,
                     const std::vector<int64_t>& shape, size_t first);

// The windows of a convolution. Row r of a tile has the number m = first + r,
// whose digits, the last one the fastest, are
//
//   m = ((n * counts[0] + p0) * counts[1] + p1) ..
//
// and the elements of image n at
//
//   indices[i] = p_i * steps[i] + lower[i] + offsets[i]
//
// for each spatial dimension i; the offsets are the place in the window. All of
// them are at least 0.
struct WindowRows {
  int64_t images = 1;
  bool has_images = false;  // the tensor's first dimension, else one image
  std::vector<int64_t> counts, steps, lower;
  std::vector<ir::Expr> offsets;
  // Of the tile's first row: n, then p_i * steps[i] + lower[i].
  std::vector<ir::Expr> origin;
  ir::Expr first;

  // Of all windows.
  int64_t rows() const;
};

// `indices`: of the elements of row `row`. `is_place`: of the variables of
// offsets. `rows`: so many rows exist; nullopt: as many as indices have values
// for.
std::optional<WindowRows> FindWindowRows(
    IndexMath& math, const std::vector<ir::Expr>& indices,
    const std::vector<int64_t>& shape, const ir::Var& row,
    const std::function<bool(const ir::Expr&)>& is_place,
    std::optional<int64_t> rows);

// Whether the condition is that 0 <= index or index < extent.
bool IsBoundOf(IndexMath& math, const ir::Expr& condition,
               const ir::Expr& index, int64_t extent);

}  // namespace tilefarm::arith

#endif  // TILEFARM_COMPILER_ARITH_WINDOW_ROWS_H_
