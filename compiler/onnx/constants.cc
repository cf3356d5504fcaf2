// Operators that make tensors from few numbers.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "base/status_macros.h"
#include "compiler/ir/limits.h"
#include "compiler/onnx/node.h"
#include "compiler/onnx/scope.h"
#include "compiler/onnx/shapes.h"
#include "compiler/onnx/tensor_proto.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;
using ir::Expr;
using ir::IntConst;

// The element type of the attribute `name`, by TensorProto's number.
absl::StatusOr<DataType> DtypeAttr(Node& node, std::string_view name,
                                   DataType absent) {
  if (!node.HasAttr(name)) return absent;
  const auto number = static_cast<int>(node.Int(name, 0));
  const std::optional<DataType> dtype = DtypeOf(number);
  if (!dtype.has_value()) {
    return node.Unsupported("element type ", OnnxTypeName(number));
  }
  return *dtype;
}

// A sparse tensor as a dense one: values at linear positions or at index
// tuples.
absl::StatusOr<TensorContents> ReadSparse(Node& node,
                                          const pb::SparseTensorProto& proto) {
  ExternalData& external = node.scope().context().external;
  TF_ASSIGN_OR_RETURN(const TensorContents values,
                      ReadTensor(proto.values(), external));
  TF_ASSIGN_OR_RETURN(const TensorContents indices,
                      ReadTensor(proto.indices(), external));
  std::vector<int64_t> shape(proto.dims().begin(), proto.dims().end());
  TF_RETURN_IF_ERROR(CheckShape(node, shape));
  const TensorType type{values.type.dtype, shape};
  if (type.num_bytes() > ir::Limits().max_buffer_bytes) {
    return node.Invalid("the constant is too large");
  }
  const int64_t count = values.type.num_elements();
  const bool linear = indices.type.ndim() == 1;
  const auto rank = static_cast<int64_t>(shape.size());
  const std::vector<int64_t> expected =
      linear ? std::vector<int64_t>{count} : std::vector<int64_t>{count, rank};
  if (values.type.ndim() != 1 || indices.type.dtype != DataType::Int(64) ||
      indices.type.shape != expected) {
    return node.Invalid("malformed sparse tensor");
  }
  const auto element = static_cast<size_t>(type.dtype.bytes());
  std::vector<std::byte> bytes(static_cast<size_t>(type.num_bytes()));
  for (int64_t k = 0; k < count; ++k) {
    int64_t position = 0;
    for (int64_t d = 0; d < (linear ? 1 : rank); ++d) {
      int64_t index = 0;
      std::memcpy(&index,
                  indices.data.bytes().data() +
                      (k * (linear ? 1 : rank) + d) * int64_t{sizeof(int64_t)},
                  sizeof(index));
      const int64_t extent =
          linear ? type.num_elements() : shape[static_cast<size_t>(d)];
      if (index < 0 || index >= extent) {
        return node.Invalid("index ", index, " of a sparse tensor");
      }
      position = position * extent + index;
    }
    std::memcpy(bytes.data() + static_cast<size_t>(position) * element,
                values.data.bytes().data() + static_cast<size_t>(k) * element,
                element);
  }
  return TensorContents{type, graph::TensorData(std::move(bytes))};
}

Outputs ConvertConstant(Node& node) {
  GraphBuilder& builder = node.builder();
  const std::string name =
      node.num_outputs() > 0 ? node.proto().output(0) : "constant";
  const auto make = [&](const TensorContents& contents) -> Outputs {
    return std::vector<Imported>{
        builder.Constant(name, contents.type, contents.data)};
  };
  if (const pb::TensorProto* value = node.Tensor("value")) {
    TF_ASSIGN_OR_RETURN(const TensorContents contents,
                        ReadTensor(*value, node.scope().context().external));
    return make(contents);
  }
  for (const auto& attribute : node.proto().attribute()) {
    if (attribute.name() != "sparse_value") continue;
    TF_ASSIGN_OR_RETURN(const TensorContents contents,
                        ReadSparse(node, attribute.sparse_tensor()));
    return make(contents);
  }
  if (node.HasAttr("value_int")) {
    return std::vector<Imported>{
        builder.Constant(name, {DataType::Int(64), {}},
                         std::vector<int64_t>{node.Int("value_int", 0)})};
  }
  if (node.HasAttr("value_ints")) {
    return std::vector<Imported>{builder.Int64s(name, node.Ints("value_ints"))};
  }
  if (node.HasAttr("value_float") || node.HasAttr("value_floats")) {
    const bool scalar = node.HasAttr("value_float");
    std::vector<float> values;
    if (scalar) {
      values = {static_cast<float>(node.Float("value_float", 0))};
    } else {
      for (const double value : node.Floats("value_floats")) {
        values.push_back(static_cast<float>(value));
      }
    }
    std::vector<int64_t> shape;
    if (!scalar) shape.push_back(static_cast<int64_t>(values.size()));
    return std::vector<Imported>{
        builder.Constant(name, {DataType::Float(32), shape}, values)};
  }
  if (node.HasAttr("value_string") || node.HasAttr("value_strings")) {
    return node.Unsupported("strings");
  }
  return node.Invalid("the constant has no value");
}

Outputs ConvertConstantOfShape(Node& node) {
  TensorContents fill{{DataType::Float(32), {1}},
                      graph::TensorData(std::vector<std::byte>(4))};
  if (const pb::TensorProto* value = node.Tensor("value")) {
    TF_ASSIGN_OR_RETURN(fill,
                        ReadTensor(*value, node.scope().context().external));
    if (fill.type.num_elements() != 1) {
      return node.Invalid("the value has ", fill.type.num_elements(),
                          " elements");
    }
  }
  if (node.Rank(0) != 1) return node.Invalid("the shape is no list");
  std::vector<int64_t> shape;
  if (node.IsConstant(0)) {
    TF_ASSIGN_OR_RETURN(shape, node.ConstInts(0));
  } else {
    TF_ASSIGN_OR_RETURN(shape, DeclaredShape(node, fill.type.dtype,
                                             static_cast<int>(node.Shape(0)[0]),
                                             "input 0 (shape)"));
  }
  TF_RETURN_IF_ERROR(CheckShape(node, shape));
  const ValueId value =
      node.builder().Constant("fill", {fill.type.dtype, {}}, fill.data);
  return OneOutput(node.builder().Compute(
      "full", {{"shape", ListOf(shape)}}, {value},
      [&](const graph::Tensors& in) {
        return te::Compute("T_full", shape, [&](const te::Indices&) {
          return te::Body(in[0]({}));
        });
      }));
}

// The number of elements from `start` to before `limit`.
absl::StatusOr<int64_t> RangeLength(Node& node) {
  if (!node.Dtype(0).is_float()) {
    std::vector<int64_t> bounds;
    for (int i = 0; i < 3; ++i) {
      TF_ASSIGN_OR_RETURN(const std::vector<int64_t> value, node.ConstInts(i));
      bounds.push_back(value[0]);
    }
    if (bounds[2] == 0) return node.Invalid("the step is 0");
    int64_t distance = 0;
    if (__builtin_sub_overflow(bounds[1], bounds[0], &distance) ||
        bounds[2] == std::numeric_limits<int64_t>::min()) {
      return node.Invalid("the range is too long");
    }
    const int64_t step = bounds[2];
    if (distance == 0 || (distance < 0) != (step < 0)) return 0;
    return distance / step + (distance % step != 0 ? 1 : 0);
  }
  std::vector<double> bounds;
  for (int i = 0; i < 3; ++i) {
    TF_ASSIGN_OR_RETURN(const std::vector<double> value, node.ConstDoubles(i));
    bounds.push_back(value[0]);
  }
  if (bounds[2] == 0) return node.Invalid("the step is 0");
  const double length = std::ceil((bounds[1] - bounds[0]) / bounds[2]);
  if (length <= 0) return 0;
  if (!(length < 1e15)) return node.Invalid("the range is too long");
  return static_cast<int64_t>(length);
}

Outputs ConvertRange(Node& node) {
  node.Ignore("stash_type");  // elements are computed one by one, not summed
  const DataType dtype = node.Dtype(0);
  bool constant = true;
  for (int i = 0; i < 3; ++i) {
    constant &= node.IsConstant(i);
    if (node.Dtype(i) != dtype || node.Type(i).num_elements() != 1 ||
        node.Rank(i) > 1) {
      return node.Invalid("input ", i, " is ", node.Type(i).ToString());
    }
  }
  TF_RETURN_IF_ERROR(node.status());
  if (dtype.is_bool()) return node.Invalid("a range of bools");
  std::vector<int64_t> shape;
  if (constant) {
    TF_ASSIGN_OR_RETURN(const int64_t length, RangeLength(node));
    shape = {length};
  } else {
    TF_ASSIGN_OR_RETURN(shape, DeclaredShape(node, dtype, 1, "the range"));
  }
  TF_RETURN_IF_ERROR(CheckShape(node, shape));
  // 16-bit floats would round every step.
  const DataType compute =
      dtype.is_float() && dtype.bits == 16 ? DataType::Float(32) : dtype;
  return OneOutput(node.builder().Compute(
      "arange", {}, {node.Input(0), node.Input(2)},
      [&](const graph::Tensors& in) {
        return te::Compute("T_arange", shape, [&](const te::Indices& i) {
          const Expr start = ir::MakeCast(compute, ScalarOf(in[0]));
          const Expr delta = ir::MakeCast(compute, ScalarOf(in[1]));
          return te::Body(
              ir::MakeCast(dtype, start + ir::MakeCast(compute, i[0]) * delta));
        });
      }));
}

Outputs ConvertEyeLike(Node& node) {
  const std::vector<int64_t> shape = node.Shape(0);
  if (shape.size() != 2) return node.Invalid("the input is no matrix");
  TF_ASSIGN_OR_RETURN(const DataType dtype,
                      DtypeAttr(node, "dtype", node.Dtype(0)));
  const int64_t k = std::clamp(node.Int("k", 0), -shape[0], shape[1]);
  return OneOutput(
      node.builder().Compute("eye", {{"k", k}}, {}, [&](const graph::Tensors&) {
        return te::Compute("T_eye", shape, [&](const te::Indices& i) {
          return te::Body(ir::MakeCast(dtype, ir::EQ(i[1], i[0] + k)));
        });
      }));
}

Outputs ConvertOneHot(Node& node) {
  std::vector<int64_t> shape = node.Shape(0);
  const DataType dtype = node.Dtype(2);
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t axis = node.NormalizeAxis(node.Int("axis", -1), rank + 1);
  TF_RETURN_IF_ERROR(node.status());
  if (node.Type(1).num_elements() != 1 || node.Rank(1) > 1 ||
      node.Shape(2) != std::vector<int64_t>{2}) {
    return node.Invalid("depth must be a number, values must be two");
  }
  int64_t depth = 0;
  if (node.IsConstant(1)) {
    TF_ASSIGN_OR_RETURN(const std::vector<double> value, node.ConstDoubles(1));
    if (!(value[0] >= 0 && value[0] < 1e15)) {
      return node.Invalid("the depth is ", value[0]);
    }
    depth = static_cast<int64_t>(value[0]);
  } else {
    TF_ASSIGN_OR_RETURN(const std::vector<int64_t> declared,
                        DeclaredShape(node, dtype, static_cast<int>(rank) + 1,
                                      "input 1 (depth)"));
    depth = declared[static_cast<size_t>(axis)];
  }
  shape.insert(shape.begin() + axis, depth);
  TF_RETURN_IF_ERROR(CheckShape(node, shape));
  return OneOutput(node.builder().Compute(
      "one_hot", {{"axis", axis}, {"depth", depth}},
      {node.Input(0), node.Input(2)}, [&](const graph::Tensors& in) {
        return te::Compute("T_one_hot", shape, [&](const te::Indices& i) {
          te::Indices at = i;
          at.erase(at.begin() + axis);
          const Expr index = AsIndex(in[0](at));
          const Expr place = i[static_cast<size_t>(axis)];
          const Expr hot =
              ir::Or(ir::EQ(index, place), ir::EQ(index, place - depth));
          return te::Body(
              Choose(hot, in[1]({IntConst(1)}), in[1]({IntConst(0)})));
        });
      }));
}

}  // namespace

std::vector<Converter> ConstantConverters() {
  return {
      {"Constant", ConvertConstant},
      {"ConstantOfShape", ConvertConstantOfShape},
      {"EyeLike", ConvertEyeLike},
      {"OneHot", ConvertOneHot},
      {"Range", ConvertRange},
  };
}

}  // namespace tilefarm::onnx
