// Copies of boxes of tensors by a GPU's copy engine (MachineOp::kCopyBox and
// kStoreBox).
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
#ifndef TILEFARM_COMPILER_IR_TENSOR_BOX_H_
#define TILEFARM_COMPILER_IR_TENSOR_BOX_H_

#include <array>
#include <cstdint>
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

// What the engine knows of a tensor before the copies. Dimensions as those of
// buffers, the contiguous one last; missing ones come first and have extent 1.
struct TensorMap {
  Buffer buffer;
  std::array<int64_t, kMaxBoxDims> sizes;
  std::array<int64_t, kMaxBoxDims> box;
  bool operator==(const TensorMap&) const = default;
};

// The map of boxes of a dense buffer of at most 5 dimensions.
TensorMap MakeTensorMap(const Buffer& buffer, const std::vector<int64_t>& box);

// The number of dimensions that the engine knows: from the first that is longer
// than 1, at least two.
int MapDims(const TensorMap& map);

// Copies the box at `origin` to shared memory; `to` is a load of its first
// element. Its bytes count for the arrival barrier, a load, when they are
// there.
Expr CopyBox(const TensorMap& map, const std::vector<Expr>& origin, Expr to,
             Expr barrier);

// The other way: copies what is in shared memory to the box at `origin`, but
// nothing outside of the tensor. `from` is a load of its first element.
Expr StoreBox(const TensorMap& map, const std::vector<Expr>& origin, Expr from);

struct BoxCopy {
  TensorMap map;
  std::array<Expr, kMaxBoxDims> origin;
  Expr shared, barrier;  // the barrier of stores is 0
};
// Of either.
BoxCopy AsBoxCopy(const MachineOpNode& op);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_TENSOR_BOX_H_
