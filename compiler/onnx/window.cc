#include "compiler/onnx/window.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace tilefarm::onnx {

ir::AttrList AttrOf(const std::vector<int64_t>& values) {
  return ir::AttrList(values.begin(), values.end());
}

ir::AttrMap Window::Attrs() const {
  std::vector<int64_t> padding = sliding.before;
  padding.insert(padding.end(), pads_after.begin(), pads_after.end());
  return {{"strides", AttrOf(sliding.strides)},
          {"padding", AttrOf(padding)},
          {"dilation", AttrOf(sliding.dilations)}};
}

absl::StatusOr<std::vector<int64_t>> ReadExtents(Node& node,
                                                 std::string_view name,
                                                 size_t count,
                                                 int64_t default_value,
                                                 int64_t lowest) {
  std::vector<int64_t> values = node.Ints(name);
  TF_RETURN_IF_ERROR(node.status());
  if (values.empty()) values.assign(count, default_value);
  if (values.size() != count) {
    return node.Invalid("attribute ", std::string(name), " has ", values.size(),
                        " values, not ", count);
  }
  for (const int64_t value : values) {
    if (value < lowest || value > kMaxWindowExtent) {
      return node.Invalid("attribute ", std::string(name), "=[",
                          absl::StrJoin(values, ", "), "]");
    }
  }
  return values;
}

absl::StatusOr<std::string> ReadAutoPad(Node& node) {
  const std::string auto_pad = node.String("auto_pad", "NOTSET");
  TF_RETURN_IF_ERROR(node.status());
  if (auto_pad.empty()) return std::string("NOTSET");
  if (auto_pad != "NOTSET" && auto_pad != "VALID" && auto_pad != "SAME_UPPER" &&
      auto_pad != "SAME_LOWER") {
    return node.Invalid("attribute auto_pad=", auto_pad);
  }
  return auto_pad;
}

absl::StatusOr<std::vector<int64_t>> SpatialExtents(Node& node, int i) {
  const std::vector<int64_t> shape = node.Shape(i);
  TF_RETURN_IF_ERROR(node.status());
  if (shape.size() < 3) {
    return node.Invalid("input ", i, " has rank ", shape.size(),
                        "; it needs a batch, channels and spatial dimensions");
  }
  for (const int64_t extent : shape) {
    if (extent > kMaxWindowExtent) {
      return node.Invalid("input ", i, " has an extent of ", extent);
    }
  }
  return std::vector<int64_t>(shape.begin() + 2, shape.end());
}

namespace {

absl::StatusOr<std::vector<int64_t>> ReadKernel(Node& node, size_t rank,
                                                std::vector<int64_t> kernel) {
  std::vector<int64_t> given = node.Ints("kernel_shape");
  TF_RETURN_IF_ERROR(node.status());
  if (kernel.empty()) {
    if (given.empty()) return node.Invalid("has no attribute kernel_shape");
    kernel = given;
  }
  if (kernel.size() != rank) {
    return node.Invalid("a kernel of ", kernel.size(),
                        " dimensions for data of ", rank,
                        " spatial dimensions");
  }
  if (!given.empty() && given != kernel) {
    return node.Invalid("attribute kernel_shape=[", absl::StrJoin(given, ", "),
                        "] differs from the weights");
  }
  for (const int64_t extent : kernel) {
    if (extent < 1 || extent > kMaxWindowExtent) {
      return node.Invalid("kernel [", absl::StrJoin(kernel, ", "), "]");
    }
  }
  return kernel;
}

}  // namespace

absl::StatusOr<Window> ReadWindow(Node& node, const std::vector<int64_t>& in,
                                  std::vector<int64_t> kernel) {
  const size_t rank = in.size();
  Window window;
  te::SlidingWindow& sliding = window.sliding;
  TF_ASSIGN_OR_RETURN(sliding.kernel,
                      ReadKernel(node, rank, std::move(kernel)));
  TF_ASSIGN_OR_RETURN(sliding.strides,
                      ReadExtents(node, "strides", rank, 1, 1));
  TF_ASSIGN_OR_RETURN(sliding.dilations,
                      ReadExtents(node, "dilations", rank, 1, 1));
  TF_ASSIGN_OR_RETURN(const std::vector<int64_t> pads,
                      ReadExtents(node, "pads", 2 * rank, 0, 0));
  TF_ASSIGN_OR_RETURN(const std::string auto_pad, ReadAutoPad(node));
  const bool ceil_mode = node.Int("ceil_mode", 0) != 0;
  TF_RETURN_IF_ERROR(node.status());
  for (size_t d = 0; d < rank; ++d) {
    const int64_t stride = sliding.strides[d];
    const int64_t reach = sliding.reach(static_cast<int>(d));
    int64_t before = 0, after = 0, out = 0;
    if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      out = (in[d] + stride - 1) / stride;
      const int64_t total =
          std::max<int64_t>(0, (out - 1) * stride + reach - in[d]);
      before = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      after = total - before;
    } else {
      if (auto_pad == "NOTSET") {
        before = pads[d];
        after = pads[rank + d];
      }
      // From the first window to the last one that fits.
      const int64_t range = in[d] + before + after - reach;
      if (range >= 0) {
        out = (range + (ceil_mode ? stride - 1 : 0)) / stride + 1;
        // A window must not start behind the data and the padding before them.
        if (ceil_mode && (out - 1) * stride >= in[d] + before) --out;
      } else if (in[d] > 0) {
        return node.Invalid("the window reaches over ", reach,
                            " elements of the padded ", in[d] + before + after);
      }
    }
    window.out.push_back(out);
    sliding.before.push_back(before);
    window.pads_after.push_back(after);
    sliding.after.push_back(
        std::max<int64_t>(0, (out - 1) * stride + reach - in[d] - before));
  }
  return window;
}

}  // namespace tilefarm::onnx
