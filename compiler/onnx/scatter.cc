// Operators that write elements at places that depend on data. Updates of one
// place happen in their order in the tensor.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/limits.h"
#include "compiler/onnx/node.h"
#include "compiler/onnx/program_text.h"
#include "compiler/onnx/shapes.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;

// The text of the new value of a place, from its old value and the update.
absl::StatusOr<std::string> Reduced(Node& node, const std::string& old,
                                    const std::string& update) {
  const std::string reduction = node.String("reduction", "none");
  if (reduction == "none") return update;
  if (node.Dtype(0).is_bool()) {
    return node.Unsupported("attribute reduction=", reduction, " of bools");
  }
  if (reduction == "add") return absl::StrCat(old, " + ", update);
  if (reduction == "mul") return absl::StrCat(old, " * ", update);
  if (reduction == "max") return absl::StrCat("T.max(", old, ", ", update, ")");
  if (reduction == "min") return absl::StrCat("T.min(", old, ", ", update, ")");
  return node.Unsupported("attribute reduction=", reduction);
}

// The parameters of a scatter, and the block that copies the data.
ProgramText ScatterProgram(Node& node, const std::string& name) {
  ProgramText program(name);
  program.Parameter("data", node.Type(0));
  program.Parameter("indices", node.Type(1));
  program.Parameter("updates", node.Type(2));
  program.Parameter("result", node.Type(0));
  const std::vector<int64_t> shape = node.Shape(0);
  const std::vector<std::string> at =
      program.Block("copy", shape, std::string(shape.size(), 'S'));
  program.Line(0, Element("result", at), " = ", Element("data", at));
  return program;
}

Outputs CallProgram(Node& node, const std::string& op, ir::AttrMap attrs,
                    const ProgramText& program) {
  TF_ASSIGN_OR_RETURN(
      const std::vector<ValueId> values,
      node.builder().CallText(op, std::move(attrs),
                              {node.Input(0), node.Input(1), node.Input(2)},
                              program.Text()));
  return std::vector<Imported>{values[0]};
}

absl::Status CheckOperands(Node& node) {
  if (node.Dtype(1).is_float() || node.Dtype(1).is_bool()) {
    return node.Invalid("the indices must be integers");
  }
  if (node.Dtype(2) != node.Dtype(0)) {
    return node.Invalid("the updates are ", node.Type(2).ToString(),
                        ", the data is ", node.Type(0).ToString());
  }
  return node.status();
}

Outputs ConvertScatterElements(Node& node) {
  const TensorType data = node.Type(0);
  const TensorType indices = node.Type(1);
  TF_RETURN_IF_ERROR(CheckOperands(node));
  const int64_t axis = node.NormalizeAxis(node.Int("axis", 0), data.ndim());
  TF_RETURN_IF_ERROR(node.status());
  const auto d = static_cast<size_t>(axis);
  bool fits = indices.ndim() == data.ndim() && node.Shape(2) == indices.shape;
  for (size_t k = 0; fits && k < data.shape.size(); ++k) {
    fits = k == d || indices.shape[k] <= data.shape[k];
  }
  if (!fits || (data.num_elements() == 0 && indices.num_elements() != 0)) {
    return node.Invalid("indices ", indices.ToString(), " and updates ",
                        node.Type(2).ToString(), " of ", data.ToString());
  }
  if (indices.num_elements() == 0) return std::vector<Imported>{node.Input(0)};
  ProgramText program = ScatterProgram(node, "scatter_elements");
  // Only places along the axis can coincide.
  std::string kinds(data.shape.size(), 'S');
  kinds[d] = 'O';
  const std::vector<std::string> at =
      program.Block("scatter", indices.shape, kinds);
  std::vector<std::string> place = at;
  place[d] = "place";
  program.Line(
      0, "place = ", IndexText(Element("indices", at), data.shape[d], true));
  TF_ASSIGN_OR_RETURN(
      const std::string value,
      Reduced(node, Element("result", place), Element("updates", at)));
  program.Line(0, Element("result", place), " = ", value);
  return CallProgram(
      node, "scatter_elements",
      {{"axis", axis}, {"reduction", node.String("reduction", "none")}},
      program);
}

Outputs ConvertScatterND(Node& node) {
  const TensorType data = node.Type(0);
  const TensorType indices = node.Type(1);
  TF_RETURN_IF_ERROR(CheckOperands(node));
  if (data.ndim() == 0 || indices.ndim() == 0) {
    return node.Invalid("data or indices have rank 0");
  }
  const int64_t depth = indices.shape.back();
  if (depth < 1 || depth > data.ndim()) {
    return node.Invalid("indices of ", depth, " numbers for a tensor of rank ",
                        data.ndim());
  }
  std::vector<int64_t> shape(indices.shape.begin(), indices.shape.end() - 1);
  const size_t lead = shape.size();
  shape.insert(shape.end(), data.shape.begin() + depth, data.shape.end());
  if (node.Shape(2) != shape) {
    return node.Invalid("the updates are ", node.Type(2).ToString());
  }
  if (node.Type(2).num_elements() == 0) {
    return std::vector<Imported>{node.Input(0)};
  }
  if (data.num_elements() == 0) return node.Invalid("the data is empty");
  if (shape.size() > static_cast<size_t>(ir::Limits().max_dims)) {
    return node.Unsupported("updates of rank ", shape.size());
  }
  ProgramText program = ScatterProgram(node, "scatter_nd");
  std::string kinds(shape.size(), 'S');
  std::fill_n(kinds.begin(), lead, 'O');
  const std::vector<std::string> at = program.Block("scatter", shape, kinds);
  std::vector<std::string> entry(at.begin(),
                                 at.begin() + static_cast<long>(lead));
  std::vector<std::string> place;
  for (int64_t k = 0; k < depth; ++k) {
    entry.push_back(absl::StrCat(k));
    place.push_back(absl::StrCat("place", k));
    program.Line(0, place.back(), " = ",
                 IndexText(Element("indices", entry),
                           data.shape[static_cast<size_t>(k)], true));
    entry.pop_back();
  }
  place.insert(place.end(), at.begin() + static_cast<long>(lead), at.end());
  TF_ASSIGN_OR_RETURN(
      const std::string value,
      Reduced(node, Element("result", place), Element("updates", at)));
  program.Line(0, Element("result", place), " = ", value);
  return CallProgram(node, "scatter_nd",
                     {{"reduction", node.String("reduction", "none")}},
                     program);
}

// The shape before pooling: what a MaxPool with these attributes would shrink
// to the operand's shape.
absl::StatusOr<std::vector<int64_t>> UnpooledShape(Node& node) {
  std::vector<int64_t> shape = node.Shape(0);
  const std::vector<int64_t> kernel = node.Ints("kernel_shape");
  std::vector<int64_t> strides = node.Ints("strides");
  std::vector<int64_t> pads = node.Ints("pads");
  if (shape.size() < 3 || kernel.size() != shape.size() - 2) {
    return node.Invalid("kernel_shape has ", kernel.size(),
                        " dimensions for a tensor of rank ", shape.size());
  }
  if (!node.HasAttr("strides")) strides.assign(kernel.size(), 1);
  if (!node.HasAttr("pads")) pads.assign(2 * kernel.size(), 0);
  if (strides.size() != kernel.size() || pads.size() != 2 * kernel.size()) {
    return node.Invalid("strides or pads differ from kernel_shape in length");
  }
  for (size_t k = 0; k < kernel.size(); ++k) {
    int64_t& extent = shape[k + 2];
    int64_t padding = 0;
    if (__builtin_sub_overflow(extent, 1, &extent) ||
        __builtin_mul_overflow(extent, strides[k], &extent) ||
        __builtin_add_overflow(extent, kernel[k], &extent) ||
        __builtin_add_overflow(pads[k], pads[k + kernel.size()], &padding) ||
        __builtin_sub_overflow(extent, padding, &extent)) {
      return node.Invalid("the result is too large");
    }
  }
  TF_RETURN_IF_ERROR(CheckShape(node, shape));
  return shape;
}

Outputs ConvertMaxUnpool(Node& node) {
  const TensorType type = node.Type(0);
  TF_ASSIGN_OR_RETURN(const std::vector<int64_t> inner, UnpooledShape(node));
  if (node.Dtype(1) != DataType::Int(64) || node.Shape(1) != type.shape) {
    return node.Invalid("the indices are ", node.Type(1).ToString());
  }
  std::vector<int64_t> shape = inner;
  if (node.HasInput(2)) {
    if (node.IsConstant(2)) {
      TF_ASSIGN_OR_RETURN(shape, node.ConstInts(2));
    } else {
      TF_ASSIGN_OR_RETURN(shape, DeclaredShape(node, type.dtype, type.ndim(),
                                               "input 2 (output_shape)"));
    }
  }
  TF_RETURN_IF_ERROR(CheckShape(node, shape));
  bool fits = shape.size() == inner.size();
  for (size_t d = 0; fits && d < shape.size(); ++d) {
    fits = shape[d] >= inner[d];
  }
  if (!fits) return node.Invalid("the output is smaller than what is unpooled");
  if (Volume(inner, 0, inner.size()) == 0 || type.num_elements() == 0) {
    return node.Invalid("there are no elements");
  }
  ProgramText program("max_unpool");
  program.Parameter("x", type);
  program.Parameter("indices", node.Type(1));
  program.Parameter("result", {type.dtype, shape});
  program.Fill("result", shape, ConstText(type.dtype, 0));
  const std::vector<std::string> at =
      program.Block("unpool", type.shape, std::string(type.shape.size(), 'O'));
  program.Line(
      0, "flat = ",
      IndexText(Element("indices", at), Volume(inner, 0, inner.size()), false));
  std::vector<std::string> place;
  for (size_t d = 0; d < inner.size(); ++d) {
    place.push_back(absl::StrCat("flat // ", Volume(inner, d + 1, inner.size()),
                                 " % ", inner[d]));
  }
  program.Line(0, Element("result", place), " = ", Element("x", at));
  TF_ASSIGN_OR_RETURN(
      const std::vector<ValueId> values,
      node.builder().CallText("nn.max_unpool", {},
                              {node.Input(0), node.Input(1)}, program.Text()));
  return std::vector<Imported>{values[0]};
}

}  // namespace

std::vector<Converter> ScatterConverters() {
  return {
      {"MaxUnpool", ConvertMaxUnpool},
      {"Scatter", ConvertScatterElements},
      {"ScatterElements", ConvertScatterElements},
      {"ScatterND", ConvertScatterND},
  };
}

}  // namespace tilefarm::onnx
