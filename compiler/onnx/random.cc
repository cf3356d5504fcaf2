// Dropout and the random generators. A compiled program is a function of its
// inputs, so a result that depends on a random draw is not supported.
#include <utility>

#include "base/status_macros.h"
#include "compiler/onnx/expressions.h"
#include "compiler/onnx/tensor_proto.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;

absl::StatusOr<ValueId> Full(Node& node, const TensorType& type, double value) {
  return node.builder().Compute("full", {}, {}, [&](const graph::Tensors&) {
    return te::Compute("T_full", type.shape, [&](const te::Indices&) {
      return te::Body(ir::MakeCast(
          type.dtype, Number(value, FloatComputeType(type.dtype))));
    });
  });
}

// Whether elements may be dropped. Since operator set 12 an input says so.
absl::StatusOr<bool> DropsElements(Node& node) {
  if (node.opset() < 12 || !node.HasInput(2)) return false;
  if (node.IsConstant(2)) {
    TF_ASSIGN_OR_RETURN(const std::vector<int64_t> training, node.ConstInts(2));
    if (training.size() != 1) {
      return node.Invalid("input 2 (training_mode) must be a scalar");
    }
    if (training[0] == 0) return false;
  }
  if (!node.HasInput(1) || !node.IsConstant(1)) return true;
  TF_ASSIGN_OR_RETURN(const std::vector<double> ratio, node.ConstDoubles(1));
  if (ratio.size() != 1) {
    return node.Invalid("input 1 (ratio) must be a scalar");
  }
  return ratio[0] != 0;
}

Outputs ConvertDropout(Node& node) {
  TF_RETURN_IF_ERROR(CheckKind(node, 0, DtypeKind::kFloat));
  TF_ASSIGN_OR_RETURN(const bool drops, DropsElements(node));
  if (drops) {
    return node.Unsupported("training mode drops elements at random");
  }
  std::vector<Imported> outputs = {node.Input(0)};
  if (node.WantsOutput(1)) {
    const DataType dtype = node.opset() < 10 ? node.Dtype(0) : DataType::Bool();
    TF_ASSIGN_OR_RETURN(
        const ValueId mask,
        node.builder().Compute("full", {}, {}, [&](const graph::Tensors&) {
          return te::Compute("T_full", node.Shape(0), [&](const te::Indices&) {
            return te::Body(ir::ConstOf(dtype, 1));
          });
        }));
    outputs.emplace_back(mask);
  }
  return outputs;
}

Outputs Draw(const Node& node) {
  return node.Unsupported("the result depends on a random draw");
}

// The generators give one value only if the distribution has no width.
Outputs Generate(Node& node, std::vector<int64_t> shape, DataType dtype) {
  const bool normal =
      node.op() == "RandomNormal" || node.op() == "RandomNormalLike";
  const double low = normal ? node.Float("mean", 0) : node.Float("low", 0);
  const double width =
      normal ? node.Float("scale", 1) : node.Float("high", 1) - low;
  if (width != 0) return Draw(node);
  if (!dtype.is_float()) return node.Invalid("dtype ", dtype.ToString());
  TF_ASSIGN_OR_RETURN(const ValueId y,
                      Full(node, {dtype, std::move(shape)}, low));
  return OneOutput(y);
}

Outputs ConvertGenerator(Node& node) {
  const int64_t code = node.Int("dtype", OnnxTypeOf(DataType::Float(32)));
  const auto dtype = DtypeOf(static_cast<int>(code));
  if (!dtype.has_value()) return node.Unsupported("attribute dtype=", code);
  const std::vector<int64_t> shape = node.Ints("shape");
  for (int64_t extent : shape) {
    if (extent < 0) return node.Invalid("a dimension of shape is ", extent);
  }
  return Generate(node, shape, *dtype);
}

Outputs ConvertGeneratorLike(Node& node) {
  DataType dtype = node.Dtype(0);
  if (node.HasAttr("dtype")) {
    const int64_t code = node.Int("dtype", 0);
    const auto given = DtypeOf(static_cast<int>(code));
    if (!given.has_value()) return node.Unsupported("attribute dtype=", code);
    dtype = *given;
  }
  return Generate(node, node.Shape(0), dtype);
}

Outputs ConvertDraw(Node& node) { return Draw(node); }

}  // namespace

std::vector<Converter> RandomConverters() {
  return {
      {"Dropout", ConvertDropout},
      {"RandomNormal", ConvertGenerator},
      {"RandomUniform", ConvertGenerator},
      {"RandomNormalLike", ConvertGeneratorLike},
      {"RandomUniformLike", ConvertGeneratorLike},
      {"Bernoulli", ConvertDraw},
  };
}

}  // namespace tilefarm::onnx
