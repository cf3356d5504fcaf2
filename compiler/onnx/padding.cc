// Pad and CenterCropPad: elements around a tensor, or less of it.
#include <algorithm>
#include <optional>

#include "base/status_macros.h"
#include "compiler/onnx/node.h"
#include "compiler/onnx/shapes.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;
using ir::Expr;
using ir::IntConst;

enum class PadMode { kConstant, kEdge, kReflect, kWrap };

absl::StatusOr<PadMode> ModeOf(Node& node) {
  const std::string mode = node.String("mode", "constant");
  if (mode == "constant") return PadMode::kConstant;
  if (mode == "edge") return PadMode::kEdge;
  if (mode == "reflect") return PadMode::kReflect;
  if (mode == "wrap") return PadMode::kWrap;
  return node.Unsupported("attribute mode=", mode);
}

// Elements added before and after each dimension; negative ones are removed.
struct Pads {
  std::vector<int64_t> before;
  std::vector<int64_t> after;
};

absl::StatusOr<Pads> PadsOf(Node& node, const std::vector<int64_t>& pads,
                            const std::vector<int64_t>& axes, int rank) {
  if (pads.size() != 2 * axes.size()) {
    return node.Invalid(pads.size(), " pads for ", axes.size(), " dimensions");
  }
  Pads out;
  out.before.resize(static_cast<size_t>(rank));
  out.after.resize(static_cast<size_t>(rank));
  for (size_t k = 0; k < axes.size(); ++k) {
    out.before[static_cast<size_t>(axes[k])] = pads[k];
    out.after[static_cast<size_t>(axes[k])] = pads[k + axes.size()];
  }
  return out;
}

absl::StatusOr<std::vector<int64_t>> PaddedShape(
    Node& node, const std::vector<int64_t>& from, const Pads& pads) {
  std::vector<int64_t> shape = from;
  for (size_t d = 0; d < from.size(); ++d) {
    if (__builtin_add_overflow(shape[d], pads.before[d], &shape[d]) ||
        __builtin_add_overflow(shape[d], pads.after[d], &shape[d]) ||
        pads.before[d] < -from[d] || pads.after[d] < -from[d]) {
      return node.Invalid("pads of ", pads.before[d], " and ", pads.after[d],
                          " for ", from[d], " elements");
    }
  }
  TF_RETURN_IF_ERROR(CheckShape(node, shape));
  return shape;
}

// Where element `place` (from the first one of the operand) of a padded
// dimension of `extent` elements comes from, other than with constants.
Expr SourceOf(PadMode mode, const Expr& place, int64_t extent) {
  switch (mode) {
    case PadMode::kReflect: {
      if (extent == 1) return IntConst(0);
      const int64_t period = 2 * (extent - 1);
      const Expr phase = ir::FloorMod(place, IntConst(period));
      // The clamp shows that the place is in bounds.
      return ClampIndex(ir::Min(phase, IntConst(period) - phase), extent);
    }
    case PadMode::kWrap:
      return ir::FloorMod(place, IntConst(extent));
    case PadMode::kEdge:
    case PadMode::kConstant:
      break;
  }
  return ClampIndex(place, extent);
}

// The constant of the padding: a number, or a load of the last input.
struct Fill {
  std::optional<double> number;
  std::optional<int64_t> integer;
  bool loaded = false;

  Expr At(const graph::Tensors& in, DataType dtype) const {
    if (loaded) return ScalarOf(in.back());
    if (integer.has_value()) return IntConst(*integer, dtype);
    return dtype.is_float() ? ir::FloatConst(number.value_or(0), dtype)
                            : IntConst(0, dtype);
  }
};

absl::StatusOr<Fill> FillOf(Node& node, std::vector<ValueId>& inputs) {
  Fill fill;
  const DataType dtype = node.Dtype(0);
  if (node.opset() < 11) {
    if (!dtype.is_float()) return node.Unsupported("padding of integers");
    fill.number = node.Float("value", 0);
    return fill;
  }
  if (!node.HasInput(2)) return fill;
  if (node.Type(2).num_elements() != 1 || node.Dtype(2) != dtype ||
      node.Rank(2) > 1) {
    return node.Invalid("the constant is ", node.Type(2).ToString());
  }
  if (node.IsConstant(2)) {
    if (dtype.is_float()) {
      TF_ASSIGN_OR_RETURN(const std::vector<double> value,
                          node.ConstDoubles(2));
      fill.number = value[0];
    } else {
      TF_ASSIGN_OR_RETURN(const std::vector<int64_t> value, node.ConstInts(2));
      fill.integer = value[0];
    }
    return fill;
  }
  fill.loaded = true;
  inputs.push_back(node.Input(2));
  return fill;
}

// Element `i` of the padded tensor. `origin[d]` is the place of the operand's
// first element.
Expr PaddedElement(PadMode mode, const te::Tensor& x, const te::Indices& i,
                   const te::Indices& origin, const Expr& fill,
                   const std::vector<int64_t>& shape) {
  te::Indices at;
  Expr inside = ir::BoolConst(true);
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t extent = x.shape()[d];
    const std::optional<int64_t> before = ir::AsInt(origin[d]);
    const Expr place = i[d] - origin[d];
    const bool low = !before.has_value() || *before > 0;
    const bool high = !before.has_value() || shape[d] - *before > extent;
    if (mode != PadMode::kConstant) {
      at.push_back(low || high ? SourceOf(mode, place, extent) : place);
      continue;
    }
    at.push_back(before.has_value() ? place : ClampIndex(place, extent));
    if (low) inside = ir::And(inside, ir::LE(origin[d], i[d]));
    if (high) inside = ir::And(inside, ir::LT(i[d], origin[d] + extent));
  }
  if (ir::IsConstInt(inside, 1)) return x(at);
  return ir::IfThenElseExpr(inside, x(at), fill);
}

Outputs PadStatic(Node& node, PadMode mode, const Pads& pads) {
  const TensorType type = node.Type(0);
  TF_ASSIGN_OR_RETURN(const std::vector<int64_t> shape,
                      PaddedShape(node, type.shape, pads));
  for (size_t d = 0; d < shape.size(); ++d) {
    if ((mode == PadMode::kReflect || mode == PadMode::kWrap) &&
        (pads.before[d] < 0 || pads.after[d] < 0)) {
      return node.Unsupported("negative pads with this mode");
    }
    if (mode == PadMode::kEdge && ((pads.before[d] < 0 && pads.after[d] > 0 &&
                                    shape[d] <= pads.after[d]) ||
                                   (pads.after[d] < 0 && pads.before[d] > 0 &&
                                    shape[d] <= pads.before[d]))) {
      return node.Invalid("dimension ", d, " has no edge left");
    }
    if (mode != PadMode::kConstant && type.shape[d] == 0 && shape[d] != 0) {
      return node.Invalid("dimension ", d, " has no elements to repeat");
    }
  }
  if (shape == type.shape &&
      std::all_of(pads.before.begin(), pads.before.end(),
                  [](int64_t pad) { return pad == 0; })) {
    return std::vector<Imported>{node.Input(0)};
  }
  std::vector<ValueId> inputs{node.Input(0)};
  TF_ASSIGN_OR_RETURN(const Fill fill, FillOf(node, inputs));
  const bool nothing = type.num_elements() == 0;
  return OneOutput(node.builder().Compute(
      "nn.pad",
      {{"pad_before", ListOf(pads.before)},
       {"pad_after", ListOf(pads.after)},
       {"pad_mode", node.String("mode", "constant")}},
      inputs, [&](const graph::Tensors& in) {
        return te::Compute("T_pad", shape, [&](const te::Indices& i) {
          const Expr value = fill.At(in, type.dtype);
          if (nothing) return te::Body(value);
          te::Indices origin;
          for (const int64_t before : pads.before) {
            origin.push_back(IntConst(before));
          }
          return te::Body(PaddedElement(mode, in[0], i, origin, value, shape));
        });
      }));
}

// The declared shape stands for the pads after; those before are loaded.
Outputs PadDynamic(Node& node, PadMode mode) {
  const TensorType type = node.Type(0);
  TF_ASSIGN_OR_RETURN(
      const std::vector<int64_t> shape,
      DeclaredShape(node, type.dtype, type.ndim(), "input 1 (pads)"));
  std::vector<ValueId> inputs{node.Input(0)};
  TF_ASSIGN_OR_RETURN(const IntInput pads, IntInput::Read(node, 1, inputs));
  std::vector<int64_t> all(static_cast<size_t>(type.ndim()));
  for (size_t d = 0; d < all.size(); ++d) all[d] = static_cast<int64_t>(d);
  IntInput axes(all);
  if (node.HasInput(3)) {
    TF_ASSIGN_OR_RETURN(axes, IntInput::Read(node, 3, inputs));
  }
  if (axes.size() > type.ndim() || pads.size() != 2 * axes.size()) {
    return node.Invalid(pads.size(), " pads for ", axes.size(), " dimensions");
  }
  TF_ASSIGN_OR_RETURN(const Fill fill, FillOf(node, inputs));
  const bool nothing = type.num_elements() == 0;
  if (nothing && mode != PadMode::kConstant) {
    return node.Invalid("there are no elements to repeat");
  }
  return OneOutput(node.builder().Compute(
      "nn.dynamic_pad", {}, inputs, [&](const graph::Tensors& in) {
        return te::Compute("T_pad", shape, [&](const te::Indices& i) {
          const Expr value = fill.At(in, type.dtype);
          if (nothing) return te::Body(value);
          te::Indices origin;
          for (int64_t d = 0; d < type.ndim(); ++d) {
            Expr before = IntConst(0);
            for (int64_t k = 0; k < axes.size(); ++k) {
              const Expr axis = axes.At(in, k);
              const Expr here = ir::Or(ir::EQ(axis, IntConst(d)),
                                       ir::EQ(axis, IntConst(d - type.ndim())));
              before = Choose(here, pads.At(in, k), before);
            }
            origin.push_back(before);
          }
          return te::Body(PaddedElement(mode, in[0], i, origin, value, shape));
        });
      }));
}

Outputs ConvertPad(Node& node) {
  TF_ASSIGN_OR_RETURN(const PadMode mode, ModeOf(node));
  const int rank = node.Rank(0);
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  for (size_t d = 0; d < axes.size(); ++d) axes[d] = static_cast<int64_t>(d);
  if (node.opset() < 11) {
    TF_ASSIGN_OR_RETURN(const Pads pads,
                        PadsOf(node, node.Ints("pads"), axes, rank));
    return PadStatic(node, mode, pads);
  }
  const bool constant =
      node.IsConstant(1) && (!node.HasInput(3) || node.IsConstant(3));
  TF_RETURN_IF_ERROR(node.status());
  if (!constant) return PadDynamic(node, mode);
  if (node.HasInput(3)) {
    TF_ASSIGN_OR_RETURN(axes, node.ConstInts(3));
    TF_ASSIGN_OR_RETURN(axes, NormalizeAxes(node, axes, rank));
  }
  TF_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, node.ConstInts(1));
  TF_ASSIGN_OR_RETURN(const Pads pads, PadsOf(node, numbers, axes, rank));
  return PadStatic(node, mode, pads);
}

Outputs ConvertCenterCropPad(Node& node) {
  const TensorType type = node.Type(0);
  std::vector<int64_t> shape = type.shape;
  if (node.Rank(1) != 1) return node.Invalid("the shape is no list");
  std::vector<int64_t> axes = node.Ints("axes");
  if (node.IsConstant(1)) {
    TF_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, node.ConstInts(1));
    if (!node.HasAttr("axes")) {
      for (int d = 0; d < type.ndim(); ++d) axes.push_back(d);
    }
    TF_ASSIGN_OR_RETURN(axes, NormalizeAxes(node, axes, type.ndim()));
    if (axes.size() != sizes.size()) {
      return node.Invalid(sizes.size(), " sizes for ", axes.size(), " axes");
    }
    for (size_t k = 0; k < axes.size(); ++k) {
      shape[static_cast<size_t>(axes[k])] = sizes[k];
    }
    TF_RETURN_IF_ERROR(CheckShape(node, shape));
  } else {
    TF_ASSIGN_OR_RETURN(
        shape, DeclaredShape(node, type.dtype, type.ndim(), "input 1 (shape)"));
  }
  Pads pads;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t more = shape[d] - type.shape[d];
    // The odd element is cut, or added, at the end.
    const int64_t before = more / 2;
    pads.before.push_back(before);
    pads.after.push_back(more - before);
  }
  if (type.num_elements() == 0) {
    return node.Unsupported("an input without elements");
  }
  return OneOutput(node.builder().Compute(
      "nn.pad",
      {{"pad_before", ListOf(pads.before)},
       {"pad_after", ListOf(pads.after)},
       {"pad_mode", "constant"}},
      {node.Input(0)}, [&](const graph::Tensors& in) {
        return te::Compute("T_pad", shape, [&](const te::Indices& i) {
          te::Indices origin;
          for (const int64_t before : pads.before) {
            origin.push_back(IntConst(before));
          }
          return te::Body(PaddedElement(PadMode::kConstant, in[0], i, origin,
                                        ir::ConstOf(type.dtype, 0), shape));
        });
      }));
}

}  // namespace

std::vector<Converter> PaddingConverters() {
  return {
      {"CenterCropPad", ConvertCenterCropPad},
      {"Pad", ConvertPad},
  };
}

}  // namespace tilefarm::onnx
