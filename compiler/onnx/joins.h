// Joining tensors and taking them apart, for operators that do it by the way.
// Private to this folder.
#ifndef TILEFARM_COMPILER_ONNX_JOINS_H_
#define TILEFARM_COMPILER_ONNX_JOINS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/builder.h"

namespace tilefarm::onnx {

// Joins tensors of one dtype along an axis that they have; the other dimensions
// must agree. InvalidArgument otherwise.
absl::StatusOr<graph::ValueId> Concatenate(
    graph::GraphBuilder& builder, const std::vector<graph::ValueId>& values,
    int64_t axis);

// Joins tensors of one type along a new axis. At least one.
absl::StatusOr<graph::ValueId> Stack(graph::GraphBuilder& builder,
                                     const std::vector<graph::ValueId>& values,
                                     int64_t axis);

// Elements [begin, begin + count) of an axis; must be within it.
absl::StatusOr<graph::ValueId> SliceAt(graph::GraphBuilder& builder,
                                       graph::ValueId value, int64_t axis,
                                       int64_t begin, int64_t count);
// The same for one element, without the axis.
absl::StatusOr<graph::ValueId> TakeAt(graph::GraphBuilder& builder,
                                      graph::ValueId value, int64_t axis,
                                      int64_t index);

}  // namespace tilefarm::onnx

#endif  // TILEFARM_COMPILER_ONNX_JOINS_H_
