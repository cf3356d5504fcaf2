// The padding of buffers by storage_align. In the text, it is an annotation of
// the block that writes the buffer:
//
//   T.block_attr({"buffer_dim_align": [[0, 1, 32, 8]]})
//
// means that in the first buffer the block writes, the stride of axis 1 is 8
// more than a multiple of 32 elements. In the tree, it is in
// BufferNode::dim_align.
#ifndef TILEFARM_COMPILER_IR_DIM_ALIGN_H_
#define TILEFARM_COMPILER_IR_DIM_ALIGN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/limits.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::ir {

inline constexpr char kDimAlignKey[] = "buffer_dim_align";

// The stride of each dimension in elements: the buffer's own strides if it has
// any, otherwise row-major ones with the padding. nullopt if padding would
// exceed the bytes that `limits` allow.
std::optional<std::vector<int64_t>> PaddedStrides(const BufferNode& buffer,
                                                  const Limits& limits = {});

// Applies the annotations of the blocks of `body` to the buffers that it
// allocates. Ignores entries for a parameter, whose layout the caller
// determines, and for an axis that the buffer no longer has. InvalidArgument:
// an annotation that is not a list of four numbers each, a factor that is not
// positive, or a buffer over the limits.
absl::StatusOr<Stmt> ApplyDimAlign(const Stmt& body, const Limits& limits);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_DIM_ALIGN_H_
