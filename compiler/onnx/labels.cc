// Small operators of the domain ai.onnx.ml: mapping of labels, thresholds.
#include "base/status_macros.h"
#include "compiler/onnx/node.h"
#include "compiler/onnx/scope.h"
#include "compiler/onnx/shapes.h"
#include "compiler/onnx/tensor_proto.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;
using ir::Expr;
using ir::IntConst;

Outputs ConvertBinarizer(Node& node) {
  const TensorType type = node.Type(0);
  const double threshold = node.Float("threshold", 0);
  return OneOutput(node.builder().Compute(
      "binarize", {{"threshold", threshold}}, {node.Input(0)},
      [&](const graph::Tensors& in) {
        return te::Compute("T_binarize", type.shape, [&](const te::Indices& i) {
          const DataType compute =
              type.dtype.is_float() ? type.dtype : DataType::Float(64);
          const Expr above = ir::GT(ir::MakeCast(compute, in[0](i)),
                                    ir::FloatConst(threshold, compute));
          return te::Body(ir::MakeCast(type.dtype, above));
        });
      }));
}

// The list in the attribute `prefix`_int64s, `prefix`_floats or
// `prefix`_tensor, as a constant of rank 1.
absl::StatusOr<ValueId> ListAttr(Node& node, const std::string& prefix) {
  GraphBuilder& builder = node.builder();
  if (node.HasAttr(prefix + "_int64s")) {
    return builder.Int64s(prefix, node.Ints(prefix + "_int64s"));
  }
  if (node.HasAttr(prefix + "_floats")) {
    std::vector<float> values;
    for (const double value : node.Floats(prefix + "_floats")) {
      values.push_back(static_cast<float>(value));
    }
    const auto count = static_cast<int64_t>(values.size());
    return builder.Constant(prefix, {DataType::Float(32), {count}}, values);
  }
  if (const pb::TensorProto* tensor = node.Tensor(prefix + "_tensor")) {
    TF_ASSIGN_OR_RETURN(const TensorContents contents,
                        ReadTensor(*tensor, node.scope().context().external));
    return builder.Constant(
        prefix, {contents.type.dtype, {contents.type.num_elements()}},
        contents.data);
  }
  return node.Unsupported("the ", prefix, " are strings or missing");
}

// The label of what is no key: rank 1, one element of `dtype`.
absl::StatusOr<ValueId> DefaultLabel(Node& node, DataType dtype) {
  GraphBuilder& builder = node.builder();
  if (const pb::TensorProto* tensor = node.Tensor("default_tensor")) {
    TF_ASSIGN_OR_RETURN(const TensorContents contents,
                        ReadTensor(*tensor, node.scope().context().external));
    if (contents.type.dtype != dtype || contents.type.num_elements() != 1) {
      return node.Invalid("default_tensor is ", contents.type.ToString());
    }
    return builder.Constant("default", {dtype, {1}}, contents.data);
  }
  if (dtype == DataType::Int(64)) {
    return builder.Int64s("default", {node.Int("default_int64", -1)});
  }
  if (dtype == DataType::Float(32)) {
    return builder.Constant("default", {dtype, {1}},
                            std::vector<float>{static_cast<float>(
                                node.Float("default_float", -0.0))});
  }
  return node.Unsupported("labels of ", dtype.ToString(),
                          " without default_tensor");
}

Outputs ConvertLabelEncoder(Node& node) {
  TF_ASSIGN_OR_RETURN(const ValueId keys, ListAttr(node, "keys"));
  TF_ASSIGN_OR_RETURN(const ValueId labels, ListAttr(node, "values"));
  const TensorType x = node.Type(0);
  const TensorType key_type = node.builder().type(keys);
  const TensorType label_type = node.builder().type(labels);
  if (key_type.shape != label_type.shape || key_type.dtype != x.dtype) {
    return node.Invalid("keys ", key_type.ToString(), " and values ",
                        label_type.ToString(), " for ", x.ToString());
  }
  TF_ASSIGN_OR_RETURN(const ValueId absent,
                      DefaultLabel(node, label_type.dtype));
  const int64_t count = key_type.shape[0];
  return OneOutput(node.builder().Compute(
      "label_encode", {}, {node.Input(0), keys, labels, absent},
      [&](const graph::Tensors& in) {
        const Expr none = IntConst(-1);
        if (count == 0) {
          return te::Compute("T_label", x.shape, [&](const te::Indices&) {
            return te::Body(in[3]({IntConst(0)}));
          });
        }
        const te::ReduceAxis k("k", count);
        const te::Tensor place =
            te::Compute("T_place", x.shape, [&](const te::Indices& i) {
              const Expr value = in[0](i);
              const Expr key = in[1]({k});
              Expr equal = ir::EQ(value, key);
              // A NaN finds the key NaN.
              if (x.dtype.is_float()) {
                equal = ir::Or(equal,
                               ir::And(ir::NE(value, value), ir::NE(key, key)));
              }
              return te::MaxOver(Choose(equal, k, none), {k});
            });
        return te::Compute("T_label", x.shape, [&](const te::Indices& i) {
          const Expr found = place(i);
          return te::Body(Choose(ir::GE(found, IntConst(0)),
                                 in[2]({ClampIndex(found, count)}),
                                 in[3]({IntConst(0)})));
        });
      }));
}

}  // namespace

std::vector<Converter> LabelConverters() {
  return {
      {"Binarizer", ConvertBinarizer, "ai.onnx.ml"},
      {"LabelEncoder", ConvertLabelEncoder, "ai.onnx.ml"},
  };
}

}  // namespace tilefarm::onnx
