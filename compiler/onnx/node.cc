#include "compiler/onnx/node.h"

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/onnx/scope.h"
#include "compiler/onnx/tensor_proto.h"
#include "onnx/defs/schema.h"

namespace tilefarm::onnx {

bool Node::HasInput(int i) const {
  return i < num_inputs() && !inputs_[i].is_none();
}

const Imported& Node::RawInput(int i) {
  static const Imported* const none = new Imported;
  if (i < num_inputs()) return inputs_[i];
  status_.Update(Invalid("has no input ", i));
  return *none;
}

ValueId Node::Input(int i) {
  if (i < num_inputs() && inputs_[i].is_tensor()) return inputs_[i].tensor;
  status_.Update(Invalid("input ", i, " is missing or no tensor"));
  // Any valid value: the node is rejected after its conversion.
  return builder_.Constant("missing", {ir::DataType::Float(32), {1}},
                           std::vector<float>{0});
}

int Node::OnnxType(int i) {
  const int small = RawInput(i).small_type;
  return small != 0 ? small : OnnxTypeOf(Dtype(i));
}

std::vector<ValueId> Node::Inputs() {
  std::vector<ValueId> all;
  for (int i = 0; i < num_inputs(); ++i) all.push_back(Input(i));
  return all;
}

std::optional<TensorType> Node::DeclaredOutput(int i) const {
  if (!WantsOutput(i)) return std::nullopt;
  return scope_.Declared(proto_.output(i));
}

absl::Status Node::CheckAttributes() const {
  const std::string& domain = proto_.domain();
  if (!domain.empty() && !absl::StartsWith(domain, "ai.onnx")) {
    return absl::OkStatus();
  }
  const pb::OpSchema* schema = pb::OpSchemaRegistry::Schema(
      op(), static_cast<int>(opset_), domain == "ai.onnx" ? "" : domain);
  for (const pb::AttributeProto& attribute : proto_.attribute()) {
    if (asked_for_.contains(attribute.name())) continue;
    // Exporters' own remarks, which ONNX's checker passes over, too.
    if (absl::StartsWith(attribute.name(), "__")) continue;
    if (schema != nullptr && schema->attributes().contains(attribute.name())) {
      continue;
    }
    return Unsupported("attribute ", attribute.name());
  }
  return absl::OkStatus();
}

const pb::AttributeProto* Node::Find(std::string_view name) const {
  asked_for_.emplace(name);
  for (const pb::AttributeProto& attribute : proto_.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

const pb::AttributeProto* Node::FindTyped(
    std::string_view name, pb::AttributeProto::AttributeType type) {
  const pb::AttributeProto* found = Find(name);
  // Models of IR version 1 leave the type out.
  if (found == nullptr || found->type() == type ||
      found->type() == pb::AttributeProto::UNDEFINED) {
    return found;
  }
  status_.Update(Invalid("attribute ", std::string(name), " is of type ",
                         pb::AttributeProto::AttributeType_Name(found->type()),
                         ", not ",
                         pb::AttributeProto::AttributeType_Name(type)));
  return nullptr;
}

int64_t Node::Int(std::string_view name, int64_t default_value) {
  const auto* found = FindTyped(name, pb::AttributeProto::INT);
  return found == nullptr ? default_value : found->i();
}

double Node::Float(std::string_view name, double default_value) {
  const auto* found = FindTyped(name, pb::AttributeProto::FLOAT);
  return found == nullptr ? default_value : found->f();
}

std::string Node::String(std::string_view name, std::string default_value) {
  const auto* found = FindTyped(name, pb::AttributeProto::STRING);
  return found == nullptr ? default_value : found->s();
}

std::vector<int64_t> Node::Ints(std::string_view name) {
  const auto* found = FindTyped(name, pb::AttributeProto::INTS);
  if (found == nullptr) return {};
  return {found->ints().begin(), found->ints().end()};
}

std::vector<double> Node::Floats(std::string_view name) {
  const auto* found = FindTyped(name, pb::AttributeProto::FLOATS);
  if (found == nullptr) return {};
  return {found->floats().begin(), found->floats().end()};
}

std::vector<std::string> Node::Strings(std::string_view name) {
  const auto* found = FindTyped(name, pb::AttributeProto::STRINGS);
  if (found == nullptr) return {};
  return {found->strings().begin(), found->strings().end()};
}

const pb::TensorProto* Node::Tensor(std::string_view name) {
  const auto* found = FindTyped(name, pb::AttributeProto::TENSOR);
  return found == nullptr ? nullptr : &found->t();
}

const pb::GraphProto* Node::Graph(std::string_view name) {
  const auto* found = FindTyped(name, pb::AttributeProto::GRAPH);
  return found == nullptr ? nullptr : &found->g();
}

int64_t Node::NormalizeAxis(int64_t axis, int64_t rank) {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  status_.Update(Invalid("axis ", axis, " of a tensor of rank ", rank));
  return 0;
}

absl::StatusOr<std::vector<int64_t>> Node::ConstInts(int i) {
  const ValueId id = Input(i);
  TF_RETURN_IF_ERROR(status_);
  if (!builder_.IsConstant(id)) {
    return Unsupported("input ", i, " (", proto_.input(i),
                       ") is known at run time only");
  }
  if (builder_.type(id).dtype.is_float()) {
    return Invalid("input ", i, " must have integers");
  }
  return builder_.EvaluateInts(id);
}

absl::StatusOr<std::vector<double>> Node::ConstDoubles(int i) {
  const ValueId id = Input(i);
  TF_RETURN_IF_ERROR(status_);
  if (!builder_.IsConstant(id)) {
    return Unsupported("input ", i, " (", proto_.input(i),
                       ") is known at run time only");
  }
  return builder_.EvaluateDoubles(id);
}

std::string Node::Describe() const {
  std::string name = proto_.name();
  if (name.empty() && proto_.output_size() > 0) name = proto_.output(0);
  return absl::StrCat(proto_.domain().empty() ? "" : proto_.domain() + ".",
                      op(), " (node ", name, ")");
}

}  // namespace tilefarm::onnx
