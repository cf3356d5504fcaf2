// Operators that join, cut and pad tensors along their dimensions.
#include <algorithm>
#include <limits>

#include "base/status_macros.h"
#include "compiler/onnx/joins.h"
#include "compiler/onnx/node.h"
#include "compiler/onnx/shapes.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;
using ir::Expr;
using ir::IntConst;

// The element at `i` of tensors [begin, end) of `in` joined along `axis`, where
// tensor `k` starts at `starts[k]`. Halving keeps the expression shallow.
Expr ElementOfJoined(const graph::Tensors& in,
                     const std::vector<int64_t>& starts, size_t axis,
                     const te::Indices& i, size_t begin, size_t end) {
  if (end - begin == 1) {
    te::Indices at = i;
    at[axis] = i[axis] - starts[begin];
    return in[begin](at);
  }
  const size_t middle = (begin + end) / 2;
  return ir::IfThenElseExpr(ir::LT(i[axis], IntConst(starts[middle])),
                            ElementOfJoined(in, starts, axis, i, begin, middle),
                            ElementOfJoined(in, starts, axis, i, middle, end));
}

Outputs ConvertConcat(Node& node) {
  if (node.num_inputs() == 0) return node.Invalid("has no inputs");
  const TensorType first = node.Type(0);
  const int64_t axis = node.NormalizeAxis(node.Int("axis", 0), first.ndim());
  if (!node.HasAttr("axis")) return node.Invalid("has no axis");
  TF_RETURN_IF_ERROR(node.status());
  const auto d = static_cast<size_t>(axis);
  std::vector<int64_t> shape = first.shape;
  shape[d] = 0;
  std::vector<ValueId> inputs;
  std::vector<int64_t> starts;
  for (int k = 0; k < node.num_inputs(); ++k) {
    const TensorType type = node.Type(k);
    TF_RETURN_IF_ERROR(node.status());
    std::vector<int64_t> expected = first.shape;
    if (type.ndim() == first.ndim()) expected[d] = type.shape[d];
    if (type.dtype != first.dtype || type.shape != expected) {
      return node.Invalid("input ", k, " is ", type.ToString(),
                          ", the first one is ", first.ToString());
    }
    if (type.shape[d] == 0) continue;
    inputs.push_back(node.Input(k));
    starts.push_back(shape[d]);
    if (__builtin_add_overflow(shape[d], type.shape[d], &shape[d])) {
      return node.Invalid("the result is too large");
    }
  }
  TF_RETURN_IF_ERROR(CheckShape(node, shape));
  if (inputs.empty()) inputs.push_back(node.Input(0));
  if (inputs.size() == 1) return std::vector<Imported>{inputs[0]};
  return OneOutput(node.builder().Compute(
      "concat", {{"axis", axis}}, inputs, [&](const graph::Tensors& in) {
        return te::Compute("T_concat", shape, [&](const te::Indices& i) {
          return te::Body(ElementOfJoined(in, starts, d, i, 0, in.size()));
        });
      }));
}

// The sizes of the parts, from the attribute (before operator set 13), input 1,
// the attribute num_outputs, or the number of outputs.
absl::StatusOr<std::vector<int64_t>> PartsOf(Node& node, int64_t extent,
                                             size_t axis) {
  const int64_t outputs = node.num_outputs();
  if (node.HasAttr("split")) return node.Ints("split");
  if (node.HasInput(1)) {
    if (node.IsConstant(1)) return node.ConstInts(1);
    std::vector<int64_t> parts;
    for (int k = 0; k < outputs; ++k) {
      const std::optional<TensorType> declared = node.DeclaredOutput(k);
      if (!declared.has_value()) {
        return node.Unsupported("input 1 (split) is known at run time only");
      }
      if (declared->shape.size() <= axis) {
        return node.Invalid("output ", k, " is declared as ",
                            declared->ToString());
      }
      parts.push_back(declared->shape[axis]);
    }
    return parts;
  }
  const int64_t count = node.Int("num_outputs", outputs);
  if (count < 1 || count > outputs) {
    return node.Invalid("num_outputs is ", count, " for ", outputs, " outputs");
  }
  if (!node.HasAttr("num_outputs") && extent % count != 0) {
    return node.Invalid(extent, " elements do not split into ", count,
                        " equal parts");
  }
  const int64_t part = extent / count + (extent % count != 0 ? 1 : 0);
  std::vector<int64_t> parts(static_cast<size_t>(count), part);
  // The last part is smaller if need be.
  parts.back() = extent - part * (count - 1);
  return parts;
}

Outputs ConvertSplit(Node& node) {
  node.Ignore("num_outputs");  // where the parts are given as well
  const TensorType type = node.Type(0);
  const int64_t axis = node.NormalizeAxis(node.Int("axis", 0), type.ndim());
  TF_RETURN_IF_ERROR(node.status());
  const auto d = static_cast<size_t>(axis);
  TF_ASSIGN_OR_RETURN(const std::vector<int64_t> parts,
                      PartsOf(node, type.shape[d], d));
  int64_t left = type.shape[d];
  for (const int64_t part : parts) {
    if (part < 0 || part > left) {
      return node.Invalid("the parts do not fit ", type.shape[d], " elements");
    }
    left -= part;
  }
  if (left != 0) {
    return node.Invalid(left, " of ", type.shape[d],
                        " elements are in no part");
  }
  // A slice each: readers may read the input instead, or do without a part.
  std::vector<Imported> results;
  int64_t start = 0;
  for (const int64_t part : parts) {
    TF_ASSIGN_OR_RETURN(
        const ValueId slice,
        SliceAt(node.builder(), node.Input(0), axis, start, part));
    results.push_back(slice);
    start += part;
  }
  return results;
}

// One dimension of a slice whose bounds are known: its first element, the step
// and the number of elements.
struct SliceRange {
  int64_t start = 0;
  int64_t step = 1;
  int64_t count = 0;
};

// The bounds as NumPy reads them: negative ones count from the end, all are
// clamped to the dimension.
SliceRange RangeOf(int64_t start, int64_t end, int64_t step, int64_t extent) {
  const int64_t low = step < 0 ? -1 : 0;
  const int64_t high = step < 0 ? extent - 1 : extent;
  if (start < 0) start += extent;
  // INT64_MIN means before the first element, not minus that from the end.
  if (end < 0) end = end < -extent ? -1 : end + extent;
  start = std::clamp(start, std::min(low + (step < 0 ? 1 : 0), high), high);
  end = std::clamp(end, low, high);
  SliceRange range{start, step, 0};
  if (step > 0 && end > start) range.count = (end - start - 1) / step + 1;
  if (step < 0 && start > end) {
    // -(step + 1) avoids the overflow of -INT64_MIN.
    const int64_t distance = start - end - 1;
    range.count =
        step == std::numeric_limits<int64_t>::min() ? 1 : distance / -step + 1;
  }
  return range;
}

Outputs SliceStatic(Node& node, const std::vector<SliceRange>& ranges) {
  const TensorType type = node.Type(0);
  std::vector<int64_t> shape, starts, steps;
  bool whole = true;
  for (size_t d = 0; d < ranges.size(); ++d) {
    shape.push_back(ranges[d].count);
    starts.push_back(ranges[d].start);
    // The step does not matter for a single element.
    steps.push_back(ranges[d].count > 1 ? ranges[d].step : 1);
    whole &= ranges[d].count == type.shape[d] && steps[d] == 1;
  }
  if (whole) return std::vector<Imported>{node.Input(0)};
  return OneOutput(node.builder().Compute(
      "strided_slice", {{"begin", ListOf(starts)}, {"strides", ListOf(steps)}},
      {node.Input(0)}, [&](const graph::Tensors& in) {
        return te::Compute("T_strided_slice", shape, [&](const te::Indices& i) {
          te::Indices at;
          for (size_t d = 0; d < shape.size(); ++d) {
            at.push_back(shape[d] == 1 ? IntConst(starts[d])
                                       : i[d] * steps[d] + starts[d]);
          }
          return te::Body(in[0](at));
        });
      }));
}

// The declared shape stands for the ends; starts, axes and steps are loaded.
Outputs SliceDynamic(Node& node) {
  const TensorType type = node.Type(0);
  TF_ASSIGN_OR_RETURN(
      const std::vector<int64_t> shape,
      DeclaredShape(node, type.dtype, type.ndim(), "the slice"));
  std::vector<ValueId> inputs{node.Input(0)};
  TF_ASSIGN_OR_RETURN(const IntInput starts, IntInput::Read(node, 1, inputs));
  std::vector<int64_t> defaults(static_cast<size_t>(starts.size()));
  for (size_t k = 0; k < defaults.size(); ++k) {
    defaults[k] = static_cast<int64_t>(k);
  }
  IntInput axes(defaults);
  IntInput steps(std::vector<int64_t>(defaults.size(), 1));
  if (node.HasInput(3)) {
    TF_ASSIGN_OR_RETURN(axes, IntInput::Read(node, 3, inputs));
  }
  if (node.HasInput(4)) {
    TF_ASSIGN_OR_RETURN(steps, IntInput::Read(node, 4, inputs));
  }
  const int64_t count = starts.size();
  if (count > type.ndim() || axes.size() != count || steps.size() != count) {
    return node.Invalid("starts, axes and steps differ in length");
  }
  if (type.num_elements() == 0 && Volume(shape, 0, shape.size()) != 0) {
    return node.Invalid("a slice of nothing has no elements");
  }
  return OneOutput(node.builder().Compute(
      "dynamic_strided_slice", {}, inputs, [&](const graph::Tensors& in) {
        return te::Compute(
            "T_dynamic_strided_slice", shape, [&](const te::Indices& i) {
              te::Indices at;
              for (int64_t d = 0; d < type.ndim(); ++d) {
                const int64_t extent = type.shape[static_cast<size_t>(d)];
                Expr start = IntConst(0);
                Expr step = IntConst(1);
                for (int64_t k = 0; k < count; ++k) {
                  const Expr axis = axes.At(in, k);
                  const Expr here =
                      ir::Or(ir::EQ(axis, IntConst(d)),
                             ir::EQ(axis, IntConst(d - type.ndim())));
                  step = Choose(here, steps.At(in, k), step);
                  start =
                      Choose(here, WrapIndex(starts.At(in, k), extent), start);
                }
                const Expr place = i[static_cast<size_t>(d)];
                at.push_back(ClampIndex(start + place * step, extent));
              }
              return te::Body(in[0](at));
            });
      }));
}

Outputs ConvertSlice(Node& node) {
  const TensorType type = node.Type(0);
  std::vector<int64_t> starts, ends, axes, steps;
  const bool attributes = node.opset() < 10;
  if (attributes) {
    starts = node.Ints("starts");
    ends = node.Ints("ends");
    axes = node.Ints("axes");
  } else {
    bool constant = true;
    for (int i = 1; i < 5; ++i) {
      constant &= (i > 2 && !node.HasInput(i)) || node.IsConstant(i);
    }
    TF_RETURN_IF_ERROR(node.status());
    if (!constant) return SliceDynamic(node);
    TF_ASSIGN_OR_RETURN(starts, node.ConstInts(1));
    TF_ASSIGN_OR_RETURN(ends, node.ConstInts(2));
    if (node.HasInput(3)) {
      TF_ASSIGN_OR_RETURN(axes, node.ConstInts(3));
    }
    if (node.HasInput(4)) {
      TF_ASSIGN_OR_RETURN(steps, node.ConstInts(4));
    }
  }
  if (attributes ? !node.HasAttr("axes") : !node.HasInput(3)) {
    for (size_t k = 0; k < starts.size(); ++k) {
      axes.push_back(static_cast<int64_t>(k));
    }
  }
  if (attributes || !node.HasInput(4)) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    return node.Invalid("starts, ends, axes and steps differ in length");
  }
  TF_ASSIGN_OR_RETURN(axes, NormalizeAxes(node, axes, type.ndim()));
  std::vector<SliceRange> ranges;
  for (const int64_t extent : type.shape) ranges.push_back({0, 1, extent});
  for (size_t k = 0; k < axes.size(); ++k) {
    if (steps[k] == 0) return node.Invalid("the step of axis ", k, " is 0");
    const auto d = static_cast<size_t>(axes[k]);
    ranges[d] = RangeOf(starts[k], ends[k], steps[k], type.shape[d]);
  }
  return SliceStatic(node, ranges);
}

}  // namespace

std::vector<Converter> SlicingConverters() {
  return {
      {"Concat", ConvertConcat},
      {"Slice", ConvertSlice},
      {"Split", ConvertSplit},
  };
}

}  // namespace tilefarm::onnx
