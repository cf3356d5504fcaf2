#include "compiler/codegen/device_layout.h"

#include <algorithm>
#include <cstddef>

#include "compiler/runtime/gpu.h"

namespace tilefarm::codegen {
namespace {

int64_t Aligned(int64_t bytes) {
  constexpr int64_t kAlignment = TF_GPU_MODEL_ALIGNMENT;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Places tensors one after another, each with room for that of every variant.
std::vector<int64_t> Place(const ModelDescription& model, size_t count,
                           std::vector<int64_t> ModelVariant::*bytes,
                           int64_t& end) {
  std::vector<int64_t> offsets;
  for (size_t i = 0; i < count; ++i) {
    int64_t most = 0;
    for (const ModelVariant& variant : model.variants) {
      most = std::max(most, (variant.*bytes)[i]);
    }
    offsets.push_back(end);
    end += Aligned(most);
  }
  return offsets;
}

}  // namespace

DeviceLayout::DeviceLayout(const ModelDescription& model) {
  memory_bytes_ = Aligned(model.arena_bytes);
  inputs_ = Place(model, model.inputs.size(), &ModelVariant::input_bytes,
                  memory_bytes_);
  outputs_ = Place(model, model.outputs.size(), &ModelVariant::output_bytes,
                   memory_bytes_);
  if (!model.weights.empty()) {
    const ModelWeights& last = model.weights.back();
    weights_bytes_ = last.offset + static_cast<int64_t>(last.bytes.size());
  }
}

DeviceLayout::Part DeviceLayout::PartOf(const ModelOperand& operand) const {
  const auto number = static_cast<size_t>(operand.at);
  switch (operand.kind) {
    case ModelOperand::Kind::kInput:
      return {inputs_[number], operand.bytes};
    case ModelOperand::Kind::kOutput:
      return {outputs_[number], operand.bytes};
    case ModelOperand::Kind::kArena:
      return {operand.at, operand.bytes};
    case ModelOperand::Kind::kWeights:
      break;
  }
  return {operand.at, operand.bytes, true};
}

int64_t DeviceLayout::NumberOf(const ModelOperand& operand) {
  const Part part = PartOf(operand);
  const auto [entry, is_new] =
      numbers_.emplace(std::tuple(part.offset, part.bytes, part.in_weights),
                       static_cast<int64_t>(parts_.size()));
  if (is_new) parts_.push_back(part);
  return entry->second;
}

}  // namespace tilefarm::codegen
