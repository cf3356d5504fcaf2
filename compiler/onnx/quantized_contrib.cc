// Elementwise operators, Concat and Softmax of quantised tensors, as
// onnxruntime defines them: the inputs are dequantised, the result of the float
// operator is quantised.
#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/onnx/node.h"
#include "compiler/onnx/quantize_expr.h"
#include "compiler/te/operators.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;
using ir::Expr;
using ir::IntConst;

// A quantised tensor with its scale and zero point, each per tensor.
struct Quantised {
  int tensor;
  Scalar scale;
  Scalar zero_point;

  // The inputs `i`, `i + 1` and `i + 2` of the node.
  static absl::StatusOr<Quantised> Make(Node& node, int i, CallInputs& inputs) {
    const TensorType& type = node.Type(i);
    TF_RETURN_IF_ERROR(node.status());
    if (!IsByte(type.dtype)) {
      return node.Unsupported("input ", i, " of type ", type.ToString());
    }
    const int tensor = inputs.Add(node.Input(i));
    TF_ASSIGN_OR_RETURN(const Scalar scale,
                        Scalar::Make(node, i + 1, inputs, 1));
    TF_ASSIGN_OR_RETURN(const Scalar zero_point,
                        Scalar::Make(node, i + 2, inputs, 0));
    return Quantised{tensor, scale, zero_point};
  }

  Expr Dequantised(const graph::Tensors& in, const Expr& stored) const {
    return Times(Centred(stored, zero_point.Read(in, DataType::Int(32))),
                 scale.Read(in, DataType::Float(32)));
  }
};

// The scale and zero point of the result.
struct Target {
  Scalar scale;
  Scalar zero_point;
  QuantizedType type;

  // The inputs `i` and `i + 1` of the node.
  static absl::StatusOr<Target> Make(Node& node, int i, CallInputs& inputs,
                                     DataType dtype) {
    TF_ASSIGN_OR_RETURN(const Scalar scale, Scalar::Make(node, i, inputs, 1));
    TF_ASSIGN_OR_RETURN(const Scalar zero_point,
                        Scalar::Make(node, i + 1, inputs, 0));
    TF_ASSIGN_OR_RETURN(const QuantizedType type,
                        ByteResultType(node, i + 1, dtype));
    return Target{scale, zero_point, type};
  }

  Expr Quantised(const graph::Tensors& in, const Expr& value) const {
    const DataType f32 = DataType::Float(32);
    return RoundAndSaturate(Over(value, scale.Read(in, f32)),
                            zero_point.Read(in, f32), type);
  }
};

Outputs QuantizedBinary(
    Node& node, const std::string& op,
    const std::function<Expr(const Expr&, const Expr&)>& f) {
  CallInputs inputs;
  TF_ASSIGN_OR_RETURN(const Quantised a, Quantised::Make(node, 0, inputs));
  TF_ASSIGN_OR_RETURN(const Quantised b, Quantised::Make(node, 3, inputs));
  TF_ASSIGN_OR_RETURN(const Target y,
                      Target::Make(node, 6, inputs, node.Dtype(0)));
  const auto shape = BroadcastShapes(node.Shape(0), node.Shape(3));
  TF_RETURN_IF_ERROR(node.status());
  if (!shape.has_value()) {
    return node.Invalid("shapes [", absl::StrJoin(node.Shape(0), ", "),
                        "] and [", absl::StrJoin(node.Shape(3), ", "),
                        "] do not broadcast");
  }
  TF_ASSIGN_OR_RETURN(
      const ValueId out,
      node.builder().Compute(
          op, {}, inputs.values(), [&](const graph::Tensors& in) {
            return te::Compute("T_quantize", *shape, [&](const te::Indices& i) {
              return te::Body(y.Quantised(
                  in, f(a.Dequantised(in, BroadcastRead(in[a.tensor], i)),
                        b.Dequantised(in, BroadcastRead(in[b.tensor], i)))));
            });
          }));
  return std::vector<Imported>{out};
}

Outputs ConvertQLinearAdd(Node& node) {
  return QuantizedBinary(node, "qnn.add", Plus);
}
Outputs ConvertQLinearMul(Node& node) {
  return QuantizedBinary(node, "qnn.multiply", Times);
}

Outputs QuantizedUnary(Node& node, const std::string& op,
                       const std::function<Expr(const Expr&)>& f) {
  CallInputs inputs;
  TF_ASSIGN_OR_RETURN(const Quantised x, Quantised::Make(node, 0, inputs));
  TF_ASSIGN_OR_RETURN(const Target y,
                      Target::Make(node, 3, inputs, node.Dtype(0)));
  TF_RETURN_IF_ERROR(node.status());
  TF_ASSIGN_OR_RETURN(
      const ValueId out,
      node.builder().Compute(
          op, {}, inputs.values(), [&](const graph::Tensors& in) {
            return te::Map(
                in[x.tensor],
                [&](const Expr& e) {
                  return y.Quantised(in, f(x.Dequantised(in, e)));
                },
                "T_quantize");
          }));
  return std::vector<Imported>{out};
}

Outputs ConvertQLinearSigmoid(Node& node) {
  return QuantizedUnary(node, "qnn.sigmoid", [](const Expr& x) {
    return ir::MakeCall(ir::Intrinsic::kSigmoid, {x});
  });
}

Outputs ConvertQLinearLeakyRelu(Node& node) {
  const double alpha = node.Float("alpha", 0.01f);
  return QuantizedUnary(node, "qnn.leakyrelu", [&](const Expr& x) {
    return ir::MakeSelect(ir::GE(x, Float32(0)), x, Times(x, Float32(alpha)));
  });
}

Outputs ConvertQLinearSoftmax(Node& node) {
  const int64_t opset = node.Int("opset", 13);
  const TensorType x_type = node.Type(0);
  int64_t axis = node.Int("axis", opset < 13 ? 1 : -1);
  CallInputs inputs;
  TF_ASSIGN_OR_RETURN(const Quantised x, Quantised::Make(node, 0, inputs));
  TF_ASSIGN_OR_RETURN(const Target y,
                      Target::Make(node, 3, inputs, x_type.dtype));
  axis = node.NormalizeAxis(axis, x_type.ndim());
  TF_RETURN_IF_ERROR(node.status());
  // Until operator set 13 all dimensions from `axis` on are one.
  std::vector<int> axes;
  const int64_t end = opset < 13 ? x_type.ndim() : axis + 1;
  for (int64_t d = axis; d < end; ++d) axes.push_back(static_cast<int>(d));
  TF_ASSIGN_OR_RETURN(
      const ValueId out,
      node.builder().Compute(
          "qnn.softmax", {{"axis", ir::Attr(axis)}}, inputs.values(),
          [&](const graph::Tensors& in) {
            const te::Tensor value = te::Map(
                in[x.tensor],
                [&](const Expr& e) { return x.Dequantised(in, e); },
                "T_dequantize");
            const te::Tensor top = te::ReduceOver(
                value, te::Reducer::kMax, axes, true, "T_softmax_maxelem");
            const te::Tensor e = te::Zip(
                value, top,
                [](const Expr& a, const Expr& b) {
                  return ir::MakeCall(ir::Intrinsic::kExp, {Minus(a, b)});
                },
                "T_softmax_exp");
            const te::Tensor sum = te::ReduceOver(e, te::Reducer::kSum, axes,
                                                  true, "T_softmax_expsum");
            return te::Zip(
                e, sum,
                [&](const Expr& a, const Expr& b) {
                  return y.Quantised(in, Over(a, b));
                },
                "T_quantize");
          }));
  return std::vector<Imported>{out};
}

Outputs ConvertQLinearConcat(Node& node) {
  // Y_scale, Y_zero_point, then each tensor with its scale and zero point.
  const int count = (node.num_inputs() - 2) / 3;
  if (count < 1 || node.num_inputs() != 2 + 3 * count) {
    return node.Invalid(node.num_inputs(), " inputs");
  }
  CallInputs inputs;
  TF_ASSIGN_OR_RETURN(const Target y,
                      Target::Make(node, 0, inputs, node.Dtype(2)));
  std::vector<int64_t> shape = node.Shape(2);
  const auto axis = static_cast<size_t>(node.NormalizeAxis(
      node.Int("axis", 0), static_cast<int64_t>(shape.size())));
  TF_RETURN_IF_ERROR(node.status());
  std::vector<Quantised> parts;
  std::vector<int64_t> ends;  // where each part ends along the axis
  int64_t total = 0;
  for (int p = 0; p < count; ++p) {
    std::vector<int64_t> part = node.Shape(2 + 3 * p);
    TF_RETURN_IF_ERROR(node.status());
    if (part.size() != shape.size()) return node.Invalid("ranks differ");
    const int64_t extent = part[axis];
    part[axis] = shape[axis];
    if (part != shape) return node.Invalid("shapes differ");
    if (extent == 0) continue;
    if (__builtin_add_overflow(total, extent, &total)) {
      return node.Invalid("the result is too large");
    }
    TF_ASSIGN_OR_RETURN(const Quantised x,
                        Quantised::Make(node, 2 + 3 * p, inputs));
    parts.push_back(x);
    ends.push_back(total);
  }
  shape[axis] = total;
  TF_ASSIGN_OR_RETURN(
      const ValueId out,
      node.builder().Compute(
          "qnn.concat", {{"axis", ir::Attr(static_cast<int64_t>(axis))}},
          inputs.values(), [&](const graph::Tensors& in) {
            return te::Compute(
                "T_quantize", shape, [&](const te::Indices& i) -> te::Body {
                  if (parts.empty()) return IntConst(0, y.type.storage);
                  Expr value;
                  for (size_t p = parts.size(); p-- > 0;) {
                    te::Indices at = i;
                    at[axis] = i[axis] - (p == 0 ? 0 : ends[p - 1]);
                    const Expr own =
                        parts[p].Dequantised(in, in[parts[p].tensor](at));
                    value = value == nullptr
                                ? own
                                : ir::IfThenElseExpr(
                                      ir::LT(i[axis], IntConst(ends[p])), own,
                                      value);
                  }
                  return y.Quantised(in, value);
                });
          }));
  return std::vector<Imported>{out};
}

}  // namespace

std::vector<Converter> QuantizedContribConverters() {
  constexpr std::string_view kDomain = "com.microsoft";
  return {
      {"QLinearAdd", ConvertQLinearAdd, kDomain},
      {"QLinearConcat", ConvertQLinearConcat, kDomain},
      {"QLinearLeakyRelu", ConvertQLinearLeakyRelu, kDomain},
      {"QLinearMul", ConvertQLinearMul, kDomain},
      {"QLinearSigmoid", ConvertQLinearSigmoid, kDomain},
      {"QLinearSoftmax", ConvertQLinearSoftmax, kDomain},
  };
}

}  // namespace tilefarm::onnx
