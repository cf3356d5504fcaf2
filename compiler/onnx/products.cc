// Matrix products.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/onnx/node.h"
#include "compiler/te/accumulate.h"
#include "compiler/te/operators.h"

namespace tilefarm::onnx {
namespace {

using ir::BinaryOp;
using ir::DataType;
using ir::Expr;
using ir::IntConst;

// The product of [batch..., M, K] and [batch..., K, N] as NumPy's matmul
// defines it: batches broadcast, and a vector is a matrix of one row or column
// that the result leaves out.
struct ProductShape {
  std::vector<int64_t> batch;
  bool left_is_vector = false;
  bool right_is_vector = false;
  int64_t inner = 0;            // K
  std::vector<int64_t> result;  // batch, then M and N as far as they exist
};

absl::StatusOr<ProductShape> ShapeOfProduct(Node& node) {
  const std::vector<int64_t> a = node.Shape(0), b = node.Shape(1);
  TF_RETURN_IF_ERROR(node.status());
  const auto misfit = [&] {
    return node.Invalid("no product of shapes [", absl::StrJoin(a, ", "),
                        "] and [", absl::StrJoin(b, ", "), "]");
  };
  if (a.empty() || b.empty()) return misfit();
  ProductShape shape;
  shape.left_is_vector = a.size() == 1;
  shape.right_is_vector = b.size() == 1;
  shape.inner = a.back();
  if (b[shape.right_is_vector ? 0 : b.size() - 2] != shape.inner) {
    return misfit();
  }
  const size_t a_batch = shape.left_is_vector ? 0 : a.size() - 2;
  const size_t b_batch = shape.right_is_vector ? 0 : b.size() - 2;
  const size_t batch = std::max(a_batch, b_batch);
  for (size_t d = 0; d < batch; ++d) {
    const int64_t left = d + a_batch < batch ? 1 : a[d + a_batch - batch];
    const int64_t right = d + b_batch < batch ? 1 : b[d + b_batch - batch];
    if (left != right && left != 1 && right != 1) return misfit();
    shape.batch.push_back(left == 1 ? right : left);
  }
  shape.result = shape.batch;
  if (!shape.left_is_vector) shape.result.push_back(a[a.size() - 2]);
  if (!shape.right_is_vector) shape.result.push_back(b.back());
  return shape;
}

// The first indices of a batch of matrices for the result's batch `i`.
te::Indices BatchIndices(const te::Tensor& matrices, int batch,
                         const te::Indices& i) {
  te::Indices at;
  const int own = matrices.ndim() - 2;
  for (int d = 0; d < own; ++d) {
    at.push_back(matrices.dim(d) == 1 ? IntConst(0) : i[d + batch - own]);
  }
  return at;
}

te::Tensor BroadcastMatmul(const te::Tensor& a, const te::Tensor& b,
                           const ProductShape& shape, DataType accumulate) {
  if (shape.inner == 0) return te::Zeros(shape.result, accumulate);
  const int batch = static_cast<int>(shape.batch.size());
  const te::ReduceAxis k("k", shape.inner);
  return te::Compute("T_matmul", shape.result, [&](const te::Indices& i) {
    int next = batch;
    te::Indices left, right;
    if (!shape.left_is_vector) {
      left = BatchIndices(a, batch, i);
      left.push_back(i[next++]);
    }
    left.push_back(k);
    if (!shape.right_is_vector) right = BatchIndices(b, batch, i);
    right.push_back(k);
    if (!shape.right_is_vector) right.push_back(i[next]);
    return te::Sum(
        ir::MakeBinary(BinaryOp::kMul, ir::MakeCast(accumulate, a(left)),
                       ir::MakeCast(accumulate, b(right))),
        {k});
  });
}

absl::Status CheckOneDtype(Node& node, int inputs) {
  for (int i = 0; i < inputs; ++i) {
    if (node.Dtype(i) != node.Dtype(0) || node.Dtype(i).is_bool()) {
      return node.Invalid("its inputs must have one dtype, of numbers");
    }
  }
  return node.status();
}

Outputs ConvertMatMul(Node& node) {
  TF_RETURN_IF_ERROR(CheckOneDtype(node, 2));
  TF_ASSIGN_OR_RETURN(const ProductShape shape, ShapeOfProduct(node));
  const DataType dtype = node.Dtype(0);
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          "matmul", {{"out_dtype", dtype.ToString()}},
          {node.Input(0), node.Input(1)}, [&](const graph::Tensors& x) {
            return te::Rounded(
                BroadcastMatmul(x[0], x[1], shape, te::AccumulatorOf(dtype)),
                dtype);
          }));
  return std::vector<Imported>{y};
}

// A scale as a constant of `type`. Unimplemented: an integer tensor would be
// scaled by a fraction.
absl::StatusOr<Expr> Scale(Node& node, std::string_view name, DataType type) {
  const double value = node.Float(name, 1.0);
  if (type.is_float()) return ir::FloatConst(value, type);
  if (std::nearbyint(value) != value || std::abs(value) > 1 << 24) {
    return node.Unsupported("attribute ", std::string(name), "=", value,
                            " for integers");
  }
  return ir::MakeCast(type, IntConst(static_cast<int64_t>(value)));
}

// alpha * product + beta * addend: the product is a call of its own, so that
// passes see an ordinary matmul, and the rest is elementwise.
Outputs ConvertGemm(Node& node) {
  const bool has_addend = node.HasInput(2);
  TF_RETURN_IF_ERROR(CheckOneDtype(node, has_addend ? 3 : 2));
  const DataType dtype = node.Dtype(0);
  const DataType type = te::AccumulatorOf(dtype);
  const bool transpose_a = node.Int("transA", 0) != 0;
  const bool transpose_b = node.Int("transB", 0) != 0;
  TF_ASSIGN_OR_RETURN(const Expr alpha, Scale(node, "alpha", type));
  TF_ASSIGN_OR_RETURN(const Expr beta, Scale(node, "beta", type));
  const bool scales = node.Float("alpha", 1.0) != 1.0;
  const bool scales_addend = node.Float("beta", 1.0) != 1.0;
  // As in BLAS, an addend times zero is not read.
  const bool adds = has_addend && node.Float("beta", 1.0) != 0.0;
  const std::vector<int64_t> a = node.Shape(0), b = node.Shape(1);
  TF_RETURN_IF_ERROR(node.status());
  if (a.size() != 2 || b.size() != 2 ||
      a[transpose_a ? 0 : 1] != b[transpose_b ? 1 : 0]) {
    return node.Invalid("no product of shapes [", absl::StrJoin(a, ", "),
                        "] and [", absl::StrJoin(b, ", "), "]");
  }
  const std::vector<int64_t> shape{a[transpose_a ? 1 : 0],
                                   b[transpose_b ? 0 : 1]};
  const int64_t inner = a[transpose_a ? 0 : 1];
  if (has_addend) {
    const std::vector<int64_t> c = node.Shape(2);
    bool fits = c.size() <= 2;
    for (size_t d = 0; fits && d < c.size(); ++d) {
      fits = c[d] == 1 || c[d] == shape[d + 2 - c.size()];
    }
    if (!fits) {
      return node.Invalid("an addend of shape [", absl::StrJoin(c, ", "),
                          "] for a product of shape [",
                          absl::StrJoin(shape, ", "), "]");
    }
  }
  TF_ASSIGN_OR_RETURN(
      ValueId y,
      node.builder().Compute(
          "matmul",
          {{"transpose_a", transpose_a},
           {"transpose_b", transpose_b},
           {"out_dtype", dtype.ToString()}},
          {node.Input(0), node.Input(1)}, [&](const graph::Tensors& x) {
            if (inner == 0) return te::Zeros(shape, dtype);
            const te::ReduceAxis k("k", inner);
            const te::Tensor product =
                te::Compute("T_matmul", shape, [&](const te::Indices& i) {
                  const Expr left =
                      transpose_a ? x[0]({k, i[0]}) : x[0]({i[0], k});
                  const Expr right =
                      transpose_b ? x[1]({i[1], k}) : x[1]({k, i[1]});
                  return te::Sum(
                      ir::MakeBinary(BinaryOp::kMul, ir::MakeCast(type, left),
                                     ir::MakeCast(type, right)),
                      {k});
                });
            return te::Rounded(product, dtype);
          }));
  if (!adds && !scales) return std::vector<Imported>{y};
  const auto scaled = [&](Expr value, bool is_scaled, const Expr& scale) {
    const Expr wide = ir::MakeCast(type, value);
    return is_scaled ? ir::MakeBinary(BinaryOp::kMul, wide, scale) : wide;
  };
  ir::AttrMap attrs;
  if (scales) attrs["alpha"] = node.Float("alpha", 1.0);
  if (scales_addend && adds) attrs["beta"] = node.Float("beta", 1.0);
  if (!adds) {
    TF_ASSIGN_OR_RETURN(
        y, node.builder().Compute(
               "multiply", std::move(attrs), {y}, [&](const graph::Tensors& x) {
                 return te::Map(
                     x[0],
                     [&](Expr e) {
                       return ir::MakeCast(dtype, scaled(e, true, alpha));
                     },
                     "T_multiply");
               }));
    return std::vector<Imported>{y};
  }
  TF_ASSIGN_OR_RETURN(
      y, node.builder().Compute(
             "add", std::move(attrs), {y, node.Input(2)},
             [&](const graph::Tensors& x) {
               return te::Zip(
                   x[0], x[1],
                   [&](Expr product, Expr addend) {
                     return ir::MakeCast(
                         dtype,
                         ir::MakeBinary(BinaryOp::kAdd,
                                        scaled(product, scales, alpha),
                                        scaled(addend, scales_addend, beta)));
                   },
                   "T_add");
             }));
  return std::vector<Imported>{y};
}

}  // namespace

std::vector<Converter> ProductConverters() {
  return {
      {"Gemm", ConvertGemm},
      {"MatMul", ConvertMatMul},
  };
}

}  // namespace tilefarm::onnx
