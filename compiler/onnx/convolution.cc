// Convolutions, also transposed, of integers, and deformable.
#include "compiler/te/convolution.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/onnx/joins.h"
#include "compiler/onnx/node.h"
#include "compiler/onnx/window.h"
#include "compiler/te/accumulate.h"
#include "compiler/te/operators.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;
using ir::Expr;

// "nn.conv2d" and the layouts of its data and weights, which are known by name
// up to three spatial dimensions.
std::string NameAndLayouts(const std::string& prefix, size_t rank,
                           bool transposed, ir::AttrMap* attrs) {
  if (rank > 3) return prefix;
  static constexpr const char* kSpatial[] = {"", "W", "HW", "DHW"};
  const std::string spatial = kSpatial[rank];
  (*attrs)["data_layout"] = "NC" + spatial;
  (*attrs)["kernel_layout"] = (transposed ? "IO" : "OI") + spatial;
  return absl::StrCat(prefix, rank, "d");
}

// The channels of a convolution: their numbers fit each other and the groups.
struct Channels {
  int64_t groups = 1;
  int64_t out = 0;
};
absl::StatusOr<Channels> ReadChannels(Node& node, bool transposed) {
  const std::vector<int64_t> data = node.Shape(0);
  const std::vector<int64_t> weight = node.Shape(1);
  Channels channels;
  channels.groups = node.Int("group", 1);
  TF_RETURN_IF_ERROR(node.status());
  if (weight.size() != data.size()) {
    return node.Invalid("data of rank ", data.size(), ", weights of rank ",
                        weight.size());
  }
  const int64_t groups = channels.groups;
  if (groups < 1 || groups > kMaxWindowExtent || weight[0] > kMaxWindowExtent ||
      weight[1] > kMaxWindowExtent) {
    return node.Invalid("attribute group=", groups, " for weights [",
                        absl::StrJoin(weight, ", "), "]");
  }
  const bool fits =
      transposed ? data[1] == weight[0] && data[1] % groups == 0
                 : data[1] == weight[1] * groups && weight[0] % groups == 0;
  if (!fits) {
    return node.Invalid("data [", absl::StrJoin(data, ", "), "] and weights [",
                        absl::StrJoin(weight, ", "), "] do not fit in ", groups,
                        " groups");
  }
  channels.out = transposed ? weight[1] * groups : weight[0];
  return channels;
}

// The data, the weights and the bias, which is input `bias_index` if given.
absl::StatusOr<std::vector<ValueId>> ReadOperands(Node& node, int bias_index,
                                                  int64_t out_channels) {
  std::vector<ValueId> operands{node.Input(0), node.Input(1)};
  if (node.HasInput(bias_index)) {
    operands.push_back(node.Input(bias_index));
    TF_RETURN_IF_ERROR(node.status());
    if (node.Shape(bias_index) != std::vector<int64_t>{out_channels}) {
      return node.Invalid("a bias of shape [",
                          absl::StrJoin(node.Shape(bias_index), ", "), "] for ",
                          out_channels, " channels");
    }
  }
  TF_RETURN_IF_ERROR(node.status());
  const DataType dtype = node.Dtype(0);
  for (const ValueId operand : operands) {
    if (!dtype.is_float() || node.builder().type(operand).dtype != dtype) {
      return node.Invalid("its inputs must have one float dtype");
    }
  }
  return operands;
}

bool HasNoElements(const te::Tensor& tensor) {
  return std::count(tensor.shape().begin(), tensor.shape().end(), 0) > 0;
}

// Adds the bias, if any, and rounds to `dtype` in one stage.
te::Tensor Finished(const te::Tensor& sum, const te::Tensor* bias,
                    DataType dtype) {
  if (bias == nullptr) return te::Rounded(sum, dtype);
  return te::Compute("T_add", sum.shape(), [&](const te::Indices& i) {
    const Expr added = ir::MakeBinary(
        ir::BinaryOp::kAdd, sum(i), ir::MakeCast(sum.dtype(), (*bias)({i[1]})));
    return te::Body(ir::MakeCast(dtype, added));
  });
}

// A convolution of the operands, whose sums `convolve` makes. The bias, which
// is operand 2 if given, is a call of its own, so that passes see an ordinary
// convolution; but not where the sum would be rounded before it is added.
Outputs AddConvolution(
    Node& node, std::string name, ir::AttrMap attrs,
    std::vector<ValueId> operands,
    const std::function<te::Tensor(const graph::Tensors&)>& convolve) {
  const DataType dtype = node.builder().type(operands[0]).dtype;
  std::optional<ValueId> bias;
  if (operands.size() > 2 && te::AccumulatorOf(dtype) == dtype) {
    bias = operands[2];
    operands.pop_back();
  }
  TF_ASSIGN_OR_RETURN(
      ValueId y, node.builder().Compute(
                     std::move(name), std::move(attrs), operands,
                     [&](const graph::Tensors& x) {
                       return Finished(convolve(x),
                                       x.size() > 2 ? &x[2] : nullptr, dtype);
                     }));
  if (bias) {
    TF_ASSIGN_OR_RETURN(y, node.builder().Compute("add", {}, {y, *bias},
                                                  [&](const graph::Tensors& x) {
                                                    return Finished(x[0], &x[1],
                                                                    dtype);
                                                  }));
  }
  return std::vector<Imported>{y};
}

std::vector<int64_t> ResultShape(int64_t batch, int64_t channels,
                                 const std::vector<int64_t>& spatial) {
  std::vector<int64_t> shape{batch, channels};
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  return shape;
}

std::vector<int64_t> KernelOf(const std::vector<int64_t>& weight) {
  return {weight.begin() + 2, weight.end()};
}

// What `define` makes of its accumulator's type; zeros if the operands or the
// result have no elements.
template <typename Define>
te::Tensor UnlessEmpty(const graph::Tensors& x, int64_t channels,
                       const Window& window, const Define& define) {
  const DataType sum_type = te::AccumulatorOf(x[0].dtype());
  const std::vector<int64_t> shape =
      ResultShape(x[0].dim(0), channels, window.out);
  const bool empty = HasNoElements(x[0]) || HasNoElements(x[1]) ||
                     std::count(shape.begin(), shape.end(), 0) > 0;
  return empty ? te::Zeros(shape, sum_type) : define(sum_type);
}

// The taps of a dimension that meet data in some window.
struct Taps {
  int64_t first = 0;
  int64_t count = 0;
};
Taps LiveTaps(const Window& window, size_t d, int64_t in) {
  const te::SlidingWindow& sliding = window.sliding;
  Taps live;
  for (int64_t k = 0; k < sliding.kernel[d]; ++k) {
    // Of the data, what the tap reads in the first window.
    const int64_t first = k * sliding.dilations[d] - sliding.before[d];
    const int64_t stride = sliding.strides[d];
    const int64_t skipped = first < 0 ? (-first + stride - 1) / stride : 0;
    if (skipped >= window.out[d] || first + skipped * stride >= in) continue;
    if (live.count == 0) live.first = k;
    live.count = k - live.first + 1;
  }
  return live;
}

// The constant weights without the taps that meet padding in every window, as
// where the dilation exceeds the data; the window becomes that of the others.
// Not for weights that make NaN of a zero.
absl::StatusOr<ValueId> WithoutDeadTaps(Node& node,
                                        const std::vector<int64_t>& in,
                                        Window& window) {
  if (!node.IsConstant(1)) return node.Input(1);
  Window cut = window;
  te::SlidingWindow& sliding = cut.sliding;
  std::vector<int64_t> starts;
  for (size_t d = 0; d < in.size(); ++d) {
    const Taps live = LiveTaps(window, d, in[d]);
    starts.push_back(live.first);
    if (live.count == 0 || live.count == sliding.kernel[d]) continue;
    const int i = static_cast<int>(d);
    sliding.kernel[d] = live.count;
    sliding.before[d] -= live.first * sliding.dilations[d];
    if (live.count == 1) sliding.dilations[d] = 1;
    sliding.after[d] =
        std::max<int64_t>(0, (window.out[d] - 1) * sliding.strides[d] +
                                 sliding.reach(i) - in[d] - sliding.before[d]);
    cut.pads_after[d] = sliding.after[d];
    if (sliding.before[d] < 0 || sliding.out(i, in[d]) != window.out[d]) {
      return node.Input(1);
    }
  }
  if (sliding.kernel == window.sliding.kernel) return node.Input(1);
  TF_ASSIGN_OR_RETURN(const std::vector<double> values, node.ConstDoubles(1));
  if (!std::ranges::all_of(values, [](double x) { return std::isfinite(x); })) {
    return node.Input(1);
  }
  window = std::move(cut);
  ValueId weights = node.Input(1);
  for (size_t d = 0; d < in.size(); ++d) {
    TF_ASSIGN_OR_RETURN(
        weights, SliceAt(node.builder(), weights, static_cast<int64_t>(d) + 2,
                         starts[d], window.sliding.kernel[d]));
  }
  return weights;
}

Outputs ConvertConv(Node& node) {
  TF_ASSIGN_OR_RETURN(const std::vector<int64_t> in, SpatialExtents(node, 0));
  TF_ASSIGN_OR_RETURN(const Channels channels, ReadChannels(node, false));
  TF_ASSIGN_OR_RETURN(std::vector<ValueId> operands,
                      ReadOperands(node, 2, channels.out));
  TF_ASSIGN_OR_RETURN(Window window,
                      ReadWindow(node, in, KernelOf(node.Shape(1))));
  TF_ASSIGN_OR_RETURN(operands[1], WithoutDeadTaps(node, in, window));
  ir::AttrMap attrs = window.Attrs();
  attrs["groups"] = channels.groups;
  std::string name = NameAndLayouts("nn.conv", in.size(), false, &attrs);
  return AddConvolution(node, std::move(name), std::move(attrs), operands,
                        [&](const graph::Tensors& x) {
                          return UnlessEmpty(
                              x, channels.out, window, [&](DataType sum_type) {
                                return te::Conv(x[0], x[1], window.sliding,
                                                channels.groups, sum_type);
                              });
                        });
}

// The window of a transposed convolution: `out` are the spatial extents of the
// result, and the padding is what the result lacks on both sides.
absl::StatusOr<Window> ReadTransposedWindow(Node& node,
                                            const std::vector<int64_t>& in) {
  const size_t rank = in.size();
  Window window;
  te::SlidingWindow& sliding = window.sliding;
  sliding.kernel = KernelOf(node.Shape(1));
  const std::vector<int64_t> given = node.Ints("kernel_shape");
  for (const int64_t extent : sliding.kernel) {
    if (extent < 1 || extent > kMaxWindowExtent) {
      return node.Invalid("kernel [", absl::StrJoin(sliding.kernel, ", "), "]");
    }
  }
  if (!given.empty() && given != sliding.kernel) {
    return node.Invalid("attribute kernel_shape=[", absl::StrJoin(given, ", "),
                        "] differs from the weights");
  }
  TF_ASSIGN_OR_RETURN(sliding.strides,
                      ReadExtents(node, "strides", rank, 1, 1));
  TF_ASSIGN_OR_RETURN(sliding.dilations,
                      ReadExtents(node, "dilations", rank, 1, 1));
  TF_ASSIGN_OR_RETURN(const std::vector<int64_t> pads,
                      ReadExtents(node, "pads", 2 * rank, 0, 0));
  TF_ASSIGN_OR_RETURN(const std::vector<int64_t> extra,
                      ReadExtents(node, "output_padding", rank, 0, 0));
  std::vector<int64_t> wanted = node.Ints("output_shape");
  // Some exporters also list the batch and the channels.
  if (wanted.size() == rank + 2)
    wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (!wanted.empty() && wanted.size() != rank) {
    return node.Invalid("attribute output_shape has ", wanted.size(),
                        " values, not ", rank);
  }
  TF_ASSIGN_OR_RETURN(const std::string auto_pad, ReadAutoPad(node));
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  for (size_t d = 0; d < rank; ++d) {
    // All that the taps reach, and what output_padding adds.
    const int64_t whole = sliding.strides[d] * (in[d] - 1) + extra[d] +
                          sliding.reach(static_cast<int>(d));
    int64_t before = 0, after = 0, out = 0;
    if (!wanted.empty() || same) {
      out = wanted.empty() ? in[d] * sliding.strides[d] : wanted[d];
      const int64_t total = std::max<int64_t>(0, whole - out);
      before = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      after = total - before;
    } else {
      if (auto_pad == "NOTSET") {
        before = pads[d];
        after = pads[rank + d];
      }
      out = whole - before - after;
    }
    if (out < 0 || out > kMaxWindowExtent) {
      return node.Invalid("its result has an extent of ", out);
    }
    window.out.push_back(out);
    sliding.before.push_back(before);
    sliding.after.push_back(after);
    window.pads_after.push_back(after);
  }
  return window;
}

Outputs ConvertConvTranspose(Node& node) {
  TF_ASSIGN_OR_RETURN(const std::vector<int64_t> in, SpatialExtents(node, 0));
  TF_ASSIGN_OR_RETURN(const Channels channels, ReadChannels(node, true));
  TF_ASSIGN_OR_RETURN(const std::vector<ValueId> operands,
                      ReadOperands(node, 2, channels.out));
  TF_ASSIGN_OR_RETURN(const Window window, ReadTransposedWindow(node, in));
  ir::AttrMap attrs = window.Attrs();
  attrs["groups"] = channels.groups;
  attrs["output_shape"] = AttrOf(window.out);
  std::string name =
      in.size() > 3
          ? "nn.conv_transpose"
          : NameAndLayouts("nn.conv", in.size(), true, &attrs) + "_transpose";
  return AddConvolution(
      node, std::move(name), std::move(attrs), operands,
      [&](const graph::Tensors& x) {
        return UnlessEmpty(x, channels.out, window, [&](DataType sum_type) {
          return te::ConvTranspose(x[0], x[1], window.sliding, window.out,
                                   channels.groups, sum_type);
        });
      });
}

Outputs ConvertDeformConv(Node& node) {
  TF_ASSIGN_OR_RETURN(const std::vector<int64_t> in, SpatialExtents(node, 0));
  const int64_t rank = static_cast<int64_t>(in.size());
  // Each sample reads 2^rank neighbours.
  if (rank > 3) return node.Unsupported(rank, " spatial dimensions");
  TF_ASSIGN_OR_RETURN(const Channels channels, ReadChannels(node, false));
  TF_ASSIGN_OR_RETURN(std::vector<ValueId> operands,
                      ReadOperands(node, 3, channels.out));
  const bool has_bias = operands.size() > 2;
  TF_ASSIGN_OR_RETURN(const Window window,
                      ReadWindow(node, in, KernelOf(node.Shape(1))));
  const int64_t offset_groups = node.Int("offset_group", 1);
  if (offset_groups < 1 || offset_groups > kMaxWindowExtent ||
      node.Shape(0)[1] % offset_groups != 0) {
    return node.Invalid("attribute offset_group=", offset_groups);
  }
  int64_t channels_of_mask = offset_groups;
  for (const int64_t extent : window.sliding.kernel) {
    if (__builtin_mul_overflow(channels_of_mask, extent, &channels_of_mask) ||
        channels_of_mask > kMaxWindowExtent) {
      return node.Invalid("its kernel is too large");
    }
  }
  const bool has_mask = node.HasInput(4);
  for (int i = 2; i <= (has_mask ? 4 : 2); i += 2) {
    const std::vector<int64_t> shape = ResultShape(
        node.Shape(0)[0], channels_of_mask * (i == 2 ? rank : 1), window.out);
    if (node.Shape(i) != shape || node.Dtype(i) != node.Dtype(0)) {
      return node.Invalid("input ", i, " is ", node.Type(i).ToString(),
                          "; it needs the shape [", absl::StrJoin(shape, ", "),
                          "] and the dtype of the data");
    }
    operands.push_back(node.Input(i));
  }
  TF_RETURN_IF_ERROR(node.status());
  ir::AttrMap attrs = window.Attrs();
  attrs["groups"] = channels.groups;
  attrs["deformable_groups"] = offset_groups;
  std::string name =
      NameAndLayouts("nn.deformable_conv", in.size(), false, &attrs);
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          std::move(name), std::move(attrs), operands,
          [&](const graph::Tensors& x) {
            const DataType dtype = x[0].dtype();
            const DataType sum_type = te::AccumulatorOf(dtype);
            const size_t offset = has_bias ? 3 : 2;
            const std::vector<int64_t> shape =
                ResultShape(x[0].dim(0), channels.out, window.out);
            const bool empty = HasNoElements(x[0]) || HasNoElements(x[1]) ||
                               std::count(shape.begin(), shape.end(), 0) > 0;
            const te::Tensor sum =
                empty ? te::Zeros(shape, sum_type)
                      : te::DeformableConv(x[0], x[1], x[offset],
                                           has_mask ? &x[offset + 1] : nullptr,
                                           window.sliding, channels.groups,
                                           offset_groups, sum_type);
            return Finished(sum, has_bias ? &x[2] : nullptr, dtype);
          }));
  return std::vector<Imported>{y};
}

}  // namespace

std::vector<Converter> ConvolutionConverters() {
  return {
      {"Conv", ConvertConv},
      {"ConvTranspose", ConvertConvTranspose},
      {"DeformConv", ConvertDeformConv},
  };
}

}  // namespace tilefarm::onnx
