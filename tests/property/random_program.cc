#include "tests/property/random_program.h"

#include <string>
#include <vector>

#include "base/check.h"
#include "compiler/te/operators.h"
#include "tests/support/two_reductions.h"

namespace tilefarm::property {
namespace {

using ir::BinaryOp;
using ir::DataType;
using ir::Expr;
using te::Indices;
using te::Tensor;

int64_t Extent(Rng& rng, int64_t most) { return rng.Between(1, most); }

DataType RandomType(Rng& rng) {
  static constexpr DataType kTypes[] = {
      DataType::Float(32), DataType::Float(32), DataType::Float(64),
      DataType::Int(32), DataType::Int(8)};
  return kTypes[rng.Below(std::size(kTypes))];
}

// A cheap function of one value that keeps its range small.
Expr RandomUnary(Rng& rng, Expr x) {
  const DataType t = x->dtype;
  if (!t.is_float()) {
    switch (rng.Below(3)) {
      case 0:
        return ir::MakeBinary(BinaryOp::kMax, x, ir::ConstOf(t, 1));
      case 1:
        return ir::MakeBinary(BinaryOp::kFloorMod, x, ir::ConstOf(t, 7));
      default:
        return ir::MakeBinary(BinaryOp::kFloorDiv, x, ir::ConstOf(t, 3));
    }
  }
  switch (rng.Below(5)) {
    case 0:
      return ir::MakeBinary(BinaryOp::kMax, x, ir::ConstOf(t, 0));
    case 1:
      return ir::MakeCall(ir::Intrinsic::kTanh, {x});
    case 2:
      return ir::MakeBinary(BinaryOp::kMul, x, ir::FloatConst(0.5, t));
    case 3:
      return ir::MakeCall(ir::Intrinsic::kAbs, {x});
    default:
      return ir::MakeBinary(BinaryOp::kAdd, x, ir::ConstOf(t, 1));
  }
}

Tensor Elementwise(Rng& rng, const Tensor& a, const std::string& name) {
  return te::Map(
      a, [&](Expr x) { return RandomUnary(rng, x); }, name);
}

// Moves elements by a quasi-affine index: a transpose or a reshape.
Tensor Movement(Rng& rng, const Tensor& a) {
  if (a.ndim() >= 2 && rng.Chance(0.5)) {
    std::vector<int> axes;
    for (int i = 0; i < a.ndim(); ++i) axes.push_back(i);
    rng.Shuffle(axes);
    return te::Transpose(a, axes);
  }
  return te::Compute("T_reshape", {a.buffer()->num_elements()},
                     [&](const Indices& i) {
                       Indices at(a.ndim());
                       Expr rest = i[0];
                       for (int d = a.ndim() - 1; d >= 0; --d) {
                         at[d] = ir::FloorMod(rest, ir::IntConst(a.dim(d)));
                         rest = ir::FloorDiv(rest, ir::IntConst(a.dim(d)));
                       }
                       return te::Body(a(at));
                     });
}

std::vector<Tensor> MatmulProgram(Rng& rng) {
  const int64_t m = Extent(rng, 24), n = Extent(rng, 24), k = Extent(rng, 24);
  const DataType type =
      rng.Chance(0.7) ? DataType::Float(32) : DataType::Int(8);
  const bool transposed = rng.Chance(0.3);
  const Tensor a = te::Placeholder("A", {m, k}, type);
  const Tensor b = transposed ? te::Placeholder("B", {n, k}, type)
                              : te::Placeholder("B", {k, n}, type);
  te::MatmulOptions options;
  options.transpose_b = transposed;
  Tensor c = te::Matmul(a, b, options, "C");
  std::vector<Tensor> params{a, b};
  if (rng.Chance(0.4)) {
    const Tensor bias = te::Placeholder("bias", {n}, c.dtype());
    params.push_back(bias);
    c = te::Add(c, bias, "D");
  }
  if (rng.Chance(0.5)) c = Elementwise(rng, c, "E");
  params.push_back(c);
  return params;
}

std::vector<Tensor> ConvProgram(Rng& rng) {
  te::ConvOptions options;
  options.padding = {rng.Between(0, 1), rng.Between(0, 1)};
  options.stride = {rng.Between(1, 2), rng.Between(1, 2)};
  const int64_t h = rng.Between(3, 8), w = rng.Between(3, 8);
  const int64_t c = rng.Between(1, 4), o = rng.Between(1, 8);
  const DataType type = DataType::Float(32);
  const bool nchw = rng.Chance(0.5);
  const Tensor data = nchw ? te::Placeholder("data", {1, c, h, w}, type)
                           : te::Placeholder("data", {1, h, w, c}, type);
  const Tensor weight = nchw ? te::Placeholder("weight", {o, c, 3, 3}, type)
                             : te::Placeholder("weight", {3, 3, c, o}, type);
  Tensor out = nchw ? te::Conv2dNchw(data, weight, options)
                    : te::Conv2dNhwc(data, weight, options);
  if (rng.Chance(0.5)) out = te::Relu(out);
  return {data, weight, out};
}

// A transposed convolution of one dimension, in the form of frameworks: most
// taps meet no input.
std::vector<Tensor> StridedProgram(Rng& rng) {
  const int64_t stride = rng.Between(2, 3);
  const int64_t taps = stride * rng.Between(1, 2);
  const int64_t size = rng.Between(1, 5), k = rng.Between(1, 4);
  const int64_t channels = Extent(rng, 8);
  const DataType type = DataType::Float(32);
  const Tensor a =
      te::Placeholder("A", {size + (taps + stride - 1) / stride, k}, type);
  const Tensor w = te::Placeholder("W", {taps, k, channels}, type);
  const te::ReduceAxis tap("tap", taps), depth("depth", k);
  Tensor out =
      te::Compute("C", {size * stride, channels}, [&](const Indices& i) {
        const Expr at = ir::MakeBinary(BinaryOp::kAdd, i[0], tap);
        const Expr step = ir::IntConst(stride);
        const Expr met = ir::MakeBinary(BinaryOp::kEQ, ir::FloorMod(at, step),
                                        ir::IntConst(0));
        const Expr x = ir::MakeCall(
            ir::Intrinsic::kIfThenElse,
            {met, a({ir::FloorDiv(at, step), depth}), ir::ConstOf(type, 0)});
        return te::Sum(ir::MakeBinary(BinaryOp::kMul, x, w({tap, depth, i[1]})),
                       {tap, depth});
      });
  if (rng.Chance(0.5)) out = Elementwise(rng, out, "D");
  return {a, w, out};
}

std::vector<Tensor> ReductionProgram(Rng& rng) {
  std::vector<int64_t> shape;
  const int ndim = static_cast<int>(rng.Between(1, 3));
  for (int i = 0; i < ndim; ++i) shape.push_back(Extent(rng, 20));
  const Tensor a = te::Placeholder("A", shape, RandomType(rng));
  std::vector<int> axes;
  for (int i = 0; i < ndim; ++i) {
    if (rng.Chance(0.6)) axes.push_back(i);
  }
  if (axes.empty()) axes.push_back(ndim - 1);
  static constexpr te::Reducer kReducers[] = {
      te::Reducer::kSum, te::Reducer::kMax, te::Reducer::kMin};
  Tensor source = a;
  if (rng.Chance(0.4)) source = Elementwise(rng, a, "B");
  Tensor out = te::ReduceOver(source, kReducers[rng.Below(3)], axes,
                              rng.Chance(0.5), "C");
  if (rng.Chance(0.4)) out = Elementwise(rng, out, "D");
  return {a, out};
}

std::vector<Tensor> ChainProgram(Rng& rng) {
  std::vector<int64_t> shape;
  const int ndim = static_cast<int>(rng.Between(1, 4));
  for (int i = 0; i < ndim; ++i) shape.push_back(Extent(rng, 10));
  const Tensor a = te::Placeholder("A", shape, RandomType(rng));
  Tensor out = Elementwise(rng, a, "B");
  std::vector<Tensor> params{a};
  const int length = static_cast<int>(rng.Between(0, 3));
  for (int i = 0; i < length; ++i) {
    const std::string name(1, static_cast<char>('P' + i));
    switch (rng.Below(4)) {
      case 0:
        out = Movement(rng, out);
        break;
      case 1: {
        std::vector<int64_t> before, after;
        for (int d = 0; d < out.ndim(); ++d) {
          before.push_back(rng.Between(0, 2));
          after.push_back(rng.Between(0, 2));
        }
        out = te::Pad(out, before, after, ir::ConstOf(out.dtype(), 1),
                      name + "_pad");
        break;
      }
      case 2:
        // Use the first parameter again if the shapes still agree.
        if (out.shape() == a.shape()) {
          out = te::Add(out, a, name + "_add");
          break;
        }
        [[fallthrough]];
      default:
        out = Elementwise(rng, out, name);
    }
  }
  params.push_back(out);
  return params;
}

std::vector<Tensor> SoftmaxProgram(Rng& rng) {
  const Tensor a = te::Placeholder("A", {Extent(rng, 12), Extent(rng, 20)},
                                   DataType::Float(32));
  const Tensor shares = te::Softmax(a);
  if (rng.Chance(0.5)) return {a, shares};
  // Attention, but for the product that makes the scores.
  const Tensor v =
      te::Placeholder("V", {a.dim(1), Extent(rng, 6)}, DataType::Float(32));
  return {a, v, te::Matmul(shares, v, {}, "O")};
}

}  // namespace

ir::PrimFuncPtr RandomProgram(Rng& rng) {
  std::vector<Tensor> params;
  switch (rng.Below(10)) {
    case 0:
    case 1:
    case 2:
      params = MatmulProgram(rng);
      break;
    case 3:
      params = ConvProgram(rng);
      break;
    case 4:
    case 5:
      params = ReductionProgram(rng);
      break;
    case 6:
      params = ChainProgram(rng);
      break;
    case 7:
      params = StridedProgram(rng);
      break;
    case 8: {
      const bool largest = rng.Chance(0.3);
      const int64_t rows = Extent(rng, 12), columns = Extent(rng, 20);
      return TwoReductions(rows, columns, largest);
    }
    default:
      params = SoftmaxProgram(rng);
  }
  auto function = te::CreatePrimFunc("main", params);
  TF_CHECK(function.ok());
  return *function;
}

}  // namespace tilefarm::property
