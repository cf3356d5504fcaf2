#include "compiler/te/operators.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace tilefarm::te {

using ir::DataType;
using ir::Expr;
using ir::IntConst;

namespace {

// An element of `a` seen through the broadcast shape of `rank` dimensions.
Expr At(const Tensor& a, const Indices& i) {
  Indices own;
  const size_t skip = i.size() - a.ndim();
  for (int d = 0; d < a.ndim(); ++d) {
    own.push_back(a.dim(d) == 1 ? IntConst(0) : i[skip + d]);
  }
  return a(std::move(own));
}

std::vector<int64_t> BroadcastShape(const Tensor& a, const Tensor& b) {
  const Tensor& longer = a.ndim() >= b.ndim() ? a : b;
  const Tensor& shorter = a.ndim() >= b.ndim() ? b : a;
  std::vector<int64_t> shape = longer.shape();
  const int skip = longer.ndim() - shorter.ndim();
  for (int d = 0; d < shorter.ndim(); ++d) {
    int64_t& extent = shape[skip + d];
    TF_CHECK(extent == shorter.dim(d) || extent == 1 || shorter.dim(d) == 1);
    extent = std::max(extent, shorter.dim(d));
  }
  return shape;
}

Expr Binary(ir::BinaryOp op, Expr a, Expr b) {
  return ir::MakeBinary(op, std::move(a), std::move(b));
}

int64_t OutExtent(int64_t in, int64_t window, int64_t stride, int64_t padding,
                  int64_t dilation) {
  const int64_t reach = (window - 1) * dilation + 1;
  TF_CHECK(in + 2 * padding >= reach);
  return (in + 2 * padding - reach) / stride + 1;
}

Tensor PadSpatial(const Tensor& data, int row_dim,
                  std::array<int64_t, 2> padding, Expr value) {
  if (padding[0] == 0 && padding[1] == 0) return data;
  std::vector<int64_t> around(data.ndim(), 0);
  around[row_dim] = padding[0];
  around[row_dim + 1] = padding[1];
  return Pad(data, around, around, std::move(value), "pad_temp");
}

}  // namespace

Tensor Map(const Tensor& a, const std::function<Expr(Expr)>& f,
           std::string name) {
  return Compute(std::move(name), a.shape(),
                 [&](const Indices& i) { return Body(f(a(i))); });
}

Tensor Zip(const Tensor& a, const Tensor& b,
           const std::function<Expr(Expr, Expr)>& f, std::string name) {
  return Compute(std::move(name), BroadcastShape(a, b),
                 [&](const Indices& i) { return Body(f(At(a, i), At(b, i))); });
}

Tensor Add(const Tensor& a, const Tensor& b, std::string name) {
  return Zip(
      a, b, [](Expr x, Expr y) { return Binary(ir::BinaryOp::kAdd, x, y); },
      std::move(name));
}
Tensor Subtract(const Tensor& a, const Tensor& b, std::string name) {
  return Zip(
      a, b, [](Expr x, Expr y) { return Binary(ir::BinaryOp::kSub, x, y); },
      std::move(name));
}
Tensor Multiply(const Tensor& a, const Tensor& b, std::string name) {
  return Zip(
      a, b, [](Expr x, Expr y) { return Binary(ir::BinaryOp::kMul, x, y); },
      std::move(name));
}
Tensor Divide(const Tensor& a, const Tensor& b, std::string name) {
  return Zip(
      a, b, [](Expr x, Expr y) { return Binary(ir::BinaryOp::kDiv, x, y); },
      std::move(name));
}

Tensor Relu(const Tensor& a, std::string name) {
  return Map(
      a,
      [](Expr x) {
        return Binary(ir::BinaryOp::kMax, x, ir::ConstOf(x->dtype, 0));
      },
      std::move(name));
}
Tensor Exp(const Tensor& a, std::string name) {
  return Map(
      a, [](Expr x) { return ir::MakeCall(ir::Intrinsic::kExp, {x}); },
      std::move(name));
}
Tensor Tanh(const Tensor& a, std::string name) {
  return Map(
      a, [](Expr x) { return ir::MakeCall(ir::Intrinsic::kTanh, {x}); },
      std::move(name));
}
Tensor Sigmoid(const Tensor& a, std::string name) {
  return Map(
      a, [](Expr x) { return ir::MakeCall(ir::Intrinsic::kSigmoid, {x}); },
      std::move(name));
}
Tensor Gelu(const Tensor& a, std::string name) {
  return Map(
      a,
      [](Expr x) {
        const DataType t = x->dtype;
        const Expr erf =
            ir::MakeCall(ir::Intrinsic::kErf,
                         {Binary(ir::BinaryOp::kMul, x,
                                 ir::FloatConst(0.70710678118654752440, t))});
        return Binary(ir::BinaryOp::kMul,
                      Binary(ir::BinaryOp::kMul, x, ir::FloatConst(0.5, t)),
                      Binary(ir::BinaryOp::kAdd, erf, ir::ConstOf(t, 1)));
      },
      std::move(name));
}
Tensor CastTo(const Tensor& a, DataType dtype, std::string name) {
  return Map(
      a, [&](Expr x) { return ir::MakeCast(dtype, x); }, std::move(name));
}

Tensor Activate(const Tensor& a, Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return a;
    case Activation::kRelu:
      return Relu(a);
    case Activation::kGelu:
      return Gelu(a);
    case Activation::kTanh:
      return Tanh(a);
    case Activation::kSigmoid:
      return Sigmoid(a);
  }
  return a;
}

namespace {

// [batch..., M, K] x [batch..., K, N]
Tensor MatmulLike(const Tensor& a, const Tensor& b, MatmulOptions options,
                  std::string name) {
  const int batch = a.ndim() - 2;
  TF_CHECK(b.ndim() == a.ndim());
  const int64_t m = a.dim(batch + (options.transpose_a ? 1 : 0));
  const int64_t inner = a.dim(batch + (options.transpose_a ? 0 : 1));
  const int64_t n = b.dim(batch + (options.transpose_b ? 0 : 1));
  TF_CHECK(b.dim(batch + (options.transpose_b ? 1 : 0)) == inner);
  std::vector<int64_t> shape(a.shape().begin(), a.shape().begin() + batch);
  shape.push_back(m);
  shape.push_back(n);
  const DataType type =
      a.dtype().is_float()
          ? (a.dtype().bits > 32 ? a.dtype() : options.accumulate)
          : DataType::Int(32);
  const ReduceAxis k("k", inner);
  return Compute(std::move(name), shape, [&](const Indices& i) {
    Indices left(i.begin(), i.begin() + batch);
    Indices right = left;
    const Expr row = i[batch];
    const Expr column = i[batch + 1];
    const auto push = [](Indices& to, Expr x, Expr y, bool swap) {
      to.push_back(swap ? y : x);
      to.push_back(swap ? x : y);
    };
    push(left, row, k, options.transpose_a);
    push(right, k, column, options.transpose_b);
    return Sum(Binary(ir::BinaryOp::kMul, ir::MakeCast(type, a(left)),
                      ir::MakeCast(type, b(right))),
               {k});
  });
}

}  // namespace

Tensor Matmul(const Tensor& a, const Tensor& b, MatmulOptions options,
              std::string name) {
  TF_CHECK(a.ndim() == 2);
  return MatmulLike(a, b, options, std::move(name));
}

Tensor BatchMatmul(const Tensor& a, const Tensor& b, MatmulOptions options,
                   std::string name) {
  TF_CHECK(a.ndim() == 3);
  return MatmulLike(a, b, options, std::move(name));
}

Tensor Dense(const Tensor& x, const Tensor& weight, const Tensor* bias,
             Activation activation) {
  MatmulOptions options;
  options.transpose_b = true;
  Tensor out = Matmul(x, weight, options, "T_dense");
  if (bias != nullptr) out = Add(out, *bias);
  return Activate(out, activation);
}

Tensor Conv2dNchw(const Tensor& data, const Tensor& weight,
                  ConvOptions options) {
  TF_CHECK(data.ndim() == 4 && weight.ndim() == 4);
  TF_CHECK(data.dim(1) == weight.dim(1) * options.groups);
  TF_CHECK(weight.dim(0) % options.groups == 0);
  const Tensor in =
      PadSpatial(data, 2, options.padding, ir::ConstOf(data.dtype(), 0));
  const auto& [stride, padding, dilation, groups] = options;
  const int64_t p =
      OutExtent(data.dim(2), weight.dim(2), stride[0], padding[0], dilation[0]);
  const int64_t q =
      OutExtent(data.dim(3), weight.dim(3), stride[1], padding[1], dilation[1]);
  const int64_t out_group = weight.dim(0) / groups;
  const ReduceAxis rc("rc", weight.dim(1)), ry("ry", weight.dim(2)),
      rx("rx", weight.dim(3));
  return Compute(
      "conv2d_nchw", {data.dim(0), weight.dim(0), p, q}, [&](const Indices& i) {
        Expr channel = rc;
        if (options.groups > 1) {
          channel =
              ir::FloorDiv(i[1], IntConst(out_group)) * weight.dim(1) + channel;
        }
        const Expr row =
            i[2] * options.stride[0] + Expr(ry) * options.dilation[0];
        const Expr column =
            i[3] * options.stride[1] + Expr(rx) * options.dilation[1];
        return Sum(Binary(ir::BinaryOp::kMul, in({i[0], channel, row, column}),
                          weight({i[1], rc, ry, rx})),
                   {rc, ry, rx});
      });
}

Tensor Conv2dNhwc(const Tensor& data, const Tensor& weight,
                  ConvOptions options) {
  TF_CHECK(data.ndim() == 4 && weight.ndim() == 4);
  TF_CHECK(data.dim(3) == weight.dim(2) * options.groups);
  TF_CHECK(weight.dim(3) % options.groups == 0);
  const Tensor in =
      PadSpatial(data, 1, options.padding, ir::ConstOf(data.dtype(), 0));
  const auto& [stride, padding, dilation, groups] = options;
  const int64_t p =
      OutExtent(data.dim(1), weight.dim(0), stride[0], padding[0], dilation[0]);
  const int64_t q =
      OutExtent(data.dim(2), weight.dim(1), stride[1], padding[1], dilation[1]);
  const int64_t out_group = weight.dim(3) / groups;
  const ReduceAxis rh("rh", weight.dim(0)), rw("rw", weight.dim(1)),
      rc("rc", weight.dim(2));
  return Compute(
      "conv2d_nhwc", {data.dim(0), p, q, weight.dim(3)}, [&](const Indices& i) {
        Expr channel = rc;
        if (options.groups > 1) {
          channel =
              ir::FloorDiv(i[3], IntConst(out_group)) * weight.dim(2) + channel;
        }
        const Expr row =
            i[1] * options.stride[0] + Expr(rh) * options.dilation[0];
        const Expr column =
            i[2] * options.stride[1] + Expr(rw) * options.dilation[1];
        return Sum(Binary(ir::BinaryOp::kMul, in({i[0], row, column, channel}),
                          weight({rh, rw, rc, i[3]})),
                   {rh, rw, rc});
      });
}

Tensor DepthwiseConv2dNhwc(const Tensor& data, const Tensor& weight,
                           ConvOptions options) {
  TF_CHECK(data.ndim() == 4 && weight.ndim() == 4);
  TF_CHECK(data.dim(3) == weight.dim(2));
  const Tensor in =
      PadSpatial(data, 1, options.padding, ir::ConstOf(data.dtype(), 0));
  const int64_t multiplier = weight.dim(3);
  const int64_t p = OutExtent(data.dim(1), weight.dim(0), options.stride[0],
                              options.padding[0], options.dilation[0]);
  const int64_t q = OutExtent(data.dim(2), weight.dim(1), options.stride[1],
                              options.padding[1], options.dilation[1]);
  const ReduceAxis rh("rh", weight.dim(0)), rw("rw", weight.dim(1));
  return Compute(
      "depthwise_conv2d_nhwc", {data.dim(0), p, q, data.dim(3) * multiplier},
      [&](const Indices& i) {
        const Expr channel = ir::FloorDiv(i[3], IntConst(multiplier));
        const Expr copy = ir::FloorMod(i[3], IntConst(multiplier));
        const Expr row =
            i[1] * options.stride[0] + Expr(rh) * options.dilation[0];
        const Expr column =
            i[2] * options.stride[1] + Expr(rw) * options.dilation[1];
        return Sum(Binary(ir::BinaryOp::kMul, in({i[0], row, column, channel}),
                          weight({rh, rw, channel, copy})),
                   {rh, rw});
      });
}

namespace {

Tensor Pool2d(const Tensor& data, Pooling kind, const PoolOptions& options,
              int row_dim) {
  TF_CHECK(data.ndim() == 4);
  const DataType type = data.dtype();
  const bool is_max = kind == Pooling::kMax;
  Expr outside = ir::ConstOf(type, 0);
  if (is_max) {
    // Lower than every value that it is compared with.
    outside = type.is_float()
                  ? ir::FloatConst(
                        type.bits == 16 && type.code == ir::TypeCode::kFloat
                            ? -65504
                            : -0x1.fep127,
                        type)
                  : ir::IntConst(type.is_uint() ? 0 : -128, type);
  }
  const Tensor in = PadSpatial(data, row_dim, options.padding, outside);
  std::vector<int64_t> shape = data.shape();
  for (int d = 0; d < 2; ++d) {
    shape[row_dim + d] = OutExtent(data.dim(row_dim + d), options.window[d],
                                   options.stride[d], options.padding[d], 1);
  }
  const ReduceAxis rv0("rv0", options.window[0]), rv1("rv1", options.window[1]);
  const Tensor reduced =
      Compute(is_max ? "pool_max" : "pool_sum", shape, [&](const Indices& i) {
        Indices at = i;
        at[row_dim] = i[row_dim] * options.stride[0] + rv0;
        at[row_dim + 1] = i[row_dim + 1] * options.stride[1] + rv1;
        return is_max ? MaxOver(in(at), {rv0, rv1}) : Sum(in(at), {rv0, rv1});
      });
  if (is_max) return reduced;
  return Map(
      reduced,
      [&](Expr x) {
        return Binary(
            ir::BinaryOp::kDiv, x,
            ir::ConstOf(x->dtype, options.window[0] * options.window[1]));
      },
      "pool_avg");
}

}  // namespace

Tensor Pool2dNchw(const Tensor& data, Pooling kind, PoolOptions options) {
  return Pool2d(data, kind, options, 2);
}
Tensor Pool2dNhwc(const Tensor& data, Pooling kind, PoolOptions options) {
  return Pool2d(data, kind, options, 1);
}

Tensor GlobalAveragePoolNchw(const Tensor& data) {
  return Mean(data, {2, 3}, /*keep_dims=*/true);
}

Tensor ReduceOver(const Tensor& a, Reducer reducer, std::vector<int> axes,
                  bool keep_dims, std::string name) {
  std::vector<ReduceAxis> reduced;
  std::vector<int64_t> shape;
  std::vector<int> place(a.ndim(), -1);  // result dimension, or reduced
  for (int d = 0, out = 0; d < a.ndim(); ++d) {
    if (std::find(axes.begin(), axes.end(), d) != axes.end()) {
      reduced.emplace_back(absl::StrCat("k", reduced.size()), a.dim(d));
      if (!keep_dims) continue;
      shape.push_back(1);
    } else {
      place[d] = out;
      shape.push_back(a.dim(d));
    }
    ++out;
  }
  return Compute(std::move(name), shape, [&](const Indices& i) {
    Indices at;
    size_t next = 0;
    for (int d = 0; d < a.ndim(); ++d) {
      at.push_back(place[d] >= 0 ? i[place[d]] : Expr(reduced[next++]));
    }
    return Body(a(at), reducer, reduced);
  });
}

Tensor Mean(const Tensor& a, std::vector<int> axes, bool keep_dims) {
  int64_t count = 1;
  for (int axis : axes) count *= a.dim(axis);
  const Tensor sum =
      ReduceOver(a, Reducer::kSum, std::move(axes), keep_dims, "T_sum");
  return Map(
      sum,
      [&](Expr x) {
        return Binary(ir::BinaryOp::kDiv, x,
                      ir::FloatConst(static_cast<double>(count), x->dtype));
      },
      "T_mean");
}

Tensor Softmax(const Tensor& a, RowsOfMinusInfinity rows) {
  const bool zeros = rows == RowsOfMinusInfinity::kZeros;
  const int last = a.ndim() - 1;
  const Tensor top =
      ReduceOver(a, Reducer::kMax, {last}, true, "T_softmax_maxelem");
  const Tensor e = Zip(
      a, top,
      [&](Expr x, Expr m) {
        if (zeros) {
          const double infinity = std::numeric_limits<double>::infinity();
          m = ir::MakeSelect(ir::EQ(m, ir::FloatConst(-infinity, m->dtype)),
                             ir::FloatConst(0, m->dtype), m);
        }
        return ir::MakeCall(ir::Intrinsic::kExp,
                            {Binary(ir::BinaryOp::kSub, x, m)});
      },
      "T_softmax_exp");
  Tensor sum = ReduceOver(e, Reducer::kSum, {last}, true, "T_softmax_expsum");
  if (zeros) {
    sum = Map(
        sum,
        [](Expr s) {
          return ir::MakeSelect(ir::EQ(s, ir::FloatConst(0, s->dtype)),
                                ir::FloatConst(1, s->dtype), s);
        },
        "T_softmax_divisor");
  }
  return Divide(e, sum, "T_softmax_norm");
}

Tensor LayerNorm(const Tensor& a, const Tensor& gamma, const Tensor& beta,
                 double epsilon) {
  const int last = a.ndim() - 1;
  const Tensor mean = Mean(a, {last}, true);
  const Tensor centred = Subtract(a, mean, "T_centred");
  const Tensor variance =
      Mean(Map(
               centred, [](Expr x) { return Binary(ir::BinaryOp::kMul, x, x); },
               "T_square"),
           {last}, true);
  const Tensor scale = Map(
      variance,
      [&](Expr v) {
        return ir::MakeCall(
            ir::Intrinsic::kRsqrt,
            {Binary(ir::BinaryOp::kAdd, v, ir::FloatConst(epsilon, v->dtype))});
      },
      "T_rsqrt");
  return Add(Multiply(Multiply(centred, scale, "T_normed"), gamma, "T_scaled"),
             beta, "T_layer_norm");
}

Tensor Transpose(const Tensor& a, std::vector<int> axes) {
  TF_CHECK(static_cast<int>(axes.size()) == a.ndim());
  std::vector<int64_t> shape;
  for (int axis : axes) shape.push_back(a.dim(axis));
  return Compute("T_transpose", shape, [&](const Indices& i) {
    Indices at(a.ndim());
    for (size_t d = 0; d < axes.size(); ++d) at[axes[d]] = i[d];
    return Body(a(at));
  });
}

Tensor Pad(const Tensor& a, std::vector<int64_t> before,
           std::vector<int64_t> after, Expr value, std::string name) {
  std::vector<int64_t> shape;
  for (int d = 0; d < a.ndim(); ++d) {
    shape.push_back(before[d] + a.dim(d) + after[d]);
  }
  return Compute(std::move(name), shape, [&](const Indices& i) {
    Expr inside = ir::BoolConst(true);
    Indices at;
    for (int d = 0; d < a.ndim(); ++d) {
      at.push_back(i[d] - before[d]);
      if (before[d] > 0) {
        inside = ir::And(inside, ir::LE(IntConst(before[d]), i[d]));
      }
      if (after[d] > 0) {
        inside = ir::And(inside, ir::LT(i[d], IntConst(before[d] + a.dim(d))));
      }
    }
    return Body(ir::IfThenElseExpr(inside, a(at), value));
  });
}

}  // namespace tilefarm::te
