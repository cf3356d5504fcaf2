// Writes the nodes and constants of an ONNX model with random weights.
#ifndef TILEFARM_TESTS_ONNX_MODEL_WRITER_H_
#define TILEFARM_TESTS_ONNX_MODEL_WRITER_H_

#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/rng.h"
#include "compiler/onnx/schema.h"

namespace tilefarm::onnx {

using Shape = std::vector<int64_t>;

inline int64_t Volume(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1},
                         std::multiplies<>());
}

// A float32 value of the model.
struct Tensor {
  std::string name;
  Shape shape;
};

class ModelWriter {
 protected:
  explicit ModelWriter(uint64_t seed) : rng_(seed) {
    model_.set_ir_version(8);
    model_.add_opset_import()->set_version(17);
    graph_ = model_.mutable_graph();
    graph_->set_name("random");
  }

  static void Declare(pb::ValueInfoProto* info, const Tensor& value) {
    info->set_name(value.name);
    auto* type = info->mutable_type()->mutable_tensor_type();
    type->set_elem_type(pb::TensorProto::FLOAT);
    type->mutable_shape();
    for (const int64_t extent : value.shape) {
      type->mutable_shape()->add_dim()->set_dim_value(extent);
    }
  }

  std::string Floats(const Shape& shape, double low, double high) {
    pb::TensorProto* tensor = NewConstant(pb::TensorProto::FLOAT, shape);
    for (int64_t i = Volume(shape); i > 0; --i) {
      tensor->add_float_data(
          static_cast<float>(low + (high - low) * rng_.Uniform()));
    }
    return tensor->name();
  }
  std::string Ints(const std::vector<int64_t>& values) {
    pb::TensorProto* tensor = NewConstant(
        pb::TensorProto::INT64, {static_cast<int64_t>(values.size())});
    for (const int64_t value : values) tensor->add_int64_data(value);
    return tensor->name();
  }
  std::string Bools(const Shape& shape) {
    pb::TensorProto* tensor = NewConstant(pb::TensorProto::BOOL, shape);
    const double share = rng_.Chance(0.2) ? 1 : 0.5;
    for (int64_t i = Volume(shape); i > 0; --i) {
      tensor->add_int32_data(rng_.Chance(share) ? 1 : 0);
    }
    return tensor->name();
  }
  pb::TensorProto* NewConstant(int type, const Shape& shape) {
    pb::TensorProto* tensor = graph_->add_initializer();
    tensor->set_name(absl::StrCat("c", graph_->initializer_size()));
    tensor->set_data_type(type);
    for (const int64_t extent : shape) tensor->add_dims(extent);
    return tensor;
  }

  // A node with one result, which later nodes may read.
  Tensor Node(const std::string& op, const std::vector<std::string>& inputs,
              Shape shape) {
    node_ = graph_->add_node();
    node_->set_op_type(op);
    for (const std::string& input : inputs) node_->add_input(input);
    Tensor value{absl::StrCat("v", values_.size()), std::move(shape)};
    node_->add_output(value.name);
    values_.push_back(value);
    return value;
  }
  // Attributes of the latest node.
  void Attr(const std::string& name, int64_t value) {
    pb::AttributeProto* attr = node_->add_attribute();
    attr->set_name(name);
    attr->set_type(pb::AttributeProto::INT);
    attr->set_i(value);
  }
  void Attr(const std::string& name, const std::vector<int64_t>& values) {
    pb::AttributeProto* attr = node_->add_attribute();
    attr->set_name(name);
    attr->set_type(pb::AttributeProto::INTS);
    for (const int64_t value : values) attr->add_ints(value);
  }
  void Attr(const std::string& name, float value) {
    pb::AttributeProto* attr = node_->add_attribute();
    attr->set_name(name);
    attr->set_type(pb::AttributeProto::FLOAT);
    attr->set_f(value);
  }

  Tensor Unary(const std::string& op, const Tensor& x) {
    return Node(op, {x.name}, x.shape);
  }
  Tensor Binary(const std::string& op, const Tensor& x, const std::string& y) {
    return Node(op, {x.name, y}, x.shape);
  }
  std::string Scalar(double value) { return Floats({}, value, value); }

  Rng rng_;
  pb::ModelProto model_;
  pb::GraphProto* graph_ = nullptr;
  pb::NodeProto* node_ = nullptr;  // the latest
  std::vector<Tensor> values_;
};

}  // namespace tilefarm::onnx

#endif  // TILEFARM_TESTS_ONNX_MODEL_WRITER_H_
