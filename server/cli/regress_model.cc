#include "server/cli/regress_model.h"

#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"

namespace tilefarm::cli {
namespace {

using Tensors = google::protobuf::RepeatedPtrField<v1::ModelSignature::Tensor>;

nlohmann::ordered_json ToJson(const Tensors& tensors) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const v1::ModelSignature::Tensor& tensor : tensors) {
    list.push_back({tensor.dtype(), tensor.elements()});
  }
  return list;
}

// Adds the tensors of the list. False: it is no list of tensors.
bool Parse(const nlohmann::json& list, Tensors& tensors) {
  if (!list.is_array()) return false;
  for (const nlohmann::json& one : list) {
    if (!one.is_array() || one.size() != 2 || !one[0].is_string() ||
        !one[1].is_number_unsigned()) {
      return false;
    }
    v1::ModelSignature::Tensor& tensor = *tensors.Add();
    tensor.set_dtype(one[0].get<std::string>());
    tensor.set_elements(one[1].get<uint64_t>());
  }
  return true;
}

}  // namespace

std::string SignatureText(const v1::ModelSignature& model) {
  return nlohmann::ordered_json{{"inputs", ToJson(model.inputs())},
                                {"outputs", ToJson(model.outputs())}}
      .dump();
}

bool IsSignature(std::string_view text) { return text.starts_with('{'); }

absl::StatusOr<v1::ModelSignature> ParseSignature(const std::string& text) {
  const nlohmann::json json =
      nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  v1::ModelSignature model;
  if (!json.is_object() || !json.contains("inputs") ||
      !json.contains("outputs") ||
      !Parse(json["inputs"], *model.mutable_inputs()) ||
      !Parse(json["outputs"], *model.mutable_outputs())) {
    return absl::InvalidArgumentError("it is no signature of a model");
  }
  return model;
}

}  // namespace tilefarm::cli
