// Matrix products of quantised tensors: integers are multiplied and summed in
// int32, the sum is scaled and rounded once.
#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/onnx/matrix_product.h"
#include "compiler/onnx/node.h"
#include "compiler/onnx/quantize_expr.h"
#include "compiler/te/operators.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;
using ir::Expr;
using ir::IntConst;
using te::ReduceAxis;

// A scale or zero point of a matrix: one element, a vector with one for each
// row (or column), or a tensor that broadcasts to the product.
class MatrixParameter {
 public:
  enum Kind { kRows, kColumns };

  static absl::StatusOr<MatrixParameter> Make(Node& node, int i,
                                              const Product& product, Kind kind,
                                              CallInputs& inputs,
                                              double absent) {
    MatrixParameter parameter;
    parameter.kind_ = kind;
    if (!node.HasInput(i) || node.Type(i).num_elements() == 1) {
      TF_ASSIGN_OR_RETURN(parameter.scalar_,
                          Scalar::Make(node, i, inputs, absent));
      return parameter;
    }
    const std::vector<int64_t>& shape = node.Shape(i);
    const std::vector<int64_t> full = product.full_shape();
    const int64_t count = kind == kRows ? product.m : product.n;
    bool fits = false;
    if (shape.size() == 1) {
      fits = shape[0] == count;
    } else {
      const auto together = BroadcastShapes(shape, full);
      // It must not vary along the inner dimension, which is summed.
      fits = together == full &&
             shape[shape.size() - (kind == kRows ? 1 : 2)] == 1;
    }
    if (!fits) {
      return node.Invalid("input ", i, " of shape [",
                          absl::StrJoin(shape, ", "),
                          "] does not fit a product of shape [",
                          absl::StrJoin(full, ", "), "]");
    }
    parameter.position_ = inputs.Add(node.Input(i));
    parameter.ndim_ = static_cast<int>(shape.size());
    return parameter;
  }

  // Whether it depends on the column at most.
  bool is_of_columns() const {
    return scalar_.has_value() || (kind_ == kColumns && ndim_ == 1);
  }

  Expr Read(const graph::Tensors& in, const te::Indices& full,
            DataType dtype) const {
    if (scalar_.has_value()) return scalar_->Read(in, dtype);
    const te::Tensor& tensor = in[position_];
    if (tensor.ndim() > 1) {
      return ir::MakeCast(dtype, BroadcastRead(tensor, full));
    }
    return ir::MakeCast(
        dtype, tensor({kind_ == kRows ? full[full.size() - 2] : full.back()}));
  }

 private:
  Kind kind_ = kRows;
  std::optional<Scalar> scalar_;
  int position_ = 0;
  int ndim_ = 0;
};

// Reads a scale at an index of the product.
using ReadScaleAt = std::function<Expr(const te::Indices& full)>;

// The scale that `read` computes of `a_scale` and `b_scale`, as a tensor of its
// own where it depends on the column at most: it is constant, as a rule, and
// computed once then.
ReadScaleAt ScaleOf(const MatrixParameter& a_scale,
                    const MatrixParameter& b_scale, int64_t columns,
                    ReadScaleAt read) {
  if (!a_scale.is_of_columns() || !b_scale.is_of_columns()) return read;
  const te::Tensor scale =
      te::Compute("scale", {columns}, [&](const te::Indices& i) {
        return te::Body(read({IntConst(0), i[0]}));
      });
  return [scale](const te::Indices& full) { return scale({full.back()}); };
}

// The integer product of two quantised matrices, with the zero points taken
// off.
class IntegerProduct {
 public:
  // The inputs with these positions; a zero point may be missing.
  static absl::StatusOr<IntegerProduct> Make(Node& node, CallInputs& inputs,
                                             int a, int a_zero_point, int b,
                                             int b_zero_point,
                                             bool transpose_a = false,
                                             bool transpose_b = false) {
    IntegerProduct result;
    if (!IsByte(node.Dtype(a)) || !IsByte(node.Dtype(b))) {
      return node.Unsupported("inputs of types ", node.Type(a).ToString(),
                              " and ", node.Type(b).ToString());
    }
    for (const auto& [tensor, zero_point] :
         {std::pair(a, a_zero_point), std::pair(b, b_zero_point)}) {
      if (node.HasInput(zero_point) &&
          node.Dtype(zero_point) != node.Dtype(tensor)) {
        return node.Invalid("the zero point of input ", tensor,
                            " has another type");
      }
    }
    TF_ASSIGN_OR_RETURN(result.product_,
                        PlanProduct(node, node.Shape(a), node.Shape(b),
                                    transpose_a, transpose_b));
    result.transpose_a_ = transpose_a;
    result.transpose_b_ = transpose_b;
    result.a_ = inputs.Add(node.Input(a));
    result.b_ = inputs.Add(node.Input(b));
    TF_ASSIGN_OR_RETURN(
        result.a_zero_point_,
        MatrixParameter::Make(node, a_zero_point, result.product_,
                              MatrixParameter::kRows, inputs, 0));
    TF_ASSIGN_OR_RETURN(
        result.b_zero_point_,
        MatrixParameter::Make(node, b_zero_point, result.product_,
                              MatrixParameter::kColumns, inputs, 0));
    return result;
  }

  const Product& product() const { return product_; }

  // int32, of shape product().shape().
  te::Tensor Compute(const graph::Tensors& in) const {
    const DataType i32 = DataType::Int(32);
    const ReduceAxis k("k", product_.k);
    return te::Compute(
        "T_matmul", product_.shape(), [&](const te::Indices& i) -> te::Body {
          if (product_.k == 0) return IntConst(0, i32);
          const te::Indices full = product_.FullIndex(i);
          const Expr a =
              ir::MakeCast(i32, product_.ReadA(in[a_], full, k, transpose_a_)) -
              a_zero_point_.Read(in, full, i32);
          const Expr b =
              ir::MakeCast(i32, product_.ReadB(in[b_], full, k, transpose_b_)) -
              b_zero_point_.Read(in, full, i32);
          return te::Sum(Times(a, b), {k});
        });
  }

 private:
  Product product_;
  bool transpose_a_ = false;
  bool transpose_b_ = false;
  int a_ = 0;
  int b_ = 0;
  MatrixParameter a_zero_point_;
  MatrixParameter b_zero_point_;
};

Outputs ConvertMatMulInteger(Node& node) {
  // A, B, a_zero_point, b_zero_point
  CallInputs inputs;
  TF_ASSIGN_OR_RETURN(const IntegerProduct integers,
                      IntegerProduct::Make(node, inputs, 0, 2, 1, 3));
  TF_RETURN_IF_ERROR(node.status());
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          "matmul", {{"out_dtype", "int32"}}, inputs.values(),
          [&](const graph::Tensors& in) { return integers.Compute(in); }));
  return std::vector<Imported>{y};
}

Outputs ConvertQLinearMatMul(Node& node) {
  CallInputs inputs;
  TF_ASSIGN_OR_RETURN(const IntegerProduct integers,
                      IntegerProduct::Make(node, inputs, 0, 2, 3, 5));
  const Product& product = integers.product();
  TF_ASSIGN_OR_RETURN(const MatrixParameter a_scale,
                      MatrixParameter::Make(node, 1, product,
                                            MatrixParameter::kRows, inputs, 1));
  TF_ASSIGN_OR_RETURN(
      const MatrixParameter b_scale,
      MatrixParameter::Make(node, 4, product, MatrixParameter::kColumns, inputs,
                            1));
  TF_ASSIGN_OR_RETURN(const Scalar y_scale, Scalar::Make(node, 6, inputs, 1));
  TF_ASSIGN_OR_RETURN(const Scalar y_zero, Scalar::Make(node, 7, inputs, 0));
  TF_ASSIGN_OR_RETURN(const QuantizedType type,
                      ByteResultType(node, 7, node.Dtype(0)));
  TF_RETURN_IF_ERROR(node.status());
  const DataType f32 = DataType::Float(32);
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          "qnn.matmul", {}, inputs.values(), [&](const graph::Tensors& in) {
            const te::Tensor sum = integers.Compute(in);
            const ReadScaleAt scale = ScaleOf(
                a_scale, b_scale, product.n, [&](const te::Indices& full) {
                  return Over(Times(a_scale.Read(in, full, f32),
                                    b_scale.Read(in, full, f32)),
                              y_scale.Read(in, f32));
                });
            return te::Compute(
                "T_requantize", product.shape(), [&](const te::Indices& i) {
                  return te::Body(RoundAndSaturate(
                      Times(ToFloat32(sum(i)), scale(product.FullIndex(i))),
                      y_zero.Read(in, f32), type));
                });
          }));
  return std::vector<Imported>{y};
}

// A * B * scales + bias as a float tensor.
Outputs ConvertMatMulIntegerToFloat(Node& node) {
  // A, B, a_scale, b_scale, a_zero_point, b_zero_point, bias
  CallInputs inputs;
  TF_ASSIGN_OR_RETURN(const IntegerProduct integers,
                      IntegerProduct::Make(node, inputs, 0, 4, 1, 5));
  const Product& product = integers.product();
  TF_ASSIGN_OR_RETURN(const MatrixParameter a_scale,
                      MatrixParameter::Make(node, 2, product,
                                            MatrixParameter::kRows, inputs, 1));
  TF_ASSIGN_OR_RETURN(
      const MatrixParameter b_scale,
      MatrixParameter::Make(node, 3, product, MatrixParameter::kColumns, inputs,
                            1));
  const DataType to = node.Dtype(2);
  TF_RETURN_IF_ERROR(node.status());
  if (!to.is_float() || to.bits > 32) {
    return node.Unsupported("scales of type ", to.ToString());
  }
  int bias = -1;
  if (node.HasInput(6)) {
    if (node.Dtype(6) != to ||
        node.Shape(6) != std::vector<int64_t>{product.n}) {
      return node.Invalid("bias is ", node.Type(6).ToString());
    }
    bias = inputs.Add(node.Input(6));
  }
  const DataType f32 = DataType::Float(32);
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          "qnn.matmul_to_float", {}, inputs.values(),
          [&](const graph::Tensors& in) {
            const te::Tensor sum = integers.Compute(in);
            const ReadScaleAt scale = ScaleOf(
                a_scale, b_scale, product.n, [&](const te::Indices& full) {
                  return Times(a_scale.Read(in, full, f32),
                               b_scale.Read(in, full, f32));
                });
            return te::Compute(
                "T_rescale", product.shape(), [&](const te::Indices& i) {
                  const te::Indices full = product.FullIndex(i);
                  Expr value = Times(ToFloat32(sum(i)), scale(full));
                  if (bias >= 0) {
                    value = Plus(value, ToFloat32(in[bias]({full.back()})));
                  }
                  return te::Body(ir::MakeCast(to, value));
                });
          }));
  return std::vector<Imported>{y};
}

// A is quantised first, with the scale and zero point of its range.
Outputs ConvertDynamicQuantizeMatMul(Node& node) {
  // A, B, b_scale, b_zero_point, bias
  TF_ASSIGN_OR_RETURN(const std::vector<Imported> a,
                      ConvertDynamicQuantizeLinear(node));
  const auto optional = [&](int i) {
    return node.HasInput(i) ? node.RawInput(i) : Imported();
  };
  Node product(
      node.proto(), node.opset(), node.scope(),
      {a[0], optional(1), a[1], optional(2), a[2], optional(3), optional(4)},
      node.builder());
  Outputs outputs = ConvertMatMulIntegerToFloat(product);
  TF_RETURN_IF_ERROR(product.status());
  return outputs;
}

Outputs ConvertQGemm(Node& node) {
  // A, a_scale, a_zero_point, B, b_scale, b_zero_point, C, y_scale,
  // y_zero_point
  const bool transpose_a = node.Int("transA", 0) != 0;
  const bool transpose_b = node.Int("transB", 0) != 0;
  const double alpha = node.Float("alpha", 1);
  if (node.Rank(0) != 2 || node.Rank(3) != 2) {
    return node.Invalid("the inputs must be matrices");
  }
  CallInputs inputs;
  TF_ASSIGN_OR_RETURN(
      const IntegerProduct integers,
      IntegerProduct::Make(node, inputs, 0, 2, 3, 5, transpose_a, transpose_b));
  const Product& product = integers.product();
  if (node.HasInput(1) && node.Type(1).num_elements() != 1) {
    return node.Invalid("a_scale is ", node.Type(1).ToString());
  }
  TF_ASSIGN_OR_RETURN(const MatrixParameter a_scale,
                      MatrixParameter::Make(node, 1, product,
                                            MatrixParameter::kRows, inputs, 1));
  TF_ASSIGN_OR_RETURN(
      const MatrixParameter b_scale,
      MatrixParameter::Make(node, 4, product, MatrixParameter::kColumns, inputs,
                            1));
  int c = -1;
  if (node.HasInput(6)) {
    if (node.Dtype(6) != DataType::Int(32) ||
        BroadcastShapes(node.Shape(6), product.shape()) != product.shape()) {
      return node.Invalid("C is ", node.Type(6).ToString());
    }
    c = inputs.Add(node.Input(6));
  }
  const bool quantizes = node.HasInput(7);
  TF_ASSIGN_OR_RETURN(const Scalar y_scale, Scalar::Make(node, 7, inputs, 1));
  TF_ASSIGN_OR_RETURN(const Scalar y_zero, Scalar::Make(node, 8, inputs, 0));
  TF_ASSIGN_OR_RETURN(const QuantizedType type,
                      ByteResultType(node, 8, node.Dtype(0)));
  TF_RETURN_IF_ERROR(node.status());
  const DataType f32 = DataType::Float(32);
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          "qnn.gemm",
          {{"transA", ir::Attr(transpose_a)},
           {"transB", ir::Attr(transpose_b)},
           {"alpha", ir::Attr(alpha)}},
          inputs.values(), [&](const graph::Tensors& in) {
            const te::Tensor sum = integers.Compute(in);
            const ReadScaleAt scale = ScaleOf(
                a_scale, b_scale, product.n, [&](const te::Indices& full) {
                  Expr together = Times(a_scale.Read(in, full, f32),
                                        b_scale.Read(in, full, f32));
                  if (alpha != 1) together = Times(together, Float32(alpha));
                  return quantizes ? Over(together, y_scale.Read(in, f32))
                                   : together;
                });
            return te::Compute(
                "T_requantize", product.shape(), [&](const te::Indices& i) {
                  Expr value = sum(i);
                  if (c >= 0) value = Plus(value, BroadcastRead(in[c], i));
                  value = Times(ToFloat32(value), scale(i));
                  if (!quantizes) return te::Body(value);
                  return te::Body(
                      RoundAndSaturate(value, y_zero.Read(in, f32), type));
                });
          }));
  return std::vector<Imported>{y};
}

}  // namespace

std::vector<Converter> QuantizedProductConverters() {
  return {
      {"DynamicQuantizeMatMul", ConvertDynamicQuantizeMatMul, "com.microsoft"},
      {"MatMulInteger", ConvertMatMulInteger},
      {"MatMulIntegerToFloat", ConvertMatMulIntegerToFloat, "com.microsoft"},
      {"QGemm", ConvertQGemm, "com.microsoft"},
      {"QLinearMatMul", ConvertQLinearMatMul},
  };
}

}  // namespace tilefarm::onnx
