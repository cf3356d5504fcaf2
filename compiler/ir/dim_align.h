// The padding of buffers that storage_align asks for. The text carries it as
// an annotation of the block that writes the buffer:
//
//   T.block_attr({"buffer_dim_align": [[0, 1, 32, 8]]})
//
// the first buffer it writes has from one index of axis 1 to the next a number
// of elements that is 8 more than a multiple of 32. The tree carries it in
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

// Elements from one index of each dimension to the next: those that the buffer
// has of its own, otherwise row-major ones with the padding. nullopt where
// padding would make more bytes than `limits` allow.
std::optional<std::vector<int64_t>> PaddedStrides(const BufferNode& buffer,
                                                  const Limits& limits = {});

// The body with the annotations of its blocks made true of the buffers that it
// allocates. An entry for a parameter, whose layout is its caller's, or for an
// axis that the buffer does not have any more says nothing. InvalidArgument:
// an annotation that is no list of four numbers each, a factor that is not
// positive, a buffer over the limits.
absl::StatusOr<Stmt> ApplyDimAlign(const Stmt& body, const Limits& limits);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_DIM_ALIGN_H_
