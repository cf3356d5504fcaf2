#include "compiler/onnx/function_body.h"

#include <string>

#include "compiler/onnx/tensor_proto.h"
#include "onnx/defs/schema.h"

namespace tilefarm::onnx {
namespace {

// Replaces references in the node and in its subgraphs.
void Bind(const pb::NodeProto& caller, pb::NodeProto& node) {
  google::protobuf::RepeatedPtrField<pb::AttributeProto> kept;
  for (pb::AttributeProto& attribute : *node.mutable_attribute()) {
    if (!attribute.ref_attr_name().empty()) {
      for (const pb::AttributeProto& given : caller.attribute()) {
        if (given.name() != attribute.ref_attr_name()) continue;
        pb::AttributeProto* bound = kept.Add();
        *bound = given;
        bound->set_name(attribute.name());
      }
      continue;
    }
    if (attribute.has_g()) {
      for (pb::NodeProto& inner : *attribute.mutable_g()->mutable_node()) {
        Bind(caller, inner);
      }
    }
    *kept.Add() = std::move(attribute);
  }
  node.mutable_attribute()->Swap(&kept);
}

}  // namespace

std::optional<pb::FunctionProto> StandardFunctionBody(
    const Node& node, const std::vector<Imported>& inputs) {
  const pb::OpSchema* schema = pb::OpSchemaRegistry::Schema(
      node.op(), static_cast<int>(node.opset()), node.proto().domain());
  if (schema == nullptr) return std::nullopt;
  std::optional<pb::FunctionProto> body;
  if (schema->HasFunction()) {
    body = *schema->GetFunction();
  } else if (schema->HasContextDependentFunction()) {
    std::vector<pb::TypeProto> types;
    for (const Imported& input : inputs) {
      pb::TypeProto& type = types.emplace_back();
      if (!input.is_tensor()) continue;
      const TensorType& known = node.builder().type(input.tensor);
      type.mutable_tensor_type()->set_elem_type(
          input.small_type != 0 ? input.small_type : OnnxTypeOf(known.dtype));
      auto* shape = type.mutable_tensor_type()->mutable_shape();
      for (int64_t extent : known.shape)
        shape->add_dim()->set_dim_value(extent);
    }
    // The builders read the node; this schema's copy of it is the same message.
    pb::NodeProto proto = node.proto();
    const pb::FunctionBodyBuildContextImpl context(proto, types);
    pb::FunctionProto built;
    if (schema->BuildContextDependentFunction(context, built)) {
      body = std::move(built);
    }
  }
  if (!body.has_value()) return std::nullopt;
  // Defaults of the schema hold where the node says nothing.
  return body;
}

google::protobuf::RepeatedPtrField<pb::NodeProto> BindAttributes(
    const pb::FunctionProto& body, const pb::NodeProto& node) {
  pb::NodeProto caller = node;
  const pb::OpSchema* schema =
      pb::OpSchemaRegistry::Schema(node.op_type(), node.domain());
  if (schema != nullptr) {
    for (const auto& [name, attribute] : schema->attributes()) {
      if (attribute.default_value.name().empty()) continue;
      bool given = false;
      for (const auto& existing : node.attribute()) {
        given |= existing.name() == name;
      }
      if (!given) *caller.add_attribute() = attribute.default_value;
    }
  }
  google::protobuf::RepeatedPtrField<pb::NodeProto> nodes = body.node();
  for (pb::NodeProto& inner : nodes) Bind(caller, inner);
  return nodes;
}

}  // namespace tilefarm::onnx
