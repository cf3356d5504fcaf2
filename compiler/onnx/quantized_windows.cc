// Convolutions and pooling of quantised tensors: integers are multiplied and
// summed in int32, the sum is scaled and rounded once.
#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/onnx/node.h"
#include "compiler/onnx/quantize_expr.h"
#include "compiler/te/operators.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;
using ir::Expr;
using ir::IntConst;
using te::ReduceAxis;

ir::Attr IntsAttr(const std::vector<int64_t>& values) {
  return ir::AttrList(values.begin(), values.end());
}

// A scale or zero point with one element, or one for each channel.
class PerChannel {
 public:
  static absl::StatusOr<PerChannel> Make(Node& node, int i, int64_t channels,
                                         CallInputs& inputs, double absent) {
    PerChannel parameter;
    if (node.HasInput(i) && node.Shape(i) == std::vector<int64_t>{channels} &&
        channels != 1) {
      parameter.position_ = inputs.Add(node.Input(i));
      return parameter;
    }
    TF_ASSIGN_OR_RETURN(parameter.scalar_,
                        Scalar::Make(node, i, inputs, absent));
    return parameter;
  }
  Expr Read(const graph::Tensors& in, const Expr& channel,
            DataType dtype) const {
    if (scalar_.has_value()) return scalar_->Read(in, dtype);
    return ir::MakeCast(dtype, in[position_]({channel}));
  }

 private:
  std::optional<Scalar> scalar_;
  int position_ = 0;
};

// A window that slides over the spatial dimensions.
struct ByteWindow {
  std::vector<int64_t> kernel, strides, dilations, before, after, out;
  // How much the tensor must grow at its end so that all windows are inside:
  // less or more than `after` where windows do not end at the border.
  std::vector<int64_t> grow;

  bool pads() const {
    const auto positive = [](int64_t n) { return n > 0; };
    return std::any_of(before.begin(), before.end(), positive) ||
           std::any_of(grow.begin(), grow.end(), positive);
  }
};

absl::StatusOr<ByteWindow> ReadByteWindow(Node& node,
                                          const std::vector<int64_t>& in,
                                          std::vector<int64_t> kernel) {
  // Products of two such numbers do not overflow.
  constexpr int64_t kLargest = int64_t{1} << 30;
  ByteWindow window;
  const size_t rank = in.size();
  window.kernel = std::move(kernel);
  window.strides = node.Ints("strides");
  window.dilations = node.Ints("dilations");
  if (window.strides.empty()) window.strides.assign(rank, 1);
  if (window.dilations.empty()) window.dilations.assign(rank, 1);
  std::vector<int64_t> pads = node.Ints("pads");
  if (pads.empty()) pads.assign(2 * rank, 0);
  const std::string auto_pad = node.String("auto_pad", "NOTSET");
  const bool ceil_mode = node.Int("ceil_mode", 0) != 0;
  TF_RETURN_IF_ERROR(node.status());
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "VALID" && auto_pad != "NOTSET") {
    return node.Invalid("auto_pad=", auto_pad);
  }
  if (auto_pad == "VALID") pads.assign(2 * rank, 0);
  if (window.kernel.size() != rank || window.strides.size() != rank ||
      window.dilations.size() != rank || pads.size() != 2 * rank) {
    return node.Invalid(
        "kernel_shape, strides, dilations and pads do not fit the ", rank,
        " spatial dimensions");
  }
  for (size_t d = 0; d < rank; ++d) {
    const int64_t stride = window.strides[d];
    if (window.kernel[d] < 1 || window.kernel[d] > kLargest || stride < 1 ||
        stride > kLargest || window.dilations[d] < 1 ||
        window.dilations[d] > kLargest || pads[d] < 0 || pads[d] > kLargest ||
        pads[d + rank] < 0 || pads[d + rank] > kLargest) {
      return node.Invalid("a window of extent ", window.kernel[d], ", stride ",
                          stride, ", dilation ", window.dilations[d],
                          " and padding ", pads[d], ", ", pads[d + rank]);
    }
    const int64_t reach = (window.kernel[d] - 1) * window.dilations[d] + 1;
    if (same) {
      const int64_t out = (in[d] + stride - 1) / stride;
      const int64_t total =
          std::max<int64_t>((out - 1) * stride + reach - in[d], 0);
      pads[d] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      pads[d + rank] = total - pads[d];
    }
    const int64_t room = in[d] + pads[d] + pads[d + rank] - reach;
    if (room < 0) {
      return node.Invalid("dimension ", d, " of extent ", in[d],
                          " is less than the window");
    }
    int64_t out = room / stride + 1;
    if (ceil_mode && room % stride != 0 && out * stride < in[d] + pads[d]) {
      ++out;
    }
    window.out.push_back(out);
    window.before.push_back(pads[d]);
    window.after.push_back(pads[d + rank]);
    window.grow.push_back(
        std::max<int64_t>((out - 1) * stride + reach - in[d] - pads[d], 0));
  }
  return window;
}

// `data` with `fill` around the spatial dimensions, the first of which is
// `first`.
te::Tensor PadFor(const ByteWindow& window, const te::Tensor& data, int first,
                  const std::function<Expr()>& fill) {
  if (!window.pads()) return data;
  std::vector<int64_t> shape = data.shape();
  const auto rank = static_cast<int>(window.kernel.size());
  for (int d = 0; d < rank; ++d) {
    shape[first + d] += window.before[d] + window.grow[d];
  }
  return te::Compute("pad_temp", shape, [&](const te::Indices& i) {
    te::Indices at = i;
    Expr inside = ir::BoolConst(true);
    for (int d = 0; d < rank; ++d) {
      const Expr& index = i[first + d];
      const int64_t before = window.before[d];
      at[first + d] = index - before;
      if (before > 0) inside = ir::And(inside, ir::GE(index, IntConst(before)));
      if (window.grow[d] > 0) {
        inside = ir::And(inside,
                         ir::LT(index, IntConst(before + data.dim(first + d))));
      }
    }
    return te::Body(ir::IfThenElseExpr(inside, data(at), fill()));
  });
}

// The convolution of two quantised tensors, with their zero points taken off.
class IntegerConv {
 public:
  // The inputs with these positions; a zero point may be missing.
  static absl::StatusOr<IntegerConv> Make(Node& node, CallInputs& inputs, int x,
                                          int x_zero_point, int w,
                                          int w_zero_point) {
    IntegerConv conv;
    conv.x_ = node.Type(x);
    conv.w_ = node.Type(w);
    TF_RETURN_IF_ERROR(node.status());
    const std::vector<int64_t>& in = conv.x_.shape;
    const std::vector<int64_t>& weight = conv.w_.shape;
    conv.groups_ = node.Int("group", 1);
    const int rank = conv.x_.ndim() - 2;
    if (!IsByte(conv.x_.dtype) || !IsByte(conv.w_.dtype)) {
      return node.Unsupported("inputs of types ", conv.x_.ToString(), " and ",
                              conv.w_.ToString());
    }
    if (rank < 1 || conv.w_.ndim() != conv.x_.ndim() || conv.groups_ < 1 ||
        in[1] % conv.groups_ != 0 || in[1] / conv.groups_ != weight[1] ||
        weight[0] % conv.groups_ != 0) {
      return node.Invalid("a convolution of ", conv.x_.ToString(), " with ",
                          conv.w_.ToString(), " in ", conv.groups_, " groups");
    }
    for (const auto& [tensor, zero_point] :
         {std::pair(x, x_zero_point), std::pair(w, w_zero_point)}) {
      if (node.HasInput(zero_point) &&
          node.Dtype(zero_point) != node.Dtype(tensor)) {
        return node.Invalid("the zero point of input ", tensor,
                            " has another type");
      }
    }
    const std::vector<int64_t> kernel(weight.begin() + 2, weight.end());
    const std::vector<int64_t> given = node.Ints("kernel_shape");
    if (!given.empty() && given != kernel) {
      return node.Invalid("kernel_shape is not that of the weights");
    }
    if (weight[1] == 0) return node.Unsupported("no input channels");
    TF_ASSIGN_OR_RETURN(
        conv.window_, ReadByteWindow(node, {in.begin() + 2, in.end()}, kernel));
    conv.x_position_ = inputs.Add(node.Input(x));
    conv.w_position_ = inputs.Add(node.Input(w));
    TF_ASSIGN_OR_RETURN(conv.x_zero_,
                        Scalar::Make(node, x_zero_point, inputs, 0));
    TF_ASSIGN_OR_RETURN(
        conv.w_zero_,
        PerChannel::Make(node, w_zero_point, conv.channels(), inputs, 0));
    TF_RETURN_IF_ERROR(node.status());
    return conv;
  }

  int64_t channels() const { return w_.shape[0]; }
  std::vector<int64_t> shape() const {
    std::vector<int64_t> shape{x_.shape[0], channels()};
    shape.insert(shape.end(), window_.out.begin(), window_.out.end());
    return shape;
  }
  ir::AttrMap Attrs() const {
    std::vector<int64_t> padding = window_.before;
    padding.insert(padding.end(), window_.after.begin(), window_.after.end());
    return {{"strides", IntsAttr(window_.strides)},
            {"padding", IntsAttr(padding)},
            {"dilation", IntsAttr(window_.dilations)},
            {"groups", ir::Attr(groups_)}};
  }

  // int32, of shape().
  te::Tensor Compute(const graph::Tensors& in) const {
    const DataType i32 = DataType::Int(32);
    std::vector<ReduceAxis> reduced{ReduceAxis("rc", w_.shape[1])};
    for (size_t d = 0; d < window_.kernel.size(); ++d) {
      reduced.emplace_back(absl::StrCat("r", d), window_.kernel[d]);
    }
    const te::Tensor padded = PadFor(window_, in[x_position_], 2, [&] {
      return x_zero_.Read(in, x_.dtype);
    });
    return te::Compute("conv", shape(), [&](const te::Indices& i) {
      Expr channel = reduced[0];
      if (groups_ > 1) {
        channel =
            ir::FloorDiv(i[1], IntConst(channels() / groups_)) * w_.shape[1] +
            channel;
      }
      te::Indices at{i[0], channel};
      te::Indices weight{i[1], reduced[0]};
      for (size_t d = 0; d < window_.kernel.size(); ++d) {
        at.push_back(i[2 + d] * window_.strides[d] +
                     Expr(reduced[1 + d]) * window_.dilations[d]);
        weight.push_back(reduced[1 + d]);
      }
      return te::Sum(
          Times(ir::MakeCast(i32, padded(at)) - x_zero_.Read(in, i32),
                ir::MakeCast(i32, in[w_position_](weight)) -
                    w_zero_.Read(in, i[1], i32)),
          reduced);
    });
  }

 private:
  TensorType x_, w_;
  ByteWindow window_;
  int64_t groups_ = 1;
  int x_position_ = 0;
  int w_position_ = 0;
  Scalar x_zero_;
  PerChannel w_zero_;
};

Outputs ConvertConvInteger(Node& node) {
  // x, w, x_zero_point, w_zero_point
  CallInputs inputs;
  TF_ASSIGN_OR_RETURN(const IntegerConv conv,
                      IntegerConv::Make(node, inputs, 0, 2, 1, 3));
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          "qnn.conv", conv.Attrs(), inputs.values(),
          [&](const graph::Tensors& in) { return conv.Compute(in); }));
  return std::vector<Imported>{y};
}

Outputs ConvertQLinearConv(Node& node) {
  // x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point,
  // B
  if (node.Int("channels_last", 0) != 0) {
    return node.Unsupported("attribute channels_last=1");
  }
  CallInputs inputs;
  TF_ASSIGN_OR_RETURN(const IntegerConv conv,
                      IntegerConv::Make(node, inputs, 0, 2, 3, 5));
  const int64_t channels = conv.channels();
  TF_ASSIGN_OR_RETURN(const Scalar x_scale, Scalar::Make(node, 1, inputs, 1));
  TF_ASSIGN_OR_RETURN(const Scalar y_scale, Scalar::Make(node, 6, inputs, 1));
  TF_ASSIGN_OR_RETURN(const Scalar y_zero, Scalar::Make(node, 7, inputs, 0));
  TF_ASSIGN_OR_RETURN(const PerChannel w_scale,
                      PerChannel::Make(node, 4, channels, inputs, 1));
  TF_ASSIGN_OR_RETURN(const QuantizedType type,
                      ByteResultType(node, 7, node.Dtype(0)));
  int bias = -1;
  if (node.HasInput(8)) {
    if (node.Dtype(8) != DataType::Int(32) ||
        node.Shape(8) != std::vector<int64_t>{channels}) {
      return node.Invalid("the bias is ", node.Type(8).ToString());
    }
    bias = inputs.Add(node.Input(8));
  }
  TF_RETURN_IF_ERROR(node.status());
  const DataType f32 = DataType::Float(32);
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          "qnn.conv", conv.Attrs(), inputs.values(),
          [&](const graph::Tensors& in) {
            const te::Tensor sum = conv.Compute(in);
            // Of constants, as a rule; then it is computed once.
            const te::Tensor scale =
                te::Compute("scale", {channels}, [&](const te::Indices& i) {
                  return te::Body(Over(
                      Times(x_scale.Read(in, f32), w_scale.Read(in, i[0], f32)),
                      y_scale.Read(in, f32)));
                });
            return te::Compute(
                "T_requantize", conv.shape(), [&](const te::Indices& i) {
                  Expr value = sum(i);
                  if (bias >= 0) value = Plus(value, in[bias]({i[1]}));
                  return te::Body(
                      RoundAndSaturate(Times(ToFloat32(value), scale({i[1]})),
                                       y_zero.Read(in, f32), type));
                });
          }));
  return std::vector<Imported>{y};
}

Outputs AveragePool(Node& node, bool global) {
  // X, x_scale, x_zero_point, y_scale, y_zero_point
  const TensorType x = node.Type(0);
  TF_RETURN_IF_ERROR(node.status());
  const bool channels_last = node.Int("channels_last", 0) != 0;
  const bool count_padding = node.Int("count_include_pad", 0) != 0;
  const int rank = x.ndim() - 2;
  if (rank < 1) return node.Invalid("input 0 is ", x.ToString());
  if (!IsByte(x.dtype)) return node.Unsupported("input of ", x.ToString());
  const int first = channels_last ? 1 : 2;
  const std::vector<int64_t> spatial(x.shape.begin() + first,
                                     x.shape.begin() + first + rank);
  ByteWindow window;
  if (global) {
    window.kernel = spatial;
    window.strides.assign(rank, 1);
    window.out.assign(rank, 1);
    window.before.assign(rank, 0);
    window.after = window.grow = window.before;
    if (std::find(spatial.begin(), spatial.end(), 0) != spatial.end()) {
      return node.Invalid("the average of no elements");
    }
  } else {
    TF_ASSIGN_OR_RETURN(
        window, ReadByteWindow(node, spatial, node.Ints("kernel_shape")));
    for (int64_t dilation : window.dilations) {
      if (dilation != 1) return node.Unsupported("dilations");
    }
  }
  CallInputs inputs;
  inputs.Add(node.Input(0));
  TF_ASSIGN_OR_RETURN(const Scalar x_scale, Scalar::Make(node, 1, inputs, 1));
  TF_ASSIGN_OR_RETURN(const Scalar x_zero, Scalar::Make(node, 2, inputs, 0));
  TF_ASSIGN_OR_RETURN(const Scalar y_scale, Scalar::Make(node, 3, inputs, 1));
  TF_ASSIGN_OR_RETURN(const Scalar y_zero, Scalar::Make(node, 4, inputs, 0));
  TF_RETURN_IF_ERROR(node.status());
  const QuantizedType type = *FindQuantizedType(node.OnnxType(0));
  std::vector<int64_t> shape = x.shape;
  std::vector<ReduceAxis> reduced;
  for (int d = 0; d < rank; ++d) {
    shape[first + d] = window.out[d];
    reduced.emplace_back(absl::StrCat("r", d), window.kernel[d]);
  }
  const DataType i32 = DataType::Int(32);
  const DataType f32 = DataType::Float(32);
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          "qnn.avg_pool",
          {{"pool_size", IntsAttr(window.kernel)},
           {"strides", IntsAttr(window.strides)}},
          inputs.values(), [&](const graph::Tensors& in) {
            const te::Tensor padded = PadFor(
                window, in[0], first, [&] { return x_zero.Read(in, x.dtype); });
            const te::Tensor sum =
                te::Compute("pool_sum", shape, [&](const te::Indices& i) {
                  te::Indices at = i;
                  for (int d = 0; d < rank; ++d) {
                    at[first + d] =
                        i[first + d] * window.strides[d] + Expr(reduced[d]);
                  }
                  return te::Sum(
                      ir::MakeCast(i32, padded(at)) - x_zero.Read(in, i32),
                      reduced);
                });
            return te::Compute(
                "T_requantize", shape, [&](const te::Indices& i) {
                  // How many of the window's elements count: all of them,
                  // as onnxruntime does it also for windows that reach beyond
                  // the padding, or those inside the tensor.
                  Expr count = IntConst(1);
                  for (int d = 0; d < rank; ++d) {
                    const Expr start = i[first + d] * window.strides[d];
                    const int64_t low = window.before[d];
                    const int64_t high = low + spatial[d];
                    count = count * (count_padding
                                         ? IntConst(window.kernel[d])
                                         : ir::Min(start + window.kernel[d],
                                                   IntConst(high)) -
                                               ir::Max(start, IntConst(low)));
                  }
                  const Expr value =
                      Times(ToFloat32(sum(i)), x_scale.Read(in, f32));
                  return te::Body(
                      RoundAndSaturate(Over(Over(value, ToFloat32(count)),
                                            y_scale.Read(in, f32)),
                                       y_zero.Read(in, f32), type));
                });
          }));
  return std::vector<Imported>{y};
}

Outputs ConvertQLinearAveragePool(Node& node) {
  return AveragePool(node, false);
}
Outputs ConvertQLinearGlobalAveragePool(Node& node) {
  return AveragePool(node, true);
}

}  // namespace

std::vector<Converter> QuantizedWindowConverters() {
  return {
      {"ConvInteger", ConvertConvInteger},
      {"QLinearAveragePool", ConvertQLinearAveragePool, "com.microsoft"},
      {"QLinearConv", ConvertQLinearConv},
      {"QLinearConv", ConvertQLinearConv, "com.microsoft"},
      {"QLinearGlobalAveragePool", ConvertQLinearGlobalAveragePool,
       "com.microsoft"},
  };
}

}  // namespace tilefarm::onnx
