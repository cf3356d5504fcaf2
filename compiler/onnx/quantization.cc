// Conversions between numbers and quantised tensors.
#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "compiler/onnx/node.h"
#include "compiler/onnx/quantize_expr.h"
#include "compiler/onnx/small_types.h"
#include "compiler/onnx/tensor_proto.h"
#include "compiler/te/operators.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;
using ir::Expr;

constexpr int kOnnxUint8 = 2;

// The number that an input's element stands for, as float32.
Expr Decoded(const SmallType* small, const Expr& stored) {
  return small != nullptr ? DecodeSmall(*small, stored) : ToFloat32(stored);
}

// x / scale, rounded to `dtype`, as float32.
Expr DividedIn(DataType dtype, const Expr& x, const Expr& scale) {
  const Expr quotient = Over(ToFloat32(ir::MakeCast(dtype, x)),
                             ToFloat32(ir::MakeCast(dtype, scale)));
  return ToFloat32(ir::MakeCast(dtype, quotient));
}

Outputs ConvertQuantizeLinear(Node& node) {
  const TensorType x = node.Type(0);
  const TensorType scale = node.Type(1);
  TF_RETURN_IF_ERROR(node.status());
  const int64_t axis = node.Int("axis", 1);
  const int64_t block_size = node.Int("block_size", 0);
  const bool saturate = node.Int("saturate", 1) != 0;
  const bool has_zero_point = node.HasInput(2);
  if (!x.dtype.is_float() && x.dtype != DataType::Int(32)) {
    return node.Invalid("input 0 is ", x.ToString());
  }
  int to = static_cast<int>(node.Int("output_dtype", 0));
  if (has_zero_point) {
    const int zero_point_type = node.OnnxType(2);
    if (to != 0 && to != zero_point_type) {
      return node.Invalid("output_dtype=", OnnxTypeName(to),
                          ", but the zero point is of type ",
                          OnnxTypeName(zero_point_type));
    }
    to = zero_point_type;
  }
  if (to == 0) to = kOnnxUint8;
  const std::optional<QuantizedType> type = FindQuantizedType(to);
  if (!type.has_value()) {
    return node.Invalid("the result cannot be of type ", OnnxTypeName(to));
  }
  const SmallType* scale_small = FindSmallType(node.RawInput(1).small_type);
  // The type in which x is divided by the scale.
  DataType division = scale.dtype;
  if (!division.is_float()) division = x.dtype;
  if (const int64_t precision = node.Int("precision", 0); precision != 0) {
    const std::optional<DataType> given = DtypeOf(static_cast<int>(precision));
    if (!given.has_value() || !given->is_float()) {
      return node.Invalid("precision=", precision);
    }
    division = *given;
  }
  if (!division.is_float()) division = DataType::Float(32);
  if (division.bits > 32) return node.Unsupported("division in float64");
  TF_ASSIGN_OR_RETURN(const ScaleLayout layout,
                      LayoutOfScale(node, 1, x.shape, axis, block_size));
  std::vector<ValueId> inputs{node.Input(0), node.Input(1)};
  ScaleLayout zero_point_layout;
  // A zero point of 8-bit floats only gives the type: it is 0.
  const bool uses_zero_point =
      has_zero_point && !(type->is_float() && type->small->bits == 8);
  if (uses_zero_point) {
    TF_ASSIGN_OR_RETURN(zero_point_layout,
                        LayoutOfScale(node, 2, x.shape, axis, block_size));
    inputs.push_back(node.Input(2));
  }
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          "quantize",
          {{"axis", ir::Attr(axis)},
           {"block_size", ir::Attr(block_size)},
           {"out_dtype", ir::Attr(OnnxTypeName(to))}},
          inputs, [&](const graph::Tensors& in) {
            return te::Compute(
                "T_quantize", x.shape, [&](const te::Indices& i) {
                  Expr value = DividedIn(
                      division, in[0](i),
                      Decoded(scale_small, ReadScale(in[1], layout, i)));
                  Expr zero_point;
                  if (uses_zero_point) {
                    zero_point = Decoded(
                        type->small, ReadScale(in[2], zero_point_layout, i));
                    if (type->is_float()) value = Plus(value, zero_point);
                  }
                  return te::Body(
                      RoundAndSaturate(value, zero_point, *type, saturate));
                });
          }));
  return std::vector<Imported>{{y, type->small_type()}};
}

Outputs ConvertDequantizeLinear(Node& node) {
  const TensorType x = node.Type(0);
  const TensorType scale = node.Type(1);
  TF_RETURN_IF_ERROR(node.status());
  const int64_t axis = node.Int("axis", 1);
  const int64_t block_size = node.Int("block_size", 0);
  const bool has_zero_point = node.HasInput(2);
  const SmallType* small = FindSmallType(node.RawInput(0).small_type);
  const SmallType* scale_small = FindSmallType(node.RawInput(1).small_type);
  if (!x.dtype.is_integral() || x.dtype.is_bool() || x.dtype.bits > 32) {
    return node.Invalid("input 0 is ", x.ToString());
  }
  if (has_zero_point && node.OnnxType(2) != node.OnnxType(0)) {
    return node.Invalid("the zero point is of type ",
                        OnnxTypeName(node.OnnxType(2)), ", the tensor of type ",
                        OnnxTypeName(node.OnnxType(0)));
  }
  DataType to = scale.dtype;
  if (const int64_t given = node.Int("output_dtype", 0); given != 0) {
    to = DtypeOf(static_cast<int>(given)).value_or(DataType::Bool());
  }
  if (!to.is_float() || to.bits > 32) {
    return node.Invalid("the result cannot be ", to.ToString());
  }
  TF_ASSIGN_OR_RETURN(const ScaleLayout layout,
                      LayoutOfScale(node, 1, x.shape, axis, block_size));
  std::vector<ValueId> inputs{node.Input(0), node.Input(1)};
  ScaleLayout zero_point_layout;
  if (has_zero_point) {
    TF_ASSIGN_OR_RETURN(zero_point_layout,
                        LayoutOfScale(node, 2, x.shape, axis, block_size));
    inputs.push_back(node.Input(2));
  }
  const bool is_float = small != nullptr && small->is_float;
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          "dequantize",
          {{"axis", ir::Attr(axis)},
           {"block_size", ir::Attr(block_size)},
           {"out_dtype", ir::Attr(to.ToString())}},
          inputs, [&](const graph::Tensors& in) {
            return te::Compute(
                "T_dequantize", x.shape, [&](const te::Indices& i) {
                  Expr value = in[0](i);
                  Expr zero_point;
                  if (has_zero_point) {
                    zero_point = ReadScale(in[2], zero_point_layout, i);
                  }
                  if (is_float) {
                    value = Decoded(small, value);
                    if (has_zero_point) {
                      value = Minus(value, Decoded(small, zero_point));
                    }
                  } else if (has_zero_point) {
                    value = Centred(
                        value, ir::MakeCast(DataType::Int(32), zero_point));
                  }
                  return te::Body(ir::MakeCast(
                      to, Times(ToFloat32(value),
                                Decoded(scale_small,
                                        ReadScale(in[1], layout, i)))));
                });
          }));
  return std::vector<Imported>{y};
}

// The least or greatest element, not counting those on the wrong side of 0.
te::Tensor ExtremeOf(const te::Tensor& x, te::Reducer reducer) {
  if (std::find(x.shape().begin(), x.shape().end(), 0) != x.shape().end()) {
    return te::Compute("bound", {},
                       [](const te::Indices&) { return te::Body(Float32(0)); });
  }
  std::vector<int> axes;
  for (int d = 0; d < x.ndim(); ++d) axes.push_back(d);
  return te::Map(
      axes.empty() ? x : te::ReduceOver(x, reducer, axes, false, "bound"),
      [&](const Expr& bound) {
        return reducer == te::Reducer::kMin ? ir::Min(bound, Float32(0))
                                            : ir::Max(bound, Float32(0));
      });
}

}  // namespace

Outputs ConvertDynamicQuantizeLinear(Node& node) {
  const TensorType x = node.Type(0);
  TF_RETURN_IF_ERROR(node.status());
  if (x.dtype != DataType::Float(32)) {
    return node.Invalid("input 0 is ", x.ToString());
  }
  const QuantizedType uint8 = *FindQuantizedType(kOnnxUint8);
  TF_ASSIGN_OR_RETURN(
      const std::vector<ValueId> results,
      node.builder().ComputeAll(
          "dynamic_quantize", {}, {node.Input(0)},
          [&](const graph::Tensors& in) {
            const te::Tensor low = ExtremeOf(in[0], te::Reducer::kMin);
            const te::Tensor high = ExtremeOf(in[0], te::Reducer::kMax);
            // A tensor of zeros has no range; any scale is right.
            const te::Tensor scale =
                te::Compute("scale", {}, [&](const te::Indices&) {
                  const Expr range = Minus(high({}), low({}));
                  return te::Body(
                      ir::MakeSelect(ir::EQ(high({}), low({})), Float32(1),
                                     Over(range, Float32(uint8.max))));
                });
            const te::Tensor zero_point =
                te::Compute("zero_point", {}, [&](const te::Indices&) {
                  const Expr exact =
                      Minus(Float32(0), Over(low({}), scale({})));
                  return te::Body(RoundAndSaturate(exact, nullptr, uint8));
                });
            const te::Tensor y = te::Map(
                in[0],
                [&](const Expr& e) {
                  return RoundAndSaturate(Over(e, scale({})),
                                          ToFloat32(zero_point({})), uint8);
                },
                "T_quantize");
            return graph::Tensors{y, scale, zero_point};
          }));
  return std::vector<Imported>(results.begin(), results.end());
}

std::vector<Converter> QuantizationConverters() {
  return {
      {"DequantizeLinear", ConvertDequantizeLinear},
      {"DequantizeLinear", ConvertDequantizeLinear, "com.microsoft"},
      {"DynamicQuantizeLinear", ConvertDynamicQuantizeLinear},
      {"QuantizeLinear", ConvertQuantizeLinear},
      {"QuantizeLinear", ConvertQuantizeLinear, "com.microsoft"},
  };
}

}  // namespace tilefarm::onnx
