// Resize and Upsample. Per axis, a small program computes which operands each
// result mixes and with which weights; if that depends on constants only, the
// tables are constants of the graph.
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/status_macros.h"
#include "compiler/onnx/expressions.h"
#include "compiler/onnx/node.h"
#include "compiler/onnx/resize_plan.h"
#include "compiler/onnx/shapes.h"

namespace tilefarm::onnx {
namespace {

using ir::BinaryOp;
using ir::DataType;
using ir::Expr;
using ir::IntConst;
using ir::Intrinsic;

// Coordinates are computed in double precision: a rounding error at an integer
// would choose another element.
const DataType kReal = DataType::Float(64);

Expr Real(double value) { return ir::FloatConst(value, kReal); }
Expr Ceil(const Expr& a) { return ir::MakeCall(Intrinsic::kCeil, {a}); }
Expr AsReal(const Expr& a) { return ir::MakeCast(kReal, a); }

// One axis of the resizing.
struct Axis {
  size_t position = 0;  // in ResizePlan::axes
  int64_t from = 0;
  int64_t to = 0;
};

// The scale of an axis: a number, a load, or computed from loaded sizes.
Expr ScaleOf(Node& node, const ResizeOptions& options, const ResizePlan& plan,
             const Axis& axis, const te::Tensor* loaded) {
  if (!plan.scales.empty()) return Real(plan.scales[axis.position]);
  const auto load = [&](size_t k) {
    return AsReal((*loaded)({IntConst(static_cast<int64_t>(k))}));
  };
  if (plan.scale_input >= 0) return load(axis.position);
  Expr common;
  for (size_t k = 0; k < plan.axes.size(); ++k) {
    const int64_t extent = node.Shape(0)[static_cast<size_t>(plan.axes[k])];
    const Expr scale = Divide(load(k), Real(static_cast<double>(extent)));
    if (common == nullptr) {
      common = scale;
    } else {
      common = ir::MakeBinary(
          options.policy == "not_larger" ? BinaryOp::kMin : BinaryOp::kMax,
          common, scale);
    }
  }
  return common;
}

// The place in the operand of element `x` (a real number) of the result.
Expr SourceOf(const ResizeOptions& options, const Axis& axis, const Expr& x,
              const Expr& scale, const Expr& begin, const Expr& end) {
  const auto from = static_cast<double>(axis.from);
  const Expr width = scale * Real(from);  // of the result, not rounded
  const Expr half = Divide(x + Real(0.5), scale) - Real(0.5);
  const Expr is_one = ir::EQ(width, Real(1));
  // A divisor that is never 0; where it would be, the other case holds.
  const Expr steps = Choose(is_one, Real(1), width - Real(1));
  if (options.coordinates == "align_corners") {
    return Choose(is_one, Real(0), Divide(x * Real(from - 1), steps));
  }
  if (options.coordinates == "asymmetric") return Divide(x, scale);
  if (options.coordinates == "tf_half_pixel_for_nn") {
    return Divide(x + Real(0.5), scale);
  }
  if (options.coordinates == "pytorch_half_pixel") {
    // Some implementations read "length_resized > 1" with the rounded length.
    return axis.to == 1 ? Choose(is_one, Real(-0.5), half) : half;
  }
  if (options.coordinates == "half_pixel_symmetric") {
    const Expr adjustment = Divide(Real(static_cast<double>(axis.to)), width);
    return Real(from / 2) * (Real(1) - adjustment) + half;
  }
  if (options.crops()) {
    const Expr extent = (end - begin) * Real(from - 1);
    return begin * Real(from - 1) +
           Choose(is_one, extent * Real(0.5), Divide(x * extent, steps));
  }
  return half;
}

// The kernel of cubic convolution (Keys, 1981) at a distance >= 0.
Expr CubicKernel(const Expr& x, double a) {
  const Expr near = ((x * Real(a + 2)) - Real(a + 3)) * x * x + Real(1);
  const Expr far =
      ((x * Real(a) - Real(5 * a)) * x + Real(8 * a)) * x - Real(4 * a);
  return Choose(ir::LE(x, Real(1)), near,
                Choose(ir::LT(x, Real(2)), far, Real(0)));
}

// The tables of one axis. Element [i, t]: operand t of result i.
struct Tables {
  ValueId index = -1;    // int64 [to, taps], in [0, from)
  ValueId weight = -1;   // float64 [to, taps]; not for nearest
  ValueId outside = -1;  // int64 [to]: 1 where the result is extrapolated
  int64_t taps = 1;
  bool is_constant = false;
};

// Elements of a table that is computed during the import.
constexpr int64_t kLargestTable = 1 << 22;

// How many operands one result can mix.
absl::StatusOr<int64_t> TapsOf(Node& node, const ResizeOptions& options,
                               const ResizePlan& plan, const Axis& axis) {
  if (options.mode == ResizeMode::kNearest) return 1;
  const int64_t support = options.mode == ResizeMode::kLinear ? 1 : 2;
  if (!options.antialias) return 2 * support;
  // A scale that is known at run time only gives the declared size.
  const double scale = plan.scales.empty()
                           ? std::max(0.5, static_cast<double>(axis.to) - 0.5) /
                                 static_cast<double>(axis.from)
                           : plan.scales[axis.position];
  const double reach =
      std::ceil(static_cast<double>(support) / std::min(1.0, scale));
  if (!(reach < 1e9)) return node.Unsupported("a scale of ", scale);
  return 2 * static_cast<int64_t>(reach);
}

absl::StatusOr<Tables> TablesOf(Node& node, const ResizeOptions& options,
                                const ResizePlan& plan, const Axis& axis) {
  Tables tables;
  TF_ASSIGN_OR_RETURN(tables.taps, TapsOf(node, options, plan, axis));
  TF_RETURN_IF_ERROR(CheckShape(node, {axis.to, tables.taps}));
  std::vector<ValueId> inputs;
  const int scale_input =
      plan.scale_input >= 0 ? plan.scale_input : plan.size_input;
  if (scale_input >= 0) inputs.push_back(node.Input(scale_input));
  if (plan.roi_input >= 0) inputs.push_back(node.Input(plan.roi_input));
  const bool weighted = options.mode != ResizeMode::kNearest;
  TF_ASSIGN_OR_RETURN(
      const std::vector<ValueId> values,
      node.builder().ComputeAll(
          "resize_table", {}, inputs, [&](const graph::Tensors& in) {
            const te::Tensor* loaded = scale_input >= 0 ? &in[0] : nullptr;
            const auto scale_at = [&] {
              return ScaleOf(node, options, plan, axis, loaded);
            };
            const te::Tensor source =
                te::Compute("source", {axis.to}, [&](const te::Indices& i) {
                  Expr begin = Real(0), end = Real(1);
                  if (plan.roi_input >= 0) {
                    const auto k = static_cast<int64_t>(axis.position);
                    const auto count = static_cast<int64_t>(plan.axes.size());
                    begin = AsReal(in.back()({IntConst(k)}));
                    end = AsReal(in.back()({IntConst(k + count)}));
                  }
                  return te::Body(SourceOf(options, axis, AsReal(i[0]),
                                           scale_at(), begin, end));
                });
            // The operand of tap `t`, which may lie outside.
            const auto place = [&](const Expr& i, const Expr& t) {
              const Expr x = source({i});
              if (!weighted) {
                Expr nearest = Floor(x);
                if (options.nearest == "ceil") nearest = Ceil(x);
                if (options.nearest == "round_prefer_floor") {
                  nearest = Ceil(x - Real(0.5));
                }
                if (options.nearest == "round_prefer_ceil") {
                  nearest = Floor(x + Real(0.5));
                }
                if (options.nearest == "simple") {
                  nearest =
                      Choose(ir::LT(scale_at(), Real(1)), Ceil(x), Floor(x));
                }
                return AsIndex(nearest);
              }
              return AsIndex(Floor(x)) + t - (tables.taps / 2 - 1);
            };
            graph::Tensors results{te::Compute(
                "index", {axis.to, tables.taps}, [&](const te::Indices& i) {
                  return te::Body(ClampIndex(place(i[0], i[1]), axis.from));
                })};
            if (weighted) {
              const te::Tensor raw = te::Compute(
                  "raw_weight", {axis.to, tables.taps},
                  [&](const te::Indices& i) {
                    const Expr at = place(i[0], i[1]);
                    Expr distance = ir::MakeCall(Intrinsic::kAbs,
                                                 {AsReal(at) - source({i[0]})});
                    if (options.antialias) {
                      distance = distance * ir::MakeBinary(BinaryOp::kMin,
                                                           scale_at(), Real(1));
                    }
                    Expr weight = options.mode == ResizeMode::kCubic
                                      ? CubicKernel(distance, options.cubic)
                                      : ir::MakeBinary(BinaryOp::kMax, Real(0),
                                                       Real(1) - distance);
                    if (options.exclude_outside) {
                      const Expr inside =
                          ir::And(ir::LE(IntConst(0), at),
                                  ir::LT(at, IntConst(axis.from)));
                      weight = Choose(inside, weight, Real(0));
                    }
                    return te::Body(weight);
                  });
              if (options.antialias || options.exclude_outside) {
                const te::ReduceAxis t("t", tables.taps);
                const te::Tensor sum = te::Compute(
                    "weight_sum", {axis.to}, [&](const te::Indices& i) {
                      return te::Sum(raw({i[0], t}), {t});
                    });
                results.push_back(te::Compute(
                    "weight", {axis.to, tables.taps},
                    [&](const te::Indices& i) {
                      return te::Body(Divide(raw({i[0], i[1]}), sum({i[0]})));
                    }));
              } else {
                results.push_back(raw);
              }
            }
            if (options.crops()) {
              results.push_back(
                  te::Compute("outside", {axis.to}, [&](const te::Indices& i) {
                    const Expr x = source({i[0]});
                    const auto last = static_cast<double>(axis.from - 1);
                    return te::Body(Choose(
                        ir::Or(ir::LT(x, Real(0)), ir::GT(x, Real(last))),
                        IntConst(1), IntConst(0)));
                  }));
            }
            return results;
          }));
  tables.index = values[0];
  if (weighted) tables.weight = values[1];
  if (options.crops()) tables.outside = values.back();
  // Constant tables are computed now, but for those that are absurdly large.
  tables.is_constant = axis.to <= kLargestTable / tables.taps &&
                       node.builder().IsConstant(tables.index);
  if (tables.is_constant) {
    for (const ValueId value : values) {
      TF_RETURN_IF_ERROR(node.builder().Evaluate(value).status());
    }
  }
  return tables;
}

// Whether the nearest operand of result `i` is i / divisor * multiplier, for a
// scale that is an integer or the reciprocal of one: a static access.
struct Ratio {
  int64_t divisor = 1;
  int64_t multiplier = 1;
  int64_t offset = 0;
};

absl::StatusOr<std::optional<Ratio>> RatioOf(Node& node, const Tables& tables,
                                             const Axis& axis) {
  if (!tables.is_constant) return std::nullopt;
  TF_ASSIGN_OR_RETURN(const std::vector<int64_t> index,
                      node.builder().EvaluateInts(tables.index));
  Ratio ratio;
  ratio.offset = index[0];
  if (axis.to >= axis.from && axis.to % axis.from == 0) {
    ratio.divisor = axis.to / axis.from;
  } else if (axis.from % axis.to == 0) {
    ratio.multiplier = axis.from / axis.to;
  }
  for (int64_t i = 0; i < axis.to; ++i) {
    if (index[static_cast<size_t>(i)] !=
        i / ratio.divisor * ratio.multiplier + ratio.offset) {
      return std::nullopt;
    }
  }
  return ratio;
}

// All axes at once, since every result is one element of the operand.
absl::StatusOr<ValueId> ResizeNearest(Node& node, const ResizeOptions& options,
                                      const ResizePlan& plan, ValueId x,
                                      const std::vector<Axis>& axes) {
  const TensorType type = node.builder().type(x);
  std::vector<ValueId> inputs{x};
  struct Source {
    std::optional<Ratio> ratio;
    size_t index = 0, outside = 0;  // positions in `inputs`
  };
  std::vector<std::optional<Source>> sources(type.shape.size());
  std::vector<int64_t> shape = type.shape;
  for (const Axis& axis : axes) {
    const auto d = static_cast<size_t>(plan.axes[axis.position]);
    shape[d] = axis.to;
    TF_ASSIGN_OR_RETURN(const Tables tables,
                        TablesOf(node, options, plan, axis));
    Source source;
    if (!options.crops()) {
      TF_ASSIGN_OR_RETURN(source.ratio, RatioOf(node, tables, axis));
    }
    if (!source.ratio.has_value()) {
      source.index = inputs.size();
      inputs.push_back(tables.index);
    }
    if (options.crops()) {
      source.outside = inputs.size();
      inputs.push_back(tables.outside);
    }
    sources[d] = source;
  }
  return node.builder().Compute(
      "image.resize", {{"method", "nearest"}}, inputs,
      [&](const graph::Tensors& in) {
        return te::Compute("T_resize", shape, [&](const te::Indices& i) {
          te::Indices at = i;
          Expr outside = ir::BoolConst(false);
          for (size_t d = 0; d < shape.size(); ++d) {
            if (!sources[d].has_value()) continue;
            const Source& source = *sources[d];
            if (source.ratio.has_value()) {
              at[d] = ir::FloorDiv(i[d], IntConst(source.ratio->divisor)) *
                          source.ratio->multiplier +
                      source.ratio->offset;
            } else {
              at[d] = ClampIndex(in[source.index]({i[d], IntConst(0)}),
                                 type.shape[d]);
            }
            if (source.outside != 0) {
              outside = ir::Or(outside,
                               ir::NE(in[source.outside]({i[d]}), IntConst(0)));
            }
          }
          const Expr value = in[0](at);
          if (ir::IsConstInt(outside, 0)) return te::Body(value);
          return te::Body(Choose(
              outside,
              ir::MakeCast(type.dtype, ir::FloatConst(options.extrapolation,
                                                      DataType::Float(32))),
              value));
        });
      });
}

// One axis of a linear or cubic resizing; the result has dtype `compute`.
absl::StatusOr<ValueId> ResizeAxis(Node& node, const ResizeOptions& options,
                                   const ResizePlan& plan, ValueId x,
                                   const Axis& axis, DataType compute) {
  const TensorType type = node.builder().type(x);
  const auto d = static_cast<size_t>(plan.axes[axis.position]);
  std::vector<int64_t> shape = type.shape;
  shape[d] = axis.to;
  TF_RETURN_IF_ERROR(CheckShape(node, shape));
  TF_ASSIGN_OR_RETURN(const Tables tables, TablesOf(node, options, plan, axis));
  std::vector<ValueId> inputs{x, tables.index, tables.weight};
  if (options.crops()) inputs.push_back(tables.outside);
  return node.builder().Compute(
      "image.resize",
      {{"method", options.mode == ResizeMode::kCubic ? "cubic" : "linear"},
       {"axis", static_cast<int64_t>(d)}},
      inputs, [&](const graph::Tensors& in) {
        const auto term = [&](const te::Indices& i, const Expr& t) {
          te::Indices at = i;
          at[d] = ClampIndex(in[1]({i[d], t}), axis.from);
          return ir::MakeCast(compute, in[0](at)) *
                 ir::MakeCast(compute, in[2]({i[d], t}));
        };
        // Few terms are an expression that can move into its reader.
        const bool few = tables.taps <= 4;
        const te::ReduceAxis tap("t", tables.taps);
        const te::Tensor sum =
            te::Compute("T_resize", shape, [&](const te::Indices& i) {
              if (!few) return te::Sum(term(i, tap), {tap});
              Expr value = term(i, IntConst(0));
              for (int64_t t = 1; t < tables.taps; ++t) {
                value = value + term(i, IntConst(t));
              }
              return te::Body(value);
            });
        if (!options.crops()) return sum;
        return te::Compute("T_extrapolate", shape, [&](const te::Indices& i) {
          return te::Body(Choose(ir::NE(in[3]({i[d]}), IntConst(0)),
                                 ir::FloatConst(options.extrapolation, compute),
                                 sum(i)));
        });
      });
}

// Floats become integers by rounding to the nearest one that fits.
absl::StatusOr<ValueId> CastResult(Node& node, ValueId x, DataType dtype) {
  return node.builder().Compute(
      "astype", {{"dtype", dtype.ToString()}}, {x},
      [&](const graph::Tensors& in) {
        return te::Compute("T_cast", in[0].shape(), [&](const te::Indices& i) {
          Expr value = in[0](i);
          if (!dtype.is_float()) {
            value = ir::MakeCall(Intrinsic::kNearbyint, {value});
          }
          return te::Body(ir::MakeCast(dtype, value));
        });
      });
}

Outputs ConvertResize(Node& node) {
  TF_ASSIGN_OR_RETURN(const ResizeOptions options, ResizeOptionsOf(node));
  TF_ASSIGN_OR_RETURN(const ResizePlan plan, ResizePlanOf(node, options));
  TF_RETURN_IF_ERROR(node.status());
  const TensorType type = node.Type(0);
  ValueId x = node.Input(0);
  if (Volume(plan.shape, 0, plan.shape.size()) == 0) {
    return OneOutput(node.builder().Constant("resize", {type.dtype, plan.shape},
                                             graph::TensorData()));
  }
  std::vector<Axis> axes;
  for (size_t k = 0; k < plan.axes.size(); ++k) {
    const auto d = static_cast<size_t>(plan.axes[k]);
    const Axis axis{k, type.shape[d], plan.shape[d]};
    // An axis that keeps its size and scale passes through.
    const bool same = axis.from == axis.to && !options.crops() &&
                      !plan.scales.empty() && plan.scales[k] == 1;
    if (!same) axes.push_back(axis);
  }
  if (axes.empty()) return std::vector<Imported>{x};
  if (options.mode == ResizeMode::kNearest) {
    return OneOutput(ResizeNearest(node, options, plan, x, axes));
  }
  if (type.dtype.is_bool()) return node.Invalid("bools have no weights");
  // Single precision does not hold 32-bit integers.
  const bool wide = type.dtype == DataType::Float(64) ||
                    (!type.dtype.is_float() && type.dtype.bits >= 32);
  const DataType compute = DataType::Float(wide ? 64 : 32);
  // The axes that shrink most come first: less is left for the others.
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) {
    return static_cast<double>(a.to) * static_cast<double>(b.from) <
           static_cast<double>(b.to) * static_cast<double>(a.from);
  });
  for (const Axis& axis : axes) {
    TF_ASSIGN_OR_RETURN(x, ResizeAxis(node, options, plan, x, axis, compute));
  }
  if (compute != type.dtype) {
    TF_ASSIGN_OR_RETURN(x, CastResult(node, x, type.dtype));
  }
  return std::vector<Imported>{x};
}

}  // namespace

std::vector<Converter> ResamplingConverters() {
  return {
      {"Resize", ConvertResize},
      {"Upsample", ConvertResize},
  };
}

}  // namespace tilefarm::onnx
