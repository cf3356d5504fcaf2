#include "compiler/onnx/scope.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/onnx/function_body.h"
#include "compiler/onnx/small_types.h"

namespace tilefarm::onnx {
namespace {

// Bounds of what a model may expand to: nested functions and subgraphs, and
// nodes after the loops are unrolled.
constexpr int kMaxDepth = 64;
constexpr int64_t kMaxNodes = 1 << 20;

int64_t OpsetOf(const std::map<std::string, int64_t>& opsets,
                const std::string& domain) {
  const auto found = opsets.find(domain == "ai.onnx" ? "" : domain);
  return found == opsets.end() ? 0 : found->second;
}

}  // namespace

std::optional<TensorType> CompleteType(
    const pb::TypeProto& type, const std::map<std::string, int64_t>& dims) {
  if (!type.has_tensor_type() || !type.tensor_type().has_shape()) {
    return std::nullopt;
  }
  const std::optional<ir::DataType> dtype =
      StorageDtypeOf(type.tensor_type().elem_type());
  if (!dtype.has_value()) return std::nullopt;
  TensorType complete{*dtype, {}};
  for (const auto& dim : type.tensor_type().shape().dim()) {
    if (dim.has_dim_value() && dim.dim_value() >= 0) {
      complete.shape.push_back(dim.dim_value());
      continue;
    }
    const auto given = dims.find(dim.dim_param());
    if (!dim.has_dim_param() || given == dims.end()) return std::nullopt;
    complete.shape.push_back(given->second);
  }
  return complete;
}

const Imported* Scope::Find(const std::string& name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer_) {
    const auto found = scope->values_.find(name);
    if (found != scope->values_.end()) return &found->second;
  }
  return nullptr;
}

void Scope::Define(const std::string& name, Imported value) {
  values_[name] = std::move(value);
}

bool Scope::IsUnsupported(const std::string& name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer_) {
    if (scope->poisoned_.contains(name)) return true;
  }
  return false;
}

std::optional<TensorType> Scope::Declared(const std::string& name) const {
  const auto found = declared_.find(name);
  if (found == declared_.end()) return std::nullopt;
  return found->second;
}

void Scope::Declare(const pb::ValueInfoProto& info) {
  const std::optional<TensorType> type =
      CompleteType(info.type(), context_.options.dims);
  if (type.has_value()) declared_[info.name()] = *type;
}

absl::Status Scope::ImportGraph(const pb::GraphProto& graph) {
  if (graph.sparse_initializer_size() > 0) {
    context_.unsupported.push_back("sparse initialisers");
    return absl::OkStatus();
  }
  for (const pb::TensorProto& initializer : graph.initializer()) {
    absl::StatusOr<TensorContents> contents =
        ReadTensor(initializer, context_.external, SmallTypes::kUnpack);
    if (absl::IsUnimplemented(contents.status())) {
      context_.unsupported.push_back(std::string(contents.status().message()));
      DefineUnsupported(initializer.name());
      continue;
    }
    TF_RETURN_IF_ERROR(contents.status());
    Define(initializer.name(),
           {context_.builder.Constant(initializer.name(), contents->type,
                                      contents->data),
            contents->small_type});
  }
  for (const auto& info : graph.value_info()) Declare(info);
  for (const auto& info : graph.output()) Declare(info);
  return ImportNodes(graph.node());
}

absl::Status Scope::ImportNodes(
    const google::protobuf::RepeatedPtrField<pb::NodeProto>& nodes) {
  for (const pb::NodeProto& node : nodes) TF_RETURN_IF_ERROR(ImportNode(node));
  return absl::OkStatus();
}

absl::Status Scope::ImportNode(const pb::NodeProto& node) {
  if (++context_.imported_nodes > kMaxNodes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has more than ", kMaxNodes,
                     " nodes after its loops are unrolled"));
  }
  std::vector<Imported> inputs;
  bool poisoned = false;
  for (const std::string& name : node.input()) {
    const Imported* value = name.empty() ? nullptr : Find(name);
    if (value == nullptr && !name.empty()) {
      if (!IsUnsupported(name)) {
        return absl::InvalidArgumentError(absl::StrCat(
            node.op_type(), " (node ", node.name(), "): its input '", name,
            "' is not computed by any node before it"));
      }
      poisoned = true;
    }
    inputs.push_back(value == nullptr ? Imported() : *value);
  }
  absl::StatusOr<std::vector<Imported>> outputs =
      poisoned ? absl::UnimplementedError("")
               : Convert(node, std::move(inputs));
  if (absl::IsUnimplemented(outputs.status())) {
    if (!outputs.status().message().empty()) {
      context_.unsupported.push_back(std::string(outputs.status().message()));
    }
    for (const std::string& name : node.output()) DefineUnsupported(name);
    return absl::OkStatus();
  }
  TF_RETURN_IF_ERROR(outputs.status());
  for (int i = 0; i < node.output_size(); ++i) {
    const std::string& name = node.output(i);
    if (name.empty()) continue;
    if (values_.contains(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("two nodes compute '", name, "'"));
    }
    if (i >= static_cast<int>(outputs->size())) {
      context_.unsupported.push_back(absl::StrCat(
          node.op_type(), " (node ", node.name(), "): output ", i));
      DefineUnsupported(name);
      continue;
    }
    const Imported& value = (*outputs)[i];
    // Names help to find a node again; a value that passes through keeps the
    // name of its origin.
    if (value.is_tensor() && outer_ == nullptr &&
        context_.builder.IsComputed(value.tensor)) {
      context_.builder.SetName(value.tensor, name);
    }
    Define(name, value);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Imported>> Scope::Convert(
    const pb::NodeProto& proto, std::vector<Imported> inputs) {
  const std::string domain = proto.domain() == "ai.onnx" ? "" : proto.domain();
  const int64_t opset = OpsetOf(opsets_, domain);
  Node node(proto, opset, *this, inputs, context_.builder);
  // Functions of the model come first: they may redefine an operator.
  for (const pb::FunctionProto& function : context_.model.functions()) {
    if (function.name() == proto.op_type() &&
        function.domain() == proto.domain()) {
      return CallBody(function, proto, inputs);
    }
  }
  if (const onnx::Convert convert = FindConverter(domain, proto.op_type())) {
    TF_RETURN_IF_ERROR(CheckSmallTypes(node));
    Outputs outputs = convert(node);
    TF_RETURN_IF_ERROR(node.status());
    if (outputs.ok()) {
      TF_RETURN_IF_ERROR(node.CheckAttributes());
      PassSmallTypesOn(node, *outputs);
    }
    if (!outputs.ok() && !absl::IsUnimplemented(outputs.status()) &&
        outputs.status().message().find(node.Describe()) ==
            std::string_view::npos) {
      return absl::Status(
          outputs.status().code(),
          absl::StrCat(node.Describe(), ": ", outputs.status().message()));
    }
    return outputs;
  }
  const std::optional<pb::FunctionProto> body =
      StandardFunctionBody(node, inputs);
  if (body.has_value()) return CallBody(*body, proto, inputs);
  return node.Unsupported("the operator is not supported");
}

absl::StatusOr<std::vector<Imported>> Scope::CallBody(
    const pb::FunctionProto& body, const pb::NodeProto& node,
    const std::vector<Imported>& inputs) {
  if (context_.depth >= kMaxDepth) {
    return absl::InvalidArgumentError(
        absl::StrCat("function ", body.name(),
                     ": functions and subgraphs are nested more "
                     "than ",
                     kMaxDepth, " deep"));
  }
  std::map<std::string, int64_t> opsets = opsets_;
  for (const auto& import : body.opset_import()) {
    opsets[import.domain() == "ai.onnx" ? "" : import.domain()] =
        import.version();
  }
  Scope scope(context_, nullptr, std::move(opsets));
  for (int i = 0; i < body.input_size(); ++i) {
    scope.Define(body.input(i),
                 i < static_cast<int>(inputs.size()) ? inputs[i] : Imported());
  }
  const google::protobuf::RepeatedPtrField<pb::NodeProto> nodes =
      BindAttributes(body, node);
  ++context_.depth;
  const absl::Status imported = scope.ImportNodes(nodes);
  --context_.depth;
  TF_RETURN_IF_ERROR(imported);
  std::vector<Imported> outputs;
  for (int i = 0; i < body.output_size() && i < node.output_size(); ++i) {
    const Imported* value = scope.Find(body.output(i));
    if (value != nullptr) {
      outputs.push_back(*value);
    } else if (scope.IsUnsupported(body.output(i))) {
      return absl::UnimplementedError("");  // listed already
    } else if (node.output(i).empty()) {
      outputs.emplace_back();
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("function ", body.name(),
                       " does not compute its output ", body.output(i)));
    }
  }
  return outputs;
}

absl::StatusOr<std::vector<Imported>> Scope::ImportSubgraph(
    const pb::GraphProto& graph, const std::vector<Imported>& inputs) const {
  if (context_.depth >= kMaxDepth) {
    return absl::InvalidArgumentError(absl::StrCat("subgraph ", graph.name(),
                                                   ": functions and subgraphs "
                                                   "are nested more than ",
                                                   kMaxDepth, " deep"));
  }
  if (graph.input_size() != static_cast<int>(inputs.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("subgraph ", graph.name(), " has ", graph.input_size(),
                     " inputs, not ", inputs.size()));
  }
  Scope scope(context_, this, opsets_);
  for (int i = 0; i < graph.input_size(); ++i) {
    scope.Define(graph.input(i).name(), inputs[i]);
  }
  ++context_.depth;
  const absl::Status imported = scope.ImportGraph(graph);
  --context_.depth;
  TF_RETURN_IF_ERROR(imported);
  std::vector<Imported> outputs;
  for (const auto& output : graph.output()) {
    const Imported* value = scope.Find(output.name());
    if (value == nullptr) {
      if (scope.IsUnsupported(output.name())) {
        return absl::UnimplementedError("");  // listed already
      }
      return absl::InvalidArgumentError(absl::StrCat("subgraph ", graph.name(),
                                                     " does not compute '",
                                                     output.name(), "'"));
    }
    if (value->small_type != 0) {
      // The operators with subgraphs merge and stack their outputs.
      return absl::UnimplementedError(
          absl::StrCat("subgraph ", graph.name(), ": output '", output.name(),
                       "' of type ", OnnxTypeName(value->small_type)));
    }
    outputs.push_back(*value);
  }
  return outputs;
}

}  // namespace tilefarm::onnx
