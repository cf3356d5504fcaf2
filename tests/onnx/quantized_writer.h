// Writes products of quantised tensors, in the three forms that quantisers
// write, and activations of them.
//
// What is quantised must be exact: a value that a pass may round differently
// could fall on another side of a step. It is an input of the model, or is
// computed without rounding, since scales are powers of two.
#ifndef TILEFARM_TESTS_ONNX_QUANTIZED_WRITER_H_
#define TILEFARM_TESTS_ONNX_QUANTIZED_WRITER_H_

#include <cmath>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/onnx/model_writer.h"

namespace tilefarm::onnx {

class QuantizedWriter : protected ModelWriter {
 protected:
  using ModelWriter::ModelWriter;

  // x * weights, or a convolution with them.
  Tensor QuantizedProduct(const Tensor& x) {
    const bool is_image = x.shape.size() == 4 && rng_.Chance(0.7);
    is_signed_ = rng_.Chance(0.3);
    switch (rng_.Below(3)) {
      case 0:
        return is_image ? QdqConv(x) : QdqMatmul(x);
      case 1:
        return is_image ? QLinearConv(x) : QLinearMatmul(x);
      default:
        return is_image ? ConvInteger(x) : MatmulInteger(x);
    }
  }

  // A product of bytes that becomes bytes again.
  Tensor RequantizedProduct(const Tensor& x) {
    is_exact_ = true;
    is_signed_ = rng_.Chance(0.3);
    Tensor y =
        x.shape.size() == 4 && rng_.Chance(0.7) ? QdqConv(x) : QdqMatmul(x);
    if (y.shape == x.shape) {
      const Parameters data = DataParameters();
      const std::string left = Dequantized(Quantized(x, data), data);
      y = Node("Add", {y.name, left}, y.shape);
    }
    if (rng_.Chance(0.5)) y = Node("Relu", {y.name}, y.shape);
    const Parameters result{Scalar(0x1p-5), DataParameters().zero};
    const std::string bytes = Quantized(y, result);
    is_exact_ = false;
    return Node("DequantizeLinear", {bytes, result.scale, result.zero},
                y.shape);
  }
  // Functions of x by way of a byte.
  Tensor QuantizedActivation(const Tensor& x) {
    is_signed_ = rng_.Chance(0.3);
    const Parameters data = DataParameters();
    const std::string byte = Dequantized(Quantized(x, data), data);
    Tensor y = Activation(byte, x.shape);
    for (int more = static_cast<int>(rng_.Between(1, 2)); more > 0; --more) {
      y = Activation(y.name, x.shape);
      // Such as x * sigmoid(x).
      if (rng_.Chance(0.4)) y = Node("Mul", {y.name, byte}, x.shape);
    }
    return y;
  }

 private:
  Tensor Activation(const std::string& x, const Shape& shape) {
    static const char* const kOps[] = {"Sigmoid", "Tanh", "Erf", "Exp", "Relu"};
    return Node(kOps[rng_.Below(std::size(kOps))], {x}, shape);
  }
  // A node whose result is not float32.
  std::string Hidden(const std::string& op,
                     const std::vector<std::string>& inputs) {
    node_ = graph_->add_node();
    node_->set_op_type(op);
    for (const std::string& input : inputs) node_->add_input(input);
    node_->add_output(absl::StrCat("h", graph_->node_size()));
    return node_->output(0);
  }
  std::string Bytes(const Shape& shape, int low, int high, bool is_signed) {
    pb::TensorProto* tensor = NewConstant(
        is_signed ? pb::TensorProto::INT8 : pb::TensorProto::UINT8, shape);
    for (int64_t i = Volume(shape); i > 0; --i) {
      tensor->add_int32_data(low + static_cast<int>(rng_.Below(
                                       static_cast<size_t>(high - low + 1))));
    }
    return tensor->name();
  }
  // Powers of two with these exponents.
  std::string Exact(const Shape& shape, int low, int high) {
    pb::TensorProto* tensor = NewConstant(pb::TensorProto::FLOAT, shape);
    for (int64_t i = Volume(shape); i > 0; --i) {
      tensor->add_float_data(
          std::ldexp(1.0f, static_cast<int>(rng_.Between(low, high))));
    }
    return tensor->name();
  }
  // A scale for inputs in [-1, 1), and a zero point near their middle or 0.
  struct Parameters {
    std::string scale, zero;
  };
  Parameters DataParameters() {
    const bool centred = rng_.Chance(0.7);
    const int middle = is_signed_ ? 0 : 128;
    const int zero = centred ? middle : 0;
    return {is_exact_ ? Scalar(0x1p-7) : Floats({}, 0.007, 0.009),
            Bytes({}, zero, centred ? zero + 9 : zero, is_signed_)};
  }
  std::string Quantized(const Tensor& x, const Parameters& parameters) {
    return Hidden("QuantizeLinear",
                  {x.name, parameters.scale, parameters.zero});
  }
  // Weights of `shape`, with one scale for all, or for each channel.
  struct Weights {
    std::string bytes, scale, zero;
    bool per_channel = false;
    size_t channel_dim = 0;
  };
  Weights MakeWeights(const Shape& shape, size_t channel_dim) {
    Weights w;
    w.channel_dim = channel_dim;
    w.per_channel = rng_.Chance(0.5);
    Shape scales;
    if (w.per_channel) scales.push_back(shape[channel_dim]);
    w.scale = is_exact_ ? Exact(scales, -10, -8) : Floats(scales, 0.001, 0.004);
    // Bytes around 128 fit int8 without it; all bytes do not around 100.
    const bool is_signed = rng_.Chance(0.7);
    w.bytes =
        is_signed ? Bytes(shape, -127, 127, true) : Bytes(shape, 0, 255, false);
    const int zero = is_signed ? 0 : rng_.Chance(0.7) ? 128 : 100;
    w.zero = Bytes(scales, zero, zero, is_signed);
    return w;
  }
  std::string Dequantized(const Weights& w) {
    const std::string result =
        Hidden("DequantizeLinear", {w.bytes, w.scale, w.zero});
    if (w.per_channel) Attr("axis", static_cast<int64_t>(w.channel_dim));
    return result;
  }
  std::string Dequantized(const std::string& bytes,
                          const Parameters& parameters) {
    return Hidden("DequantizeLinear",
                  {bytes, parameters.scale, parameters.zero});
  }

  // The shape of the result, and the attributes of the latest node.
  struct Conv {
    Shape weights, result;
    int64_t stride = 1, taps = 1, groups = 1;
  };
  Conv DrawConv(const Tensor& x) {
    Conv conv;
    const int64_t in = x.shape[1];
    const bool depthwise = rng_.Chance(0.25);
    conv.taps = rng_.Chance(0.5) ? 3 : 1;
    conv.stride = rng_.Chance(0.3) ? 2 : 1;
    conv.groups = depthwise ? in : 1;
    const int64_t out = depthwise ? in : rng_.Between(1, 8);
    conv.weights = {out, depthwise ? 1 : in, conv.taps, conv.taps};
    conv.result = x.shape;
    conv.result[1] = out;
    for (size_t d = 2; d < 4; ++d) {
      conv.result[d] = (x.shape[d] - 1) / conv.stride + 1;
    }
    return conv;
  }
  void SetAttrs(const Conv& conv) {
    Attr("group", conv.groups);
    Attr("strides", std::vector<int64_t>{conv.stride, conv.stride});
    if (conv.taps == 3) Attr("pads", std::vector<int64_t>{1, 1, 1, 1});
  }
  static Shape WithColumns(Shape shape, int64_t columns) {
    shape.back() = columns;
    return shape;
  }

  Tensor QdqConv(const Tensor& x) {
    const Conv conv = DrawConv(x);
    const Parameters data = DataParameters();
    const std::string left = Dequantized(Quantized(x, data), data);
    const std::string right = Dequantized(MakeWeights(conv.weights, 0));
    std::vector<std::string> inputs{left, right};
    if (rng_.Chance(0.5)) {
      const Shape channels{conv.result[1]};
      inputs.push_back(is_exact_ ? Exact(channels, -4, 0)
                                 : Floats(channels, -1, 1));
    }
    Tensor y = Node("Conv", inputs, conv.result);
    SetAttrs(conv);
    return y;
  }
  Tensor QdqMatmul(const Tensor& x) {
    const int64_t columns = rng_.Between(1, 9);
    const Parameters data = DataParameters();
    const std::string left = Dequantized(Quantized(x, data), data);
    const std::string right =
        Dequantized(MakeWeights({x.shape.back(), columns}, 1));
    return Node("MatMul", {left, right}, WithColumns(x.shape, columns));
  }
  Tensor QLinearConv(const Tensor& x) {
    const Conv conv = DrawConv(x);
    const Parameters data = DataParameters(), result = DataParameters();
    const Weights w = MakeWeights(conv.weights, 0);
    const std::string left = Quantized(x, data);
    const std::string bytes =
        Hidden("QLinearConv", {left, data.scale, data.zero, w.bytes, w.scale,
                               w.zero, result.scale, result.zero});
    SetAttrs(conv);
    return Node("DequantizeLinear", {bytes, result.scale, result.zero},
                conv.result);
  }
  Tensor QLinearMatmul(const Tensor& x) {
    const int64_t columns = rng_.Between(1, 9);
    const Parameters data = DataParameters(), result = DataParameters();
    const Weights w = MakeWeights({x.shape.back(), columns}, 1);
    const std::string left = Quantized(x, data);
    const std::string bytes =
        Hidden("QLinearMatMul", {left, data.scale, data.zero, w.bytes, w.scale,
                                 w.zero, result.scale, result.zero});
    return Node("DequantizeLinear", {bytes, result.scale, result.zero},
                WithColumns(x.shape, columns));
  }
  // The result of `op` as float32, times the scale.
  Tensor Scaled(const std::string& integers, const std::string& scale,
                Shape shape) {
    const std::string wide = Hidden("Cast", {integers});
    Attr("to", int64_t{pb::TensorProto::FLOAT});
    Tensor y = Node("Mul", {wide, Floats({}, 0.001, 0.004)}, shape);
    return Node("Mul", {y.name, scale}, std::move(shape));
  }
  // Quantised at run time: bytes, scale and zero point.
  std::vector<std::string> Dynamic(const Tensor& x) {
    const std::string bytes = Hidden("DynamicQuantizeLinear", {x.name});
    pb::NodeProto* node = node_;
    for (const char* name : {"s", "z"}) {
      node->add_output(absl::StrCat(bytes, name));
    }
    return {bytes, node->output(1), node->output(2)};
  }
  Tensor ConvInteger(const Tensor& x) {
    const Conv conv = DrawConv(x);
    const std::vector<std::string> data = Dynamic(x);
    const Weights w = MakeWeights(conv.weights, 0);
    const std::string integers =
        Hidden("ConvInteger", {data[0], w.bytes, data[2], w.zero});
    SetAttrs(conv);
    return Scaled(integers, data[1], conv.result);
  }
  // Each product quantises x for itself, as quantisers write it.
  Tensor MatmulInteger(const Tensor& x) {
    const Tensor first = OneMatmulInteger(x);
    return rng_.Chance(0.5) ? OneMatmulInteger(x) : first;
  }
  Tensor OneMatmulInteger(const Tensor& x) {
    const int64_t columns = rng_.Between(1, 9);
    const std::vector<std::string> data = Dynamic(x);
    const Weights w = MakeWeights({x.shape.back(), columns}, 1);
    const std::string integers =
        Hidden("MatMulInteger", {data[0], w.bytes, data[2], w.zero});
    return Scaled(integers, data[1], WithColumns(x.shape, columns));
  }

  bool is_signed_ = false;  // the data
  bool is_exact_ = false;   // scales are powers of two
};

}  // namespace tilefarm::onnx

#endif  // TILEFARM_TESTS_ONNX_QUANTIZED_WRITER_H_
