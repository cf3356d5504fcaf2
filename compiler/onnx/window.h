// The attributes that convolutions and pooling share: kernel_shape, strides,
// dilations, pads, auto_pad and ceil_mode. Private to this folder.
#ifndef TILEFARM_COMPILER_ONNX_WINDOW_H_
#define TILEFARM_COMPILER_ONNX_WINDOW_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/onnx/node.h"
#include "compiler/te/sliding_window.h"

namespace tilefarm::onnx {

// Extents, strides, dilations and pads are at most this, so that products of
// two of them, and sums of these, do not overflow.
inline constexpr int64_t kMaxWindowExtent = int64_t{1} << 30;

struct Window {
  // Its padding behind the data is what the windows touch: it is shorter than
  // `pads_after` if a stride skips the end, longer if ceil_mode adds a window.
  te::SlidingWindow sliding;
  std::vector<int64_t> pads_after;  // as the model says
  std::vector<int64_t> out;         // windows per spatial dimension

  // `strides`, `padding` (before, then after) and `dilation`.
  ir::AttrMap Attrs() const;
};

// The window of a convolution or pooling of data with the spatial extents
// `in`. `kernel`: the extents of the weights, which the attribute kernel_shape
// must repeat if it is there; empty if the attribute has them.
absl::StatusOr<Window> ReadWindow(Node& node, const std::vector<int64_t>& in,
                                  std::vector<int64_t> kernel);

// The attribute `name`, one integer in [`lowest`, kMaxWindowExtent] per entry;
// `count` times `default_value` if it is absent.
absl::StatusOr<std::vector<int64_t>> ReadExtents(Node& node,
                                                 std::string_view name,
                                                 size_t count,
                                                 int64_t default_value,
                                                 int64_t lowest);

// InvalidArgument unless auto_pad is one of its four values.
absl::StatusOr<std::string> ReadAutoPad(Node& node);

// The extents of input `i` after the first two. InvalidArgument: there are
// none, or one is above kMaxWindowExtent.
absl::StatusOr<std::vector<int64_t>> SpatialExtents(Node& node, int i);

ir::AttrList AttrOf(const std::vector<int64_t>& values);

}  // namespace tilefarm::onnx

#endif  // TILEFARM_COMPILER_ONNX_WINDOW_H_
