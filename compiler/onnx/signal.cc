// Signal processing: Fourier transforms, windows, the mel filter bank.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "compiler/onnx/node.h"
#include "compiler/onnx/quantize_expr.h"
#include "compiler/onnx/tensor_proto.h"
#include "compiler/te/operators.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;
using ir::Expr;
using ir::IntConst;
using ir::Intrinsic;
using te::ReduceAxis;

constexpr double kPi = std::numbers::pi;

const DataType kDouble = DataType::Float(64);

Expr Double(double value) { return ir::FloatConst(value, kDouble); }
Expr ToDouble(const Expr& x) { return ir::MakeCast(kDouble, x); }

// An integer input of one element: its value if it is constant.
absl::StatusOr<std::optional<int64_t>> ScalarInput(Node& node, int i) {
  const TensorType& type = node.Type(i);
  TF_RETURN_IF_ERROR(node.status());
  if (type.num_elements() != 1 || !type.dtype.is_integral()) {
    return node.Invalid("input ", i, " is ", type.ToString(),
                        ", not one integer");
  }
  if (!node.IsConstant(i)) return std::nullopt;
  TF_ASSIGN_OR_RETURN(const std::vector<int64_t> values, node.ConstInts(i));
  return values[0];
}

Expr ReadScalar(const te::Tensor& tensor) {
  return tensor(te::Indices(tensor.ndim(), IntConst(0)));
}

// --- Fourier transforms --------------------------------------------------

// A discrete Fourier transform along one axis. The last axis holds the real and
// the imaginary part, or the real part only.
struct Transform {
  int axis = 0;
  int64_t length = 0;   // of the transform; if `at` >= 0: no less than that
  int at = -1;          // the input that has the length, if it is not constant
  int64_t samples = 0;  // of the axis that are used; the others are 0
  int64_t bins = 0;     // of the result
  bool inverse = false;
  bool to_real = false;  // inverse, from one half of the spectrum
};

// The matrix that gives the transform of a vector: a product is the form that
// schedules know best, and the transforms of models (spectrograms) are short.
// Computed in float64, because a spectrum has values of very different size.
te::Tensor ApplyTransform(const Transform& t, const te::Tensor& x,
                          const graph::Tensors& in, DataType to) {
  const auto length = [&]() -> Expr {
    if (t.at < 0) return IntConst(t.length);
    return ir::Max(IntConst(1), ir::Min(ir::MakeCast(DataType::Index(),
                                                     ReadScalar(in[t.at])),
                                        IntConst(t.length)));
  };
  // Cosine and sine of the multiples of the smallest angle.
  const te::Tensor circle =
      te::Compute("T_circle", {t.length, 2}, [&](const te::Indices& i) {
        const Expr angle =
            Over(Times(ToDouble(i[0]), Double(2 * kPi)), ToDouble(length()));
        return te::Body(ir::MakeSelect(ir::EQ(i[1], IntConst(0)),
                                       ir::MakeCall(Intrinsic::kCos, {angle}),
                                       ir::MakeCall(Intrinsic::kSin, {angle})));
      });
  const int64_t parts = x.shape().back();
  const int64_t results = t.to_real ? 1 : 2;
  // The factor of part `part` of sample `n` in part `result` of bin `k`.
  const auto factor = [&](const Expr& k, const Expr& result, const Expr& n,
                          const Expr& part) {
    Expr turn = ir::FloorMod(k * n, length());
    if (t.at >= 0) {
      turn = ir::Max(IntConst(0), ir::Min(turn, IntConst(t.length - 1)));
    }
    const Expr cosine = circle({turn, IntConst(0)});
    Expr sine = circle({turn, IntConst(1)});
    const Expr minus = Times(sine, Double(-1));
    // A turn by a negative angle, or by a positive one for the inverse.
    const Expr& real_from_imaginary = t.inverse ? minus : sine;
    const Expr& imaginary_from_real = t.inverse ? sine : minus;
    Expr value = ir::MakeSelect(
        ir::EQ(part, result), cosine,
        ir::MakeSelect(ir::EQ(result, IntConst(0)), real_from_imaginary,
                       imaginary_from_real));
    if (t.at >= 0) {
      value = ir::MakeSelect(ir::LT(n, length()), value, Double(0));
    }
    if (t.inverse) value = Over(value, ToDouble(length()));
    if (t.to_real) {
      // The other half of the spectrum is the conjugate of this one.
      Expr alone = ir::EQ(n, IntConst(0));
      if (t.length % 2 == 0) {
        alone = ir::Or(alone, ir::EQ(n, IntConst(t.length / 2)));
      }
      value = Times(value, ir::MakeSelect(alone, Double(1), Double(2)));
    }
    return value;
  };
  const te::Tensor matrix =
      te::Compute("T_dft_matrix", {t.bins, results, t.samples, parts},
                  [&](const te::Indices& i) {
                    return te::Body(factor(i[0], i[1], i[2], i[3]));
                  });
  std::vector<int64_t> shape = x.shape();
  shape[t.axis] = t.bins;
  shape.back() = results;
  const ReduceAxis n("n", t.samples), part("part", parts);
  // A larger matrix would take too much memory; its elements are then computed
  // where they are used.
  constexpr int64_t kLargestMatrix = int64_t{1} << 24;
  const bool stored =
      static_cast<double>(t.bins) * t.samples * results * parts <=
      static_cast<double>(kLargestMatrix);
  const te::Tensor sum =
      te::Compute("T_dft", shape, [&](const te::Indices& i) -> te::Body {
        if (t.samples == 0) return Double(0);
        te::Indices at = i;
        at[t.axis] = n;
        at.back() = part;
        const Expr weight = stored ? matrix({i[t.axis], i.back(), n, part})
                                   : factor(i[t.axis], i.back(), n, part);
        return te::Sum(Times(ToDouble(x(at)), weight), {n, part});
      });
  return to == kDouble ? sum : te::CastTo(sum, to);
}

constexpr int64_t kLongest = int64_t{1} << 31;

// The transform along `axis`, whose length is `given`, or what the declared
// result (may be null) says where it is known at run time only.
absl::StatusOr<Transform> PlanTransform(Node& node, int axis, bool has_length,
                                        std::optional<int64_t> given,
                                        const std::optional<TensorType>& result,
                                        bool inverse, bool onesided) {
  const int64_t extent = node.Shape(0)[axis];
  Transform t;
  t.axis = axis;
  t.inverse = inverse;
  t.to_real = inverse && onesided;
  if (!has_length) {
    given = t.to_real ? 2 * (extent - 1) : extent;
  }
  if (given.has_value()) {
    t.length = *given;
    t.bins = onesided && !inverse ? t.length / 2 + 1 : t.length;
  } else {
    if (!result.has_value() ||
        result->ndim() != static_cast<int>(node.Shape(0).size())) {
      return node.Unsupported("input 1 (dft_length) is known at run time only");
    }
    t.bins = result->shape[axis];
    t.length = t.bins;
    if (onesided && !inverse) {
      // Two lengths have so many bins.
      t.length = std::min(2 * t.bins, kLongest) - 1;
      t.at = 1;
    }
  }
  if (t.length < 1 || t.length > kLongest || t.bins < 1) {
    return node.Invalid("dft_length=", t.length);
  }
  t.samples = std::min(extent, t.to_real ? t.length / 2 + 1 : t.length);
  return t;
}

Outputs ConvertDft(Node& node) {
  // input, dft_length, axis (an attribute before operator set 20)
  const TensorType x = node.Type(0);
  const bool inverse = node.Int("inverse", 0) != 0;
  const bool onesided = node.Int("onesided", 0) != 0;
  const int rank = x.ndim();
  TF_RETURN_IF_ERROR(node.status());
  if (!x.dtype.is_float() || rank < 2 ||
      (x.shape.back() != 1 && x.shape.back() != 2)) {
    return node.Invalid("input 0 is ", x.ToString());
  }
  std::optional<int64_t> length;
  const bool has_length = node.HasInput(1);
  if (has_length) {
    TF_ASSIGN_OR_RETURN(length, ScalarInput(node, 1));
  }
  std::optional<int64_t> axis;
  if (node.opset() < 20) {
    axis = node.Int("axis", 1);
  } else if (node.HasInput(2)) {
    TF_ASSIGN_OR_RETURN(axis, ScalarInput(node, 2));
  } else {
    axis = -2;
  }
  const std::optional<TensorType> declared = node.DeclaredOutput(0);
  // All axes that are possible.
  std::vector<Transform> transforms;
  if (axis.has_value()) {
    const int64_t own = node.NormalizeAxis(*axis, rank);
    TF_RETURN_IF_ERROR(node.status());
    if (own == rank - 1) return node.Invalid("axis=", *axis);
    TF_ASSIGN_OR_RETURN(const Transform t,
                        PlanTransform(node, static_cast<int>(own), has_length,
                                      length, declared, inverse, onesided));
    transforms.push_back(t);
  } else {
    for (int d = 0; d + 1 < rank && declared.has_value(); ++d) {
      const absl::StatusOr<Transform> t = PlanTransform(
          node, d, has_length, length, declared, inverse, onesided);
      if (!t.ok()) continue;
      std::vector<int64_t> shape = x.shape;
      shape[d] = t->bins;
      shape.back() = t->to_real ? 1 : 2;
      if (shape == declared->shape) transforms.push_back(*t);
    }
    if (transforms.empty()) {
      return node.Unsupported("input 2 (axis) is known at run time only");
    }
  }
  std::vector<ValueId> inputs{node.Input(0)};
  if (transforms[0].at >= 0) inputs.push_back(node.Input(1));
  int axis_at = -1;
  if (transforms.size() > 1) {
    axis_at = static_cast<int>(inputs.size());
    inputs.push_back(node.Input(2));
  }
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          "dft",
          {{"inverse", ir::Attr(inverse)}, {"onesided", ir::Attr(onesided)}},
          inputs, [&](const graph::Tensors& in) {
            graph::Tensors results;
            for (const Transform& t : transforms) {
              results.push_back(ApplyTransform(t, in[0], in, x.dtype));
            }
            if (axis_at < 0) return results[0];
            return te::Compute(
                "T_select", results[0].shape(), [&](const te::Indices& i) {
                  const Expr given =
                      ir::MakeCast(DataType::Index(), ReadScalar(in[axis_at]));
                  Expr value = results.back()(i);
                  for (size_t c = results.size() - 1; c-- > 0;) {
                    const int64_t own = transforms[c].axis;
                    value = ir::IfThenElseExpr(
                        ir::Or(ir::EQ(given, IntConst(own)),
                               ir::EQ(given, IntConst(own - rank))),
                        results[c](i), value);
                  }
                  return te::Body(value);
                });
          }));
  return std::vector<Imported>{y};
}

Outputs ConvertStft(Node& node) {
  // signal, frame_step, window, frame_length
  const TensorType x = node.Type(0);
  const bool onesided = node.Int("onesided", 1) != 0;
  TF_RETURN_IF_ERROR(node.status());
  if (!x.dtype.is_float() || x.ndim() != 3 ||
      (x.shape[2] != 1 && x.shape[2] != 2)) {
    return node.Invalid("input 0 is ", x.ToString());
  }
  if (onesided && x.shape[2] == 2) {
    return node.Invalid("a complex signal has no one-sided transform");
  }
  const int64_t signal_length = x.shape[1];
  if (signal_length == 0) return node.Unsupported("a signal without samples");
  TF_ASSIGN_OR_RETURN(const std::optional<int64_t> step, ScalarInput(node, 1));
  std::optional<int64_t> length;
  if (node.HasInput(3)) {
    TF_ASSIGN_OR_RETURN(length, ScalarInput(node, 3));
  }
  const bool has_window = node.HasInput(2);
  if (has_window) {
    const TensorType& window = node.Type(2);
    if (window.dtype != x.dtype || window.ndim() != 1) {
      return node.Invalid("the window is ", window.ToString());
    }
    if (length.value_or(window.shape[0]) != window.shape[0]) {
      return node.Unsupported("frame_length=", *length, " with a window of ",
                              window.shape[0]);
    }
    length = window.shape[0];
  } else if (!node.HasInput(3)) {
    length = signal_length;
  }
  std::vector<ValueId> inputs{node.Input(0), node.Input(1)};
  if (has_window) inputs.push_back(node.Input(2));
  const std::optional<TensorType> declared = node.DeclaredOutput(0);
  if (!(step.has_value() && length.has_value()) &&
      (!declared.has_value() || declared->ndim() != 4)) {
    return node.Unsupported(
        "frame_step or frame_length is known at run time only");
  }
  Transform t;
  t.axis = 2;
  if (length.has_value()) {
    t.length = *length;
    t.bins = onesided ? t.length / 2 + 1 : t.length;
  } else {
    t.bins = declared->shape[2];
    t.length = onesided ? std::min(2 * t.bins, kLongest) - 1 : t.bins;
    if (onesided) {
      t.at = static_cast<int>(inputs.size());
      inputs.push_back(node.Input(3));
    }
  }
  if (t.length < 1 || t.length > kLongest || t.bins < 1 ||
      step.value_or(1) < 1) {
    return node.Invalid("frame_length=", t.length,
                        ", frame_step=", step.value_or(1));
  }
  t.samples = t.length;
  int64_t frames;
  if (step.has_value() && length.has_value()) {
    if (t.length > signal_length) {
      return node.Invalid("frames of ", t.length, " samples in a signal of ",
                          signal_length);
    }
    frames = (signal_length - t.length) / *step + 1;
  } else {
    frames = declared->shape[1];
  }
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          "stft", {{"onesided", ir::Attr(onesided)}}, inputs,
          [&](const graph::Tensors& in) {
            const te::Tensor framed = te::Compute(
                "T_frames", {x.shape[0], frames, t.samples, x.shape[2]},
                [&](const te::Indices& i) {
                  if (step.has_value() && length.has_value()) {
                    Expr value = in[0]({i[0], i[1] * *step + i[2], i[3]});
                    if (has_window) value = Times(value, in[2]({i[2]}));
                    return te::Body(value);
                  }
                  const Expr place = i[1] * ir::MakeCast(DataType::Index(),
                                                         ReadScalar(in[1])) +
                                     i[2];
                  Expr value = in[0](
                      {i[0],
                       ir::Max(IntConst(0),
                               ir::Min(place, IntConst(signal_length - 1))),
                       i[3]});
                  if (has_window) value = Times(value, in[2]({i[2]}));
                  Expr inside = ir::LT(place, IntConst(signal_length));
                  if (t.at >= 0) {
                    inside = ir::And(
                        inside,
                        ir::LT(i[2], ir::MakeCast(DataType::Index(),
                                                  ReadScalar(in[t.at]))));
                  }
                  return te::Body(
                      ir::MakeSelect(inside, value, ir::ConstOf(x.dtype, 0)));
                });
            return ApplyTransform(t, framed, in, x.dtype);
          }));
  return std::vector<Imported>{y};
}

// --- Windows -------------------------------------------------------------

// The sum of `terms[j]` * cos(2 pi j n / N), where N is the size of a periodic
// window and one less for a symmetric one.
Outputs CosineWindow(Node& node, const std::string& op,
                     const std::vector<double>& terms) {
  TF_ASSIGN_OR_RETURN(const std::optional<int64_t> given, ScalarInput(node, 0));
  const bool periodic = node.Int("periodic", 1) != 0;
  const int64_t to = node.Int("output_datatype", 1);
  const std::optional<DataType> dtype = DtypeOf(static_cast<int>(to));
  const std::optional<TensorType> declared = node.DeclaredOutput(0);
  TF_RETURN_IF_ERROR(node.status());
  if (!dtype.has_value() || dtype->is_bool()) {
    return node.Unsupported("attribute output_datatype=", to);
  }
  if (!given.has_value() && (!declared.has_value() || declared->ndim() != 1)) {
    return node.Unsupported("input 0 (size) is known at run time only");
  }
  const int64_t size = given.has_value() ? *given : declared->shape[0];
  if (size < 0 || size > kLongest) return node.Invalid("size ", size);
  const double period =
      static_cast<double>(std::max<int64_t>(periodic ? size : size - 1, 1));
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          op, {{"periodic", ir::Attr(periodic)}}, {},
          [&](const graph::Tensors&) {
            return te::Compute("T_window", {size}, [&](const te::Indices& i) {
              Expr sum = Double(terms[0]);
              for (size_t j = 1; j < terms.size(); ++j) {
                const Expr angle =
                    Over(Times(ToDouble(i[0]),
                               Double(2 * kPi * static_cast<double>(j))),
                         Double(period));
                sum = Plus(sum, Times(ir::MakeCall(Intrinsic::kCos, {angle}),
                                      Double(terms[j])));
              }
              return te::Body(ir::MakeCast(*dtype, sum));
            });
          }));
  return std::vector<Imported>{y};
}

Outputs ConvertHannWindow(Node& node) {
  return CosineWindow(node, "hann_window", {0.5, -0.5});
}
Outputs ConvertHammingWindow(Node& node) {
  return CosineWindow(node, "hamming_window", {25.0 / 46, -21.0 / 46});
}
Outputs ConvertBlackmanWindow(Node& node) {
  return CosineWindow(node, "blackman_window", {0.42, -0.5, 0.08});
}

// --- MelWeightMatrix -----------------------------------------------------

Outputs ConvertMelWeightMatrix(Node& node) {
  // num_mel_bins, dft_length, sample_rate, lower and upper edge (in hertz)
  std::optional<int64_t> sizes[2];
  for (int i = 0; i < 2; ++i) {
    TF_ASSIGN_OR_RETURN(sizes[i], ScalarInput(node, i));
  }
  TF_RETURN_IF_ERROR(ScalarInput(node, 2).status());
  for (int i = 3; i < 5; ++i) {
    if (node.Type(i).num_elements() != 1 || !node.Dtype(i).is_float()) {
      return node.Invalid("input ", i, " is ", node.Type(i).ToString());
    }
  }
  const int64_t to = node.Int("output_datatype", 1);
  const std::optional<DataType> dtype = DtypeOf(static_cast<int>(to));
  TF_RETURN_IF_ERROR(node.status());
  if (!dtype.has_value() || dtype->is_bool()) {
    return node.Unsupported("attribute output_datatype=", to);
  }
  const std::optional<TensorType> declared = node.DeclaredOutput(0);
  std::vector<int64_t> shape;
  if (sizes[0].has_value() && sizes[1].has_value()) {
    if (*sizes[0] < 0 || *sizes[0] > kLongest || *sizes[1] < 0 ||
        *sizes[1] > kLongest) {
      return node.Invalid("num_mel_bins=", *sizes[0],
                          ", dft_length=", *sizes[1]);
    }
    shape = {*sizes[1] / 2 + 1, *sizes[0]};
  } else if (declared.has_value() && declared->ndim() == 2) {
    shape = declared->shape;
  } else {
    return node.Unsupported(
        "num_mel_bins or dft_length is known at run time only");
  }
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          "mel_weight_matrix", {}, node.Inputs(),
          [&](const graph::Tensors& in) {
            const auto mel = [&](const Expr& hertz) {
              const Expr ratio = Over(ToDouble(hertz), Double(700));
              return Times(
                  ir::MakeCall(Intrinsic::kLog10, {Plus(ratio, Double(1))}),
                  Double(2595));
            };
            // The bins at which the triangles start, peak and end.
            const te::Tensor edges = te::Compute(
                "T_edges", {shape[1] + 2}, [&](const te::Indices& i) {
                  const Expr low = mel(ReadScalar(in[3]));
                  const Expr high = mel(ReadScalar(in[4]));
                  const Expr step =
                      Over(Minus(high, low),
                           Double(static_cast<double>(shape[1] + 2)));
                  const Expr place = Plus(Times(ToDouble(i[0]), step), low);
                  const Expr hertz = Times(
                      Minus(
                          ir::MakeCall(Intrinsic::kPow,
                                       {Double(10), Over(place, Double(2595))}),
                          Double(1)),
                      Double(700));
                  const Expr length =
                      Plus(ToDouble(ReadScalar(in[1])), Double(1));
                  const Expr bin = ir::MakeCall(
                      Intrinsic::kFloor, {Over(Times(length, hertz),
                                               ToDouble(ReadScalar(in[2])))});
                  return te::Body(ir::MakeCast(DataType::Index(), bin));
                });
            return te::Compute(
                "T_mel_weights", shape, [&](const te::Indices& i) {
                  const Expr& bin = i[0];
                  const Expr start = edges({i[1]});
                  const Expr peak = edges({i[1] + 1});
                  const Expr end = edges({i[1] + 2});
                  const auto ratio = [](const Expr& part, const Expr& whole) {
                    return Over(ToDouble(part),
                                ToDouble(ir::Max(whole, IntConst(1))));
                  };
                  const Expr rises =
                      ir::And(ir::GE(bin, start), ir::LT(bin, peak));
                  const Expr falls =
                      ir::And(ir::GT(bin, peak), ir::LT(bin, end));
                  Expr value = ir::MakeSelect(
                      falls, ratio(end - bin, end - peak), Double(0));
                  value = ir::MakeSelect(
                      rises, ratio(bin - start, peak - start), value);
                  value = ir::MakeSelect(ir::EQ(bin, peak), Double(1), value);
                  return te::Body(ir::MakeCast(*dtype, value));
                });
          }));
  return std::vector<Imported>{y};
}

}  // namespace

std::vector<Converter> SignalConverters() {
  return {
      {"BlackmanWindow", ConvertBlackmanWindow},
      {"DFT", ConvertDft},
      {"HammingWindow", ConvertHammingWindow},
      {"HannWindow", ConvertHannWindow},
      {"MelWeightMatrix", ConvertMelWeightMatrix},
      {"STFT", ConvertStft},
  };
}

}  // namespace tilefarm::onnx
