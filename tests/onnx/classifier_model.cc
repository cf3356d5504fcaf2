#include "tests/onnx/classifier_model.h"

#include "compiler/onnx/schema.h"
#include "google/protobuf/text_format.h"

namespace tilefarm::onnx {
namespace {

constexpr char kText[] = R"(
ir_version: 8
opset_import { version: 15 }
graph {
  name: 'classifier'
  node { op_type: 'Gemm' input: ['image', 'w', 'b'] output: 'logits' }
  node { op_type: 'Softmax' input: 'logits' output: 'scores' }
  initializer {
    name: 'w' data_type: 1 dims: [4, 3]
    float_data: [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]
  }
  initializer { name: 'b' data_type: 1 dims: 3 float_data: [0, 0, 0] }
  input {
    name: 'image'
    type { tensor_type { elem_type: 1 shape {
      dim { dim_param: 'batch' } dim { dim_value: 4 } } } }
  }
  output {
    name: 'scores'
    type { tensor_type { elem_type: 1 shape {
      dim { dim_param: 'batch' } dim { dim_value: 3 } } } }
  }
})";

}  // namespace

std::string ClassifierModel() {
  pb::ModelProto model;
  // An empty text is no model, which the caller's test shows.
  if (!google::protobuf::TextFormat::ParseFromString(kText, &model)) return "";
  return model.SerializeAsString();
}

}  // namespace tilefarm::onnx
