// Sequences and optionals. They exist while the model is imported only: every
// sequence has a known length.
#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "compiler/onnx/joins.h"
#include "compiler/onnx/node.h"
#include "compiler/onnx/scope.h"
#include "compiler/onnx/tensor_proto.h"

namespace tilefarm::onnx {
namespace {

Imported Bool(Node& node, bool value) {
  return node.builder().Constant("bool", {ir::DataType::Bool(), {}},
                                 std::vector<uint8_t>{value});
}

// The elements of input `i`; InvalidArgument if it is no sequence.
absl::StatusOr<std::vector<Imported>> Elements(Node& node, int i) {
  const Imported& input = node.RawInput(i);
  if (input.sequence == nullptr) {
    return node.Invalid("input ", i, " is no sequence");
  }
  return *input.sequence;
}

// The position in input `i`, from the end if negative; of `count` elements, or
// one more if `at_end`.
absl::StatusOr<size_t> Position(Node& node, int i, size_t count, bool at_end) {
  const auto size = static_cast<int64_t>(count);
  if (!node.HasInput(i)) return count - (at_end || count == 0 ? 0 : 1);
  TF_ASSIGN_OR_RETURN(const std::vector<int64_t> values, node.ConstInts(i));
  if (values.size() != 1)
    return node.Invalid("the position is no single value");
  const int64_t position = values[0] < 0 ? values[0] + size : values[0];
  if (position < 0 || position >= size + (at_end ? 1 : 0)) {
    return node.Invalid("position ", values[0], " in a sequence of ", size);
  }
  return static_cast<size_t>(position);
}

Outputs ConvertSequenceConstruct(Node& node) {
  std::vector<Imported> elements;
  for (int i = 0; i < node.num_inputs(); ++i) {
    elements.push_back(node.RawInput(i));
  }
  return std::vector<Imported>{Imported(std::move(elements))};
}

Outputs ConvertSequenceEmpty(Node&) {
  return std::vector<Imported>{Imported(std::vector<Imported>())};
}

Outputs ConvertSequenceInsert(Node& node) {
  TF_ASSIGN_OR_RETURN(std::vector<Imported> elements, Elements(node, 0));
  TF_ASSIGN_OR_RETURN(const size_t position,
                      Position(node, 2, elements.size(), /*at_end=*/true));
  elements.insert(elements.begin() + static_cast<ptrdiff_t>(position),
                  node.RawInput(1));
  return std::vector<Imported>{Imported(std::move(elements))};
}

Outputs ConvertSequenceErase(Node& node) {
  TF_ASSIGN_OR_RETURN(std::vector<Imported> elements, Elements(node, 0));
  if (elements.empty()) return node.Invalid("the sequence is empty");
  TF_ASSIGN_OR_RETURN(const size_t position,
                      Position(node, 1, elements.size(), /*at_end=*/false));
  elements.erase(elements.begin() + static_cast<ptrdiff_t>(position));
  return std::vector<Imported>{Imported(std::move(elements))};
}

Outputs ConvertSequenceAt(Node& node) {
  TF_ASSIGN_OR_RETURN(const std::vector<Imported> elements, Elements(node, 0));
  if (!node.HasInput(1)) return node.Invalid("has no position");
  TF_ASSIGN_OR_RETURN(const size_t position,
                      Position(node, 1, elements.size(), /*at_end=*/false));
  return std::vector<Imported>{elements[position]};
}

Outputs ConvertSequenceLength(Node& node) {
  TF_ASSIGN_OR_RETURN(const std::vector<Imported> elements, Elements(node, 0));
  return std::vector<Imported>{node.builder().Constant(
      "length", {ir::DataType::Int(64), {}},
      std::vector<int64_t>{static_cast<int64_t>(elements.size())})};
}

Outputs ConvertConcatFromSequence(Node& node) {
  TF_ASSIGN_OR_RETURN(const std::vector<Imported> elements, Elements(node, 0));
  if (elements.empty()) return node.Invalid("the sequence is empty");
  std::vector<ValueId> values;
  for (const Imported& element : elements) {
    if (!element.is_tensor()) return node.Invalid("an element is no tensor");
    values.push_back(element.tensor);
  }
  const bool adds_axis = node.Int("new_axis", 0) != 0;
  const int64_t axis = node.NormalizeAxis(
      node.Int("axis", 0),
      node.builder().type(values[0]).ndim() + (adds_axis ? 1 : 0));
  TF_RETURN_IF_ERROR(node.status());
  TF_ASSIGN_OR_RETURN(const ValueId joined,
                      adds_axis ? Stack(node.builder(), values, axis)
                                : Concatenate(node.builder(), values, axis));
  return std::vector<Imported>{joined};
}

Outputs ConvertSplitToSequence(Node& node) {
  const ValueId value = node.Input(0);
  const int64_t axis = node.NormalizeAxis(node.Int("axis", 0), node.Rank(0));
  TF_RETURN_IF_ERROR(node.status());
  const int64_t extent = node.Shape(0)[static_cast<size_t>(axis)];
  std::vector<int64_t> sizes;
  const bool ones = !node.HasInput(1);
  if (ones) {
    sizes.assign(static_cast<size_t>(extent), 1);
  } else {
    TF_ASSIGN_OR_RETURN(sizes, node.ConstInts(1));
    if (node.Rank(1) == 0) {
      // Equal parts, the last one smaller if need be.
      const int64_t size = sizes[0];
      if (size < 1) return node.Invalid("parts of ", size, " elements");
      sizes.assign(static_cast<size_t>((extent + size - 1) / size), size);
      if (extent % size != 0) sizes.back() = extent % size;
    }
  }
  std::vector<Imported> elements;
  int64_t begin = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > extent - begin) {
      return node.Invalid("parts of more than ", extent, " elements");
    }
    ValueId part = value;
    if (ones && node.Int("keepdims", 1) == 0) {
      TF_ASSIGN_OR_RETURN(part, TakeAt(node.builder(), value, axis, begin));
    } else {
      TF_ASSIGN_OR_RETURN(part,
                          SliceAt(node.builder(), value, axis, begin, size));
    }
    elements.emplace_back(part);
    begin += size;
  }
  if (begin != extent) {
    return node.Invalid("parts of ", begin, " of ", extent, " elements");
  }
  return std::vector<Imported>{Imported(std::move(elements))};
}

Outputs ConvertSequenceMap(Node& node) {
  const pb::GraphProto* body = node.Graph("body");
  if (body == nullptr) return node.Invalid("the body is missing");
  TF_ASSIGN_OR_RETURN(const std::vector<Imported> first, Elements(node, 0));
  std::vector<std::vector<Imported>> results(
      static_cast<size_t>(body->output_size()));
  for (size_t k = 0; k < first.size(); ++k) {
    std::vector<Imported> inputs = {first[k]};
    for (int i = 1; i < node.num_inputs(); ++i) {
      const Imported& input = node.RawInput(i);
      if (input.sequence == nullptr) {
        inputs.push_back(input);  // the same for every element
        continue;
      }
      if (input.sequence->size() != first.size()) {
        return node.Invalid("the sequences have different lengths");
      }
      inputs.push_back((*input.sequence)[k]);
    }
    TF_ASSIGN_OR_RETURN(const std::vector<Imported> mapped,
                        node.scope().ImportSubgraph(*body, inputs));
    for (size_t i = 0; i < mapped.size(); ++i) results[i].push_back(mapped[i]);
  }
  std::vector<Imported> outputs;
  for (std::vector<Imported>& sequence : results) {
    outputs.emplace_back(std::move(sequence));
  }
  return outputs;
}

// An optional that has a value is the value itself.
Outputs ConvertOptional(Node& node) {
  return std::vector<Imported>{node.HasInput(0) ? node.RawInput(0)
                                                : Imported()};
}

Outputs ConvertOptionalGetElement(Node& node) {
  if (!node.HasInput(0)) return node.Invalid("the optional is empty");
  return std::vector<Imported>{node.RawInput(0)};
}

Outputs ConvertOptionalHasElement(Node& node) {
  return std::vector<Imported>{Bool(node, node.HasInput(0))};
}

}  // namespace

std::vector<Converter> SequenceConverters() {
  return {
      {"ConcatFromSequence", ConvertConcatFromSequence},
      {"Optional", ConvertOptional},
      {"OptionalGetElement", ConvertOptionalGetElement},
      {"OptionalHasElement", ConvertOptionalHasElement},
      {"SequenceAt", ConvertSequenceAt},
      {"SequenceConstruct", ConvertSequenceConstruct},
      {"SequenceEmpty", ConvertSequenceEmpty},
      {"SequenceErase", ConvertSequenceErase},
      {"SequenceInsert", ConvertSequenceInsert},
      {"SequenceLength", ConvertSequenceLength},
      {"SequenceMap", ConvertSequenceMap},
      {"SplitToSequence", ConvertSplitToSequence},
  };
}

}  // namespace tilefarm::onnx
