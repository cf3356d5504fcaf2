// Operators that read images at real-valued places, and Col2Im, which adds up
// overlapping blocks.
#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/onnx/expressions.h"
#include "compiler/onnx/node.h"
#include "compiler/onnx/shapes.h"

namespace tilefarm::onnx {
namespace {

using ir::BinaryOp;
using ir::DataType;
using ir::Expr;
using ir::IntConst;
using ir::Intrinsic;

Expr Abs(const Expr& a) { return ir::MakeCall(Intrinsic::kAbs, {a}); }

enum class Padding { kZeros, kBorder, kReflection };

struct GridOptions {
  int64_t taps = 2;  // per dimension: 1 nearest, 2 linear, 4 cubic
  Padding padding = Padding::kZeros;
  bool align = false;
  DataType real;  // of coordinates and sums
};

absl::StatusOr<GridOptions> GridOptionsOf(Node& node) {
  GridOptions out;
  const std::string mode = node.String("mode", "linear");
  if (mode == "nearest") {
    out.taps = 1;
  } else if (mode == "linear" || mode == "bilinear") {
    out.taps = 2;
  } else if (mode == "cubic" || mode == "bicubic") {
    out.taps = 4;
  } else {
    return node.Unsupported("attribute mode=", mode);
  }
  const std::string padding = node.String("padding_mode", "zeros");
  if (padding == "border") {
    out.padding = Padding::kBorder;
  } else if (padding == "reflection") {
    out.padding = Padding::kReflection;
  } else if (padding != "zeros") {
    return node.Unsupported("attribute padding_mode=", padding);
  }
  out.align = node.Int("align_corners", 0) != 0;
  const bool wide = node.Dtype(0) == DataType::Float(64) ||
                    node.Dtype(1) == DataType::Float(64);
  out.real = DataType::Float(wide ? 64 : 32);
  return out;
}

// `x` reflected at the borders `low` and `high` until it lies between them.
Expr Reflect(const Expr& x, double low, double high) {
  const DataType real = x->dtype;
  const auto number = [&](double value) { return ir::FloatConst(value, real); };
  if (high <= low) return number(low);
  const Expr span = number(high - low);
  // Distances from `low`, in a period of two spans.
  const Expr distance = Abs(x - number(low));
  const Expr period = span * number(2);
  const Expr phase = distance - Floor(Divide(distance, period)) * period;
  return number(low) + ir::MakeBinary(BinaryOp::kMin, phase, period - phase);
}

// The kernel of linear interpolation or cubic convolution (Keys, 1981).
Expr Kernel(int64_t taps, const Expr& distance) {
  const DataType real = distance->dtype;
  const auto number = [&](double value) { return ir::FloatConst(value, real); };
  if (taps == 2) return number(1) - distance;
  constexpr double a = -0.75;
  const Expr& x = distance;
  const Expr near = (x * number(a + 2) - number(a + 3)) * x * x + number(1);
  const Expr far =
      ((x * number(a) - number(5 * a)) * x + number(8 * a)) * x - number(4 * a);
  return Choose(ir::LE(x, number(1)), near, far);
}

// The image is x [n, c, spatial...], the grid [n, places..., dims].
te::Tensor SampleGrid(const GridOptions& options, const te::Tensor& x,
                      const te::Tensor& grid) {
  const auto dims = static_cast<size_t>(x.ndim()) - 2;
  const DataType real = options.real;
  const auto number = [&](double value) { return ir::FloatConst(value, real); };
  const auto low = [&](size_t) { return options.align ? 0.0 : -0.5; };
  const auto high = [&](size_t d) {
    return static_cast<double>(x.shape()[d + 2]) - (options.align ? 1.0 : 0.5);
  };
  // The coordinate of a place along one dimension of the image. The last
  // dimension of the grid has them in reverse order.
  const auto coordinate_at = [&](const te::Indices& place, size_t d) {
    te::Indices at = place;
    at.push_back(IntConst(static_cast<int64_t>(dims - 1 - d)));
    const auto extent = static_cast<double>(x.shape()[d + 2]);
    const Expr n = ir::MakeCast(real, grid(at)) + number(1);
    Expr v = options.align ? n * number((extent - 1) / 2)
                           : (n * number(extent) - number(1)) * number(0.5);
    if (options.taps == 1) v = ir::MakeCall(Intrinsic::kNearbyint, {v});
    const Expr outside =
        ir::Or(ir::LT(v, number(low(d))), ir::GT(v, number(high(d))));
    if (options.padding == Padding::kBorder) {
      const Expr inside = ir::MakeBinary(
          BinaryOp::kMax, ir::MakeBinary(BinaryOp::kMin, v, number(extent - 1)),
          number(0));
      v = Choose(outside, inside, v);
    } else if (options.padding == Padding::kReflection) {
      v = Choose(outside, Reflect(v, low(d), high(d)), v);
    }
    return v;
  };
  std::vector<int64_t> places(grid.shape().begin(), grid.shape().end() - 1);
  std::vector<te::Tensor> coordinates;
  for (size_t d = 0; d < dims; ++d) {
    coordinates.push_back(te::Compute(
        absl::StrCat("coordinate", d), places,
        [&](const te::Indices& i) { return te::Body(coordinate_at(i, d)); }));
  }
  std::vector<int64_t> shape = places;
  shape.insert(shape.begin() + 1, x.dim(1));
  // One pixel and its weight, of all combinations of taps.
  const auto pixel = [&](const te::Indices& i, const te::Indices& taps) {
    te::Indices place = i;
    place.erase(place.begin() + 1);
    te::Indices at{i[0], i[1]};
    Expr weight;
    Expr inside = ir::BoolConst(true);
    for (size_t d = 0; d < dims; ++d) {
      const int64_t extent = x.shape()[d + 2];
      const Expr v = coordinates[d](place);
      Expr index = AsIndex(Floor(v));
      if (options.taps > 1) {
        index = index + taps[d] - (options.taps / 2 - 1);
        const Expr w = Kernel(options.taps, Abs(ir::MakeCast(real, index) - v));
        weight = weight == nullptr ? w : weight * w;
      }
      if (options.padding == Padding::kZeros) {
        inside = ir::And(inside, ir::And(ir::LE(IntConst(0), index),
                                         ir::LT(index, IntConst(extent))));
      } else if (options.padding == Padding::kReflection) {
        index = AsIndex(
            Choose(ir::And(ir::LE(IntConst(0), index),
                           ir::LT(index, IntConst(extent))),
                   ir::MakeCast(real, index),
                   Reflect(ir::MakeCast(real, index), low(d), high(d))));
      }
      at.push_back(ClampIndex(index, extent));
    }
    Expr value = ir::MakeCast(real, x(at));
    if (!ir::IsConstInt(inside, 1)) {
      value = ir::IfThenElseExpr(inside, value, number(0));
    }
    return weight == nullptr ? value : value * weight;
  };
  te::Tensor sum = te::Compute(
      "T_grid_sample", shape, [&](const te::Indices& i) -> te::Body {
        if (options.taps == 1) return pixel(i, {});
        std::vector<te::ReduceAxis> axes;
        te::Indices taps;
        for (size_t d = 0; d < dims; ++d) {
          axes.emplace_back(absl::StrCat("t", d), options.taps);
          taps.push_back(axes.back());
        }
        return te::Sum(pixel(i, taps), axes);
      });
  if (x.dtype() == real) return sum;
  return te::Compute("T_cast", shape, [&](const te::Indices& i) {
    Expr value = sum(i);
    if (!x.dtype().is_float()) {
      value = ir::MakeCall(Intrinsic::kTrunc, {value});
    }
    return te::Body(ir::MakeCast(x.dtype(), value));
  });
}

Outputs ConvertGridSample(Node& node) {
  TF_ASSIGN_OR_RETURN(const GridOptions options, GridOptionsOf(node));
  const TensorType x = node.Type(0);
  const TensorType grid = node.Type(1);
  if (x.ndim() < 3 || grid.ndim() != x.ndim() || !grid.dtype.is_float() ||
      grid.shape[0] != x.shape[0] || grid.shape.back() != x.ndim() - 2) {
    return node.Invalid("grid ", grid.ToString(), " for ", x.ToString());
  }
  std::vector<int64_t> shape(grid.shape.begin(), grid.shape.end() - 1);
  shape.insert(shape.begin() + 1, x.shape[1]);
  TF_RETURN_IF_ERROR(CheckShape(node, shape));
  if (Volume(shape, 0, shape.size()) == 0) {
    return OneOutput(node.builder().Constant("grid_sample", {x.dtype, shape},
                                             graph::TensorData()));
  }
  if (x.num_elements() == 0) return node.Invalid("the image has no elements");
  return OneOutput(node.builder().Compute(
      "image.grid_sample",
      {{"method", node.String("mode", "linear")},
       {"padding_mode", node.String("padding_mode", "zeros")},
       {"align_corners", options.align}},
      {node.Input(0), node.Input(1)}, [&](const graph::Tensors& in) {
        return SampleGrid(options, in[0], in[1]);
      }));
}

Outputs ConvertAffineGrid(Node& node) {
  const TensorType theta = node.Type(0);
  const bool align = node.Int("align_corners", 0) != 0;
  if (theta.ndim() != 3 || !theta.dtype.is_float() ||
      (theta.shape[1] != 2 && theta.shape[1] != 3) ||
      theta.shape[2] != theta.shape[1] + 1) {
    return node.Invalid("theta is ", theta.ToString());
  }
  const int64_t dims = theta.shape[1];
  if (node.Shape(1) != std::vector<int64_t>{dims + 2}) {
    return node.Invalid("size is ", node.Type(1).ToString());
  }
  std::vector<int64_t> shape;
  if (node.IsConstant(1)) {
    TF_ASSIGN_OR_RETURN(shape, node.ConstInts(1));
    shape.erase(shape.begin() + 1);
    shape.push_back(dims);
    TF_RETURN_IF_ERROR(CheckShape(node, shape));
  } else {
    TF_ASSIGN_OR_RETURN(
        shape, DeclaredShape(node, theta.dtype, static_cast<int>(dims) + 2,
                             "input 1 (size)"));
  }
  if (shape[0] != theta.shape[0] || shape.back() != dims) {
    return node.Invalid("the size does not fit theta");
  }
  const DataType real = theta.dtype == DataType::Float(64)
                            ? DataType::Float(64)
                            : DataType::Float(32);
  const auto number = [&](double value) { return ir::FloatConst(value, real); };
  return OneOutput(node.builder().Compute(
      "image.affine_grid", {{"align_corners", align}}, {node.Input(0)},
      [&](const graph::Tensors& in) {
        return te::Compute("T_affine_grid", shape, [&](const te::Indices& i) {
          const auto factor = [&](int64_t column) {
            return ir::MakeCast(real,
                                in[0]({i[0], i.back(), IntConst(column)}));
          };
          Expr sum = factor(dims);
          for (int64_t k = 0; k < dims; ++k) {
            // Column 0 is x, the last dimension of the image.
            const auto d = static_cast<size_t>(dims - k);
            const auto extent = static_cast<double>(shape[d]);
            const Expr place = ir::MakeCast(real, i[d]);
            const Expr coordinate =
                align ? Divide(place * number(2),
                               number(std::max(extent - 1, 1.0))) -
                            number(1)
                      : Divide(place * number(2) + number(1), number(extent)) -
                            number(1);
            sum = sum + factor(k) * coordinate;
          }
          return te::Body(ir::MakeCast(theta.dtype, sum));
        });
      }));
}

struct Col2ImSizes {
  TensorType x;                // [n, c * block, columns]
  std::vector<int64_t> shape;  // [n, c, image...]
  int64_t elements = 1;        // of a block
  std::vector<int64_t> dilations, strides, pads;
};

absl::StatusOr<Col2ImSizes> Col2ImSizesOf(Node& node) {
  Col2ImSizes out;
  out.x = node.Type(0);
  const int64_t dims = node.Type(1).num_elements();
  if (out.x.ndim() != 3 || node.Type(2).num_elements() != dims || dims < 1 ||
      dims > 8) {
    return node.Invalid(
        "the input, image_shape or block_shape is of the wrong "
        "rank");
  }
  if (node.IsConstant(1) && node.IsConstant(2)) {
    TF_ASSIGN_OR_RETURN(out.shape, node.ConstInts(1));
    TF_ASSIGN_OR_RETURN(const std::vector<int64_t> block, node.ConstInts(2));
    TF_RETURN_IF_ERROR(CheckShape(node, block));
    out.elements = Volume(block, 0, block.size());
    if (out.elements < 1 || out.x.shape[1] % out.elements != 0) {
      return node.Invalid(out.x.shape[1], " rows do not make blocks");
    }
    out.shape.insert(out.shape.begin(),
                     {out.x.shape[0], out.x.shape[1] / out.elements});
    TF_RETURN_IF_ERROR(CheckShape(node, out.shape));
  } else {
    TF_ASSIGN_OR_RETURN(
        out.shape, DeclaredShape(node, out.x.dtype, static_cast<int>(dims) + 2,
                                 "input 1 (image_shape)"));
    if (out.shape[0] != out.x.shape[0] || out.shape[1] < 1 ||
        out.x.shape[1] % out.shape[1] != 0) {
      return node.Invalid("the declared output does not fit");
    }
    out.elements = out.x.shape[1] / out.shape[1];
  }
  const auto count = static_cast<size_t>(dims);
  out.dilations = node.Ints("dilations");
  out.strides = node.Ints("strides");
  out.pads = node.Ints("pads");
  if (out.dilations.empty()) out.dilations.assign(count, 1);
  if (out.strides.empty()) out.strides.assign(count, 1);
  if (out.pads.empty()) out.pads.assign(2 * count, 0);
  if (out.dilations.size() != count || out.strides.size() != count ||
      out.pads.size() != 2 * count) {
    return node.Invalid("dilations, strides or pads are of the wrong length");
  }
  constexpr int64_t kLargest = 1 << 24;
  for (const auto* list : {&out.dilations, &out.strides, &out.pads}) {
    for (const int64_t value : *list) {
      if (value < (list == &out.pads ? 0 : 1) || value > kLargest) {
        return node.Invalid("a dilation, stride or pad is ", value);
      }
    }
  }
  return out;
}

// Each pixel adds up the block elements that lie on it.
Outputs ConvertCol2Im(Node& node) {
  TF_ASSIGN_OR_RETURN(const Col2ImSizes sizes, Col2ImSizesOf(node));
  const auto dims = sizes.dilations.size();
  const int64_t columns = sizes.x.shape[2];
  std::vector<ValueId> inputs{node.Input(0)};
  TF_ASSIGN_OR_RETURN(const IntInput blocks, IntInput::Read(node, 2, inputs));
  if (sizes.x.num_elements() == 0) return node.Unsupported("an empty input");
  if (blocks.is_constant()) {
    const std::vector<int64_t>& block = blocks.values();
    if (Volume(block, 0, block.size()) != sizes.elements) {
      return node.Invalid("the declared output does not fit block_shape");
    }
    int64_t total = 1;
    for (size_t d = 0; d < dims; ++d) {
      const int64_t span = sizes.shape[d + 2] + sizes.pads[d] +
                           sizes.pads[d + dims] - 1 -
                           sizes.dilations[d] * (blocks.values()[d] - 1);
      const int64_t count = span < 0 ? 0 : span / sizes.strides[d] + 1;
      if (__builtin_mul_overflow(total, count, &total)) {
        return node.Invalid("too many blocks");
      }
    }
    if (total != columns) {
      return node.Invalid(columns, " columns for ", total, " blocks");
    }
  }
  const DataType dtype = sizes.x.dtype;
  const DataType sum_dtype =
      dtype.is_float() && dtype.bits == 16 ? DataType::Float(32) : dtype;
  if (dtype.is_bool()) return node.Unsupported("bools");
  return OneOutput(node.builder().Compute(
      "col2im", {}, inputs, [&](const graph::Tensors& in) {
        const te::ReduceAxis k("k", sizes.elements);
        const te::Tensor sum =
            te::Compute("T_col2im", sizes.shape, [&](const te::Indices& i) {
              // The element's place in its block, the block's place.
              Expr rest = k;
              Expr column = IntConst(0);
              Expr stride = IntConst(1);
              Expr inside = ir::BoolConst(true);
              for (size_t d = dims; d-- > 0;) {
                const Expr size = ir::Max(
                    blocks.At(in, static_cast<int64_t>(d)), IntConst(1));
                const Expr offset = ir::FloorMod(rest, size);
                rest = ir::FloorDiv(rest, size);
                const int64_t padded =
                    sizes.shape[d + 2] + sizes.pads[d] + sizes.pads[d + dims];
                const Expr step = IntConst(sizes.strides[d]);
                const Expr count =
                    ir::FloorDiv(
                        IntConst(padded - 1) - (size - 1) * sizes.dilations[d],
                        step) +
                    1;
                const Expr place =
                    i[d + 2] + sizes.pads[d] - offset * sizes.dilations[d];
                const Expr block = ir::FloorDiv(place, step);
                inside = ir::And(
                    inside,
                    ir::And(ir::EQ(ir::FloorMod(place, step), IntConst(0)),
                            ir::And(ir::LE(IntConst(0), block),
                                    ir::LT(block, count))));
                column = column + block * stride;
                stride = stride * count;
              }
              const Expr value = ir::MakeCast(
                  sum_dtype, in[0]({i[0], i[1] * sizes.elements + Expr(k),
                                    ClampIndex(column, columns)}));
              return te::Sum(
                  ir::IfThenElseExpr(inside, value, ir::ConstOf(sum_dtype, 0)),
                  {k});
            });
        if (sum_dtype == dtype) return sum;
        return te::Compute("T_cast", sizes.shape, [&](const te::Indices& i) {
          return te::Body(ir::MakeCast(dtype, sum(i)));
        });
      }));
}

}  // namespace

std::vector<Converter> SamplingConverters() {
  return {
      {"AffineGrid", ConvertAffineGrid},
      {"Col2Im", ConvertCol2Im},
      {"GridSample", ConvertGridSample},
  };
}

}  // namespace tilefarm::onnx
