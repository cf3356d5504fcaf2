// Copies of boxes of tensors by a GPU's copy engine (MachineOp::kCopyBox,
// kCopyWindows and kStoreBox).
//
//   tensor, global memory          shared memory, rows of 128 bytes
//   +---------------------+
//   |    origin           |        +--------+ 0
//   |      +------+       |  ->    |        | 128
//   |      |      |       |        +--------+ ...
//   |      +------+       |
//   +---------------------+
//
// A box's last dimension is one row of 128 bytes. In row r of shared memory,
// whose tiles begin at multiples of 1024 bytes, the 16 bytes c of the row are
// at place c ^ r % 8 (the swizzle, which lets products read columns at full
// speed). Elements outside of the tensor are 0.
//
// Windows are what a convolution multiplies (im2col): a row of shared memory
// has channels of one pixel, and the next row those of the next window's pixel
// at the same place, along the width, then along the height, and then of the
// next image.
#ifndef TILEFARM_COMPILER_IR_TENSOR_BOX_H_
#define TILEFARM_COMPILER_IR_TENSOR_BOX_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/ir/machine_op.h"

namespace tilefarm::ir {

inline constexpr int kMaxBoxDims = 5;
inline constexpr int64_t kBoxRowBytes = 128;
// Of the shared memory of a tile.
inline constexpr int64_t kBoxAlignment = 1024;
inline constexpr int64_t kMaxBoxExtent = 256;
// Rows of a tensor are a multiple of so many bytes apart.
inline constexpr int64_t kTensorRowBytes = 16;
// Dimensions that windows slide along.
inline constexpr int kMaxSpatial = 3;

// What the engine knows of a tensor before the copies. Dimensions as those of
// buffers, the contiguous one last; missing ones come first and have extent 1.
struct TensorMap {
  Buffer buffer;
  std::array<int64_t, kMaxBoxDims> sizes;
  std::array<int64_t, kMaxBoxDims> box;
  // Of windows; 0: boxes. The sizes are those of images, depth, height, width
  // and channels, of which the first spatial ones may be missing and are 1; the
  // box has as many pixels in its first dimension.
  int spatial = 0;
  // By depth, height and width: the first elements of windows are from `lower`
  // to the size - 1 + `upper`, `steps` apart.
  std::array<int64_t, kMaxSpatial> lower = {}, upper = {}, steps = {1, 1, 1};
  bool operator==(const TensorMap&) const = default;
};

// The map of boxes of a dense buffer, which is seen with at most 5 dimensions.
TensorMap MakeTensorMap(const Buffer& buffer, const std::vector<int64_t>& shape,
                        const std::vector<int64_t>& box);

// The windows of convolutions that the engine can copy; `pixels` and `channels`
// of a copy. By spatial dimension: the first window begins at `lower`, `counts`
// windows are `steps` apart. nullopt: some number is too large.
std::optional<TensorMap> MakeWindowMap(const Buffer& buffer, int64_t images,
                                       const std::vector<int64_t>& lower,
                                       const std::vector<int64_t>& counts,
                                       const std::vector<int64_t>& steps,
                                       int64_t pixels, int64_t channels);
// The largest place in a window that copies can have.
int64_t MaxWindowOffset(int spatial);

// The number of dimensions that the engine knows: from the first that is longer
// than 1, at least two.
int MapDims(const TensorMap& map);

// Copies the box at `origin` to shared memory; `to` is a load of its first
// element. Its bytes count for the arrival barrier, a load, when they are
// there.
Expr CopyBox(const TensorMap& map, const std::vector<Expr>& origin, Expr to,
             Expr barrier);

// Copies the elements at one place of windows, `offsets` from their first ones:
// images, depth, height and width of the first window's first element, and the
// first channel, are the origin.
Expr CopyWindows(const TensorMap& map,
                 const std::array<Expr, kMaxBoxDims>& origin,
                 const std::array<Expr, kMaxSpatial>& offsets, Expr to,
                 Expr barrier);

// The other way: copies what is in shared memory to the box at `origin`, but
// nothing outside of the tensor. `from` is a load of its first element.
Expr StoreBox(const TensorMap& map, const std::vector<Expr>& origin, Expr from);

struct BoxCopy {
  TensorMap map;
  std::array<Expr, kMaxBoxDims> origin;
  Expr shared, barrier;                   // the barrier of stores is 0
  std::array<Expr, kMaxSpatial> offsets;  // of windows
};
// Of any.
BoxCopy AsBoxCopy(const MachineOpNode& op);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_TENSOR_BOX_H_
