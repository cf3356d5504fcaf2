// Fused operators of onnxruntime: activations with a bias, normalisations, and
// products with other layouts or weights of few bits. They compute in float32
// and round the result once, except for float64.
#include <cmath>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/onnx/expressions.h"
#include "compiler/onnx/matrix_product.h"
#include "compiler/onnx/node.h"
#include "compiler/onnx/quantize_expr.h"
#include "compiler/te/operators.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;
using ir::Expr;
using ir::IntConst;
using ir::Intrinsic;
using te::ReduceAxis;

Expr NumberLike(const Expr& like, double value) {
  return ir::FloatConst(value, like->dtype);
}

// --- Activations ---------------------------------------------------------

Expr Gelu(const Expr& x) {
  const Expr erf = ir::MakeCall(
      Intrinsic::kErf, {Times(x, NumberLike(x, 0.70710678118654752440))});
  return Times(Times(x, NumberLike(x, 0.5)), Plus(erf, NumberLike(x, 1)));
}

// The approximation by tanh with the constants of onnxruntime.
Expr FastGelu(const Expr& x) {
  const Expr inner =
      Times(x, Plus(Times(Times(x, x), NumberLike(x, 0.035677408136300125)),
                    NumberLike(x, 0.7978845608028654)));
  const Expr tanh = ir::MakeCall(Intrinsic::kTanh, {inner});
  return Times(Times(x, NumberLike(x, 0.5)), Plus(tanh, NumberLike(x, 1)));
}

// f(x + bias); the bias is a vector along the last dimension.
Outputs Activation(Node& node, const std::string& op, Expr (*f)(const Expr&),
                   bool bias_required) {
  const TensorType x = node.Type(0);
  TF_RETURN_IF_ERROR(node.status());
  if (!x.dtype.is_float()) return node.Invalid("input 0 is ", x.ToString());
  std::vector<ValueId> inputs{node.Input(0)};
  const bool has_bias = bias_required || node.HasInput(1);
  if (has_bias) {
    const TensorType& bias = node.Type(1);
    TF_RETURN_IF_ERROR(node.status());
    if (bias.dtype != x.dtype || bias.ndim() != 1 || x.ndim() < 1 ||
        bias.shape[0] != x.shape.back()) {
      return node.Invalid("the bias is ", bias.ToString());
    }
    inputs.push_back(node.Input(1));
  }
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(op, {}, inputs, [&](const graph::Tensors& in) {
        return te::Compute("T_gelu", x.shape, [&](const te::Indices& i) {
          Expr value = in[0](i);
          const DataType type = SumType(value->dtype);
          value = ir::MakeCast(type, value);
          if (has_bias) {
            value = Plus(value, ir::MakeCast(type, in[1]({i.back()})));
          }
          return te::Body(ir::MakeCast(x.dtype, f(value)));
        });
      }));
  return std::vector<Imported>{y};
}

Outputs ConvertContribGelu(Node& node) {
  return Activation(node, "nn.gelu", Gelu, false);
}
Outputs ConvertFastGelu(Node& node) {
  return Activation(node, "nn.gelu_tanh", FastGelu, false);
}
Outputs ConvertBiasGelu(Node& node) {
  return Activation(node, "nn.bias_gelu", Gelu, true);
}

// --- Normalisations ------------------------------------------------------

struct Normalized {
  te::Tensor y, mean, inverse;
};

// Over the dimensions from `axis` on. `simplified`: without the mean (root mean
// square). gamma and beta (may be null) have those dimensions.
Normalized Normalize(const te::Tensor& x, const te::Tensor& gamma,
                     const te::Tensor* beta, int axis, double epsilon,
                     bool simplified, DataType to) {
  std::vector<int> axes;
  for (int d = axis; d < x.ndim(); ++d) axes.push_back(d);
  const te::Tensor mean = te::Mean(x, axes, true);
  const te::Tensor centred =
      simplified ? x : te::Subtract(x, mean, "T_centred");
  const te::Tensor variance = te::Mean(
      te::Map(
          centred, [](const Expr& e) { return Times(e, e); }, "T_square"),
      axes, true);
  const te::Tensor inverse = te::Map(
      variance,
      [&](const Expr& v) {
        return ir::MakeCall(Intrinsic::kRsqrt,
                            {Plus(v, NumberLike(v, epsilon))});
      },
      "T_rsqrt");
  const te::Tensor y =
      te::Compute("T_layer_norm", x.shape(), [&](const te::Indices& i) {
        const DataType type = x.dtype();
        Expr value = Times(centred(i), BroadcastRead(inverse, i));
        value = Times(value, ir::MakeCast(type, BroadcastRead(gamma, i)));
        if (beta != nullptr) {
          value = Plus(value, ir::MakeCast(type, BroadcastRead(*beta, i)));
        }
        return te::Body(ir::MakeCast(to, value));
      });
  return {y, mean, inverse};
}

// Whether `type` broadcasts to `shape` and is of type `dtype`.
bool Fits(const TensorType& type, DataType dtype,
          const std::vector<int64_t>& shape) {
  return type.dtype == dtype && BroadcastShapes(type.shape, shape) == shape &&
         type.ndim() <= static_cast<int>(shape.size());
}

Outputs LayerNormalization(Node& node, bool simplified) {
  const TensorType x = node.Type(0);
  const TensorType gamma = node.Type(1);
  const bool has_beta = node.HasInput(2);
  const double epsilon = node.Float("epsilon", 1e-5f);
  const int64_t axis = node.NormalizeAxis(node.Int("axis", -1), x.ndim());
  TF_RETURN_IF_ERROR(node.status());
  const std::vector<int64_t> inner(x.shape.begin() + axis, x.shape.end());
  if (!x.dtype.is_float() || !Fits(gamma, gamma.dtype, inner) ||
      !gamma.dtype.is_float() ||
      (has_beta && !Fits(node.Type(2), gamma.dtype, inner))) {
    return node.Invalid("scale or bias does not fit the input, ", x.ToString());
  }
  std::vector<ValueId> inputs{node.Input(0), node.Input(1)};
  if (has_beta) inputs.push_back(node.Input(2));
  const DataType type = SumType(x.dtype);
  TF_ASSIGN_OR_RETURN(
      std::vector<ValueId> results,
      node.builder().ComputeAll(
          simplified ? "nn.rms_norm" : "nn.layer_norm",
          {{"axis", ir::Attr(axis)}, {"epsilon", ir::Attr(epsilon)}}, inputs,
          [&](const graph::Tensors& in) {
            const Normalized n = Normalize(
                te::CastTo(in[0], type), in[1], has_beta ? &in[2] : nullptr,
                static_cast<int>(axis), epsilon, simplified, gamma.dtype);
            graph::Tensors all{n.y};
            if (node.WantsOutput(1)) {
              all.push_back(simplified ? n.inverse : n.mean);
            }
            if (node.WantsOutput(2)) all.push_back(n.inverse);
            return all;
          }));
  std::vector<Imported> outputs{results[0]};
  size_t next = 1;
  for (int i = 1; i < 3; ++i) {
    outputs.push_back(node.WantsOutput(i) ? Imported(results[next++])
                                          : Imported());
  }
  return outputs;
}

Outputs ConvertLayerNormalization(Node& node) {
  return LayerNormalization(node, false);
}
Outputs ConvertSimplifiedLayerNormalization(Node& node) {
  if (node.WantsOutput(2)) return node.Invalid("has no output 2");
  return LayerNormalization(node, true);
}

Outputs SkipLayerNormalization(Node& node, bool simplified) {
  // input, skip, gamma, then beta (unless simplified), bias.
  const TensorType x = node.Type(0);
  const TensorType skip = node.Type(1);
  const double epsilon = node.Float("epsilon", 1e-12f);
  TF_RETURN_IF_ERROR(node.status());
  if (!x.dtype.is_float() || x.ndim() < 1 || !Fits(skip, x.dtype, x.shape)) {
    return node.Invalid("inputs of ", x.ToString(), " and ", skip.ToString());
  }
  const std::vector<int64_t> vector{x.shape.back()};
  const int beta = simplified ? -1 : 3;
  const int bias = simplified ? 3 : 4;
  CallInputs inputs;
  const auto add = [&](int i) -> absl::StatusOr<int> {
    if (i < 0 || (i > 2 && !node.HasInput(i))) return -1;
    if (i > 1 && (node.Type(i).dtype != x.dtype || node.Shape(i) != vector)) {
      return node.Invalid("input ", i, " is ", node.Type(i).ToString());
    }
    return inputs.Add(node.Input(i));
  };
  TF_ASSIGN_OR_RETURN(const int x_at, add(0));
  TF_ASSIGN_OR_RETURN(const int skip_at, add(1));
  TF_ASSIGN_OR_RETURN(const int gamma_at, add(2));
  TF_ASSIGN_OR_RETURN(const int beta_at, add(beta));
  TF_ASSIGN_OR_RETURN(const int bias_at, add(bias));
  TF_RETURN_IF_ERROR(node.status());
  if (node.WantsOutput(1) || node.WantsOutput(2)) {
    return node.Unsupported("outputs 1 and 2 (of training)");
  }
  const DataType type = SumType(x.dtype);
  TF_ASSIGN_OR_RETURN(
      std::vector<ValueId> results,
      node.builder().ComputeAll(
          simplified ? "nn.skip_rms_norm" : "nn.skip_layer_norm",
          {{"epsilon", ir::Attr(epsilon)}}, inputs.values(),
          [&](const graph::Tensors& in) {
            const te::Tensor sum =
                te::Compute("T_add", x.shape, [&](const te::Indices& i) {
                  Expr value =
                      Plus(ir::MakeCast(type, in[x_at](i)),
                           ir::MakeCast(type, BroadcastRead(in[skip_at], i)));
                  if (bias_at >= 0) {
                    value = Plus(value,
                                 ir::MakeCast(type, in[bias_at]({i.back()})));
                  }
                  return te::Body(value);
                });
            const Normalized n = Normalize(
                sum, in[gamma_at], beta_at >= 0 ? &in[beta_at] : nullptr,
                x.ndim() - 1, epsilon, simplified, x.dtype);
            graph::Tensors all{n.y};
            if (node.WantsOutput(3)) {
              all.push_back(x.dtype == type ? sum : te::CastTo(sum, x.dtype));
            }
            return all;
          }));
  std::vector<Imported> outputs{results[0], Imported(), Imported()};
  if (node.WantsOutput(3)) outputs.push_back(results[1]);
  return outputs;
}

Outputs ConvertSkipLayerNormalization(Node& node) {
  return SkipLayerNormalization(node, false);
}
Outputs ConvertSkipSimplifiedLayerNormalization(Node& node) {
  return SkipLayerNormalization(node, true);
}

// --- Products ------------------------------------------------------------

Outputs ConvertFusedMatMul(Node& node) {
  const TensorType a = node.Type(0);
  const TensorType b = node.Type(1);
  const double alpha = node.Float("alpha", 1);
  // ONNX ignores the transposition of vectors.
  const bool transpose_a = node.Int("transA", 0) != 0 && a.ndim() > 1;
  const bool transpose_b = node.Int("transB", 0) != 0 && b.ndim() > 1;
  if (node.Int("transBatchA", 0) != 0 || node.Int("transBatchB", 0) != 0) {
    return node.Unsupported("attributes transBatchA and transBatchB");
  }
  TF_RETURN_IF_ERROR(node.status());
  if (a.dtype != b.dtype || !a.dtype.is_float()) {
    return node.Invalid("inputs of ", a.ToString(), " and ", b.ToString());
  }
  TF_ASSIGN_OR_RETURN(
      const Product product,
      PlanProduct(node, a.shape, b.shape, transpose_a, transpose_b));
  const DataType type = SumType(a.dtype);
  const ReduceAxis k("k", product.k);
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          "matmul",
          {{"transpose_a", ir::Attr(transpose_a)},
           {"transpose_b", ir::Attr(transpose_b)},
           {"alpha", ir::Attr(alpha)}},
          {node.Input(0), node.Input(1)}, [&](const graph::Tensors& in) {
            const te::Tensor sum = te::Compute(
                "T_matmul", product.shape(),
                [&](const te::Indices& i) -> te::Body {
                  if (product.k == 0) return ir::FloatConst(0, type);
                  const te::Indices full = product.FullIndex(i);
                  return te::Sum(
                      Times(ir::MakeCast(type, product.ReadA(in[0], full, k,
                                                             transpose_a)),
                            ir::MakeCast(type, product.ReadB(in[1], full, k,
                                                             transpose_b))),
                      {k});
                });
            if (alpha == 1 && type == a.dtype) return sum;
            return te::Map(
                sum,
                [&](const Expr& e) {
                  return ir::MakeCast(
                      a.dtype, alpha == 1 ? e : Times(e, NumberLike(e, alpha)));
                },
                "T_scale");
          }));
  return std::vector<Imported>{y};
}

// A times the transposed matrix of weights, each `bits` wide. The weights of a
// row are stored in blocks along K, each with a scale and a zero point.
Outputs ConvertMatMulNBits(Node& node) {
  // A, B, scales, zero_points, g_idx, bias
  const TensorType a = node.Type(0);
  const TensorType b = node.Type(1);
  const TensorType scales = node.Type(2);
  const int64_t k = node.Int("K", 0);
  const int64_t n = node.Int("N", 0);
  const int64_t bits = node.Int("bits", 4);
  const int64_t block = node.Int("block_size", 0);
  TF_RETURN_IF_ERROR(node.status());
  if (bits != 2 && bits != 4 && bits != 8) {
    return node.Unsupported("attribute bits=", bits);
  }
  if (node.HasInput(4)) return node.Unsupported("input 4 (g_idx)");
  constexpr int64_t kLargest = int64_t{1} << 40;
  if (k < 1 || n < 1 || k > kLargest || n > kLargest || block < 16 ||
      block > kLargest || (block & (block - 1)) != 0) {
    return node.Invalid("K=", k, ", N=", n, ", block_size=", block);
  }
  const int64_t per_byte = 8 / bits;
  const int64_t blocks = (k + block - 1) / block;
  const int64_t zero_bytes = (blocks + per_byte - 1) / per_byte;
  if (a.ndim() < 1 || a.shape.back() != k || !a.dtype.is_float()) {
    return node.Invalid("A is ", a.ToString(), ", K=", k);
  }
  if (b.dtype != DataType::UInt(8) ||
      b.shape != std::vector<int64_t>{n, blocks, block / per_byte}) {
    return node.Invalid("B is ", b.ToString());
  }
  // One scale or zero point for each row and block, in one dimension or two.
  const auto per_row = [&](const TensorType& type, int64_t count) {
    return type.shape == std::vector<int64_t>{n, count} ||
           (type.ndim() == 1 && type.shape[0] / count == n &&
            type.shape[0] % count == 0);
  };
  if (scales.dtype != a.dtype || !per_row(scales, blocks)) {
    return node.Invalid("the scales are ", scales.ToString());
  }
  std::vector<ValueId> inputs{node.Input(0), node.Input(1), node.Input(2)};
  const bool has_zero = node.HasInput(3);
  bool packed_zero = false;
  if (has_zero) {
    const TensorType& zero = node.Type(3);
    packed_zero = zero.dtype == DataType::UInt(8);
    if (!per_row(zero, packed_zero ? zero_bytes : blocks) ||
        (!packed_zero && zero.dtype != a.dtype)) {
      return node.Invalid("the zero points are ", zero.ToString());
    }
    inputs.push_back(node.Input(3));
  }
  const bool has_bias = node.HasInput(5);
  if (has_bias) {
    if (node.Dtype(5) != a.dtype || node.Shape(5) != std::vector<int64_t>{n}) {
      return node.Invalid("the bias is ", node.Type(5).ToString());
    }
    inputs.push_back(node.Input(5));
  }
  TF_RETURN_IF_ERROR(node.status());
  const DataType type = SumType(a.dtype);
  const DataType i32 = DataType::Int(32);
  std::vector<int64_t> shape = a.shape;
  shape.back() = n;
  // Element `at` of a packed row of bytes.
  const auto unpack = [&](const Expr& byte, const Expr& at) {
    const Expr value = ir::MakeCast(i32, byte);
    if (bits == 8) return value;
    const Expr shift =
        ir::MakeCast(i32, ir::FloorMod(at, IntConst(per_byte)) * bits);
    return ir::MakeBinary(
        ir::BinaryOp::kBitAnd,
        ir::MakeBinary(ir::BinaryOp::kShiftRight, value, shift),
        IntConst((int64_t{1} << bits) - 1, i32));
  };
  const auto read_row = [](const te::Tensor& tensor, const Expr& row,
                           const Expr& at, int64_t count) {
    return tensor.ndim() == 2 ? tensor({row, at}) : tensor({row * count + at});
  };
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          "nn.matmul_nbits",
          {{"bits", ir::Attr(bits)}, {"block_size", ir::Attr(block)}}, inputs,
          [&](const graph::Tensors& in) {
            const te::Tensor weight =
                te::Compute("T_dequantize", {n, k}, [&](const te::Indices& i) {
                  const Expr at = ir::FloorDiv(i[1], IntConst(block));
                  const Expr inside = ir::FloorMod(i[1], IntConst(block));
                  Expr value =
                      unpack(in[1]({i[0], at,
                                    ir::FloorDiv(inside, IntConst(per_byte))}),
                             inside);
                  const Expr scale =
                      ir::MakeCast(type, read_row(in[2], i[0], at, blocks));
                  if (has_zero && !packed_zero) {
                    const Expr zero =
                        ir::MakeCast(type, read_row(in[3], i[0], at, blocks));
                    return te::Body(
                        Times(Minus(ir::MakeCast(type, value), zero), scale));
                  }
                  Expr zero = IntConst(int64_t{1} << (bits - 1), i32);
                  if (has_zero) {
                    zero = unpack(read_row(in[3], i[0],
                                           ir::FloorDiv(at, IntConst(per_byte)),
                                           zero_bytes),
                                  at);
                  }
                  return te::Body(
                      Times(ir::MakeCast(type, value - zero), scale));
                });
            const ReduceAxis axis("k", k);
            const te::Tensor sum =
                te::Compute("T_matmul", shape, [&](const te::Indices& i) {
                  te::Indices at = i;
                  at.back() = axis;
                  return te::Sum(Times(ir::MakeCast(type, in[0](at)),
                                       weight({i.back(), axis})),
                                 {axis});
                });
            if (!has_bias && type == a.dtype) return sum;
            return te::Compute("T_add", shape, [&](const te::Indices& i) {
              Expr value = sum(i);
              if (has_bias) {
                value = Plus(value, ir::MakeCast(type, in.back()({i.back()})));
              }
              return te::Body(ir::MakeCast(a.dtype, value));
            });
          }));
  return std::vector<Imported>{y};
}

}  // namespace

std::vector<Converter> FusedContribConverters() {
  constexpr std::string_view kDomain = "com.microsoft";
  return {
      {"BiasGelu", ConvertBiasGelu, kDomain},
      {"FastGelu", ConvertFastGelu, kDomain},
      {"FusedMatMul", ConvertFusedMatMul, kDomain},
      {"Gelu", ConvertContribGelu, kDomain},
      {"LayerNormalization", ConvertLayerNormalization, kDomain},
      {"MatMulNBits", ConvertMatMulNBits, kDomain},
      {"SimplifiedLayerNormalization", ConvertSimplifiedLayerNormalization,
       kDomain},
      // onnxruntime defines it in the standard domain.
      {"SimplifiedLayerNormalization", ConvertSimplifiedLayerNormalization},
      {"SkipLayerNormalization", ConvertSkipLayerNormalization, kDomain},
      {"SkipSimplifiedLayerNormalization",
       ConvertSkipSimplifiedLayerNormalization, kDomain},
  };
}

}  // namespace tilefarm::onnx
