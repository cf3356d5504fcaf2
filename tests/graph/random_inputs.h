// Random inputs of graphs, and their results by the interpreter.
#ifndef TILEFARM_TESTS_GRAPH_RANDOM_INPUTS_H_
#define TILEFARM_TESTS_GRAPH_RANDOM_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/rng.h"
#include "compiler/graph/graph.h"
#include "compiler/ir/interpreter.h"

namespace tilefarm::graph {

inline absl::Status Interpreted(const ir::PrimFunc& function,
                                std::span<const std::span<std::byte>> buffers) {
  return ir::Interpret(function, buffers);
}

inline TensorType F32(std::vector<int64_t> shape) {
  return {ir::DataType::Float(32), std::move(shape)};
}

template <typename T>
std::vector<T> Elements(const TensorData& data) {
  std::vector<T> values(data.bytes().size() / sizeof(T));
  if (!values.empty()) {
    std::memcpy(values.data(), data.bytes().data(), data.bytes().size());
  }
  return values;
}

template <typename T>
TensorData DataOf(const std::vector<T>& values) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
  return TensorData(std::vector(bytes.begin(), bytes.end()));
}

// Floats in [-1, 1), all values of 8 bits, and 0, 1 or 2 of 64 bits, for every
// input, which must be float32, int8, uint8 or int64.
inline std::vector<TensorData> RandomInputs(const Graph& graph, Rng& rng) {
  std::vector<TensorData> inputs;
  for (ValueId id : graph.inputs) {
    const TensorType& type = graph.values[id].type;
    const auto count = static_cast<size_t>(type.num_elements());
    if (type.dtype.bits == 8) {
      std::vector<uint8_t> bytes(count);
      for (uint8_t& byte : bytes) {
        byte = static_cast<uint8_t>(256 * rng.Uniform());
      }
      inputs.push_back(DataOf(bytes));
      continue;
    }
    if (type.dtype.bits == 64) {
      std::vector<int64_t> indices(count);
      for (int64_t& index : indices) {
        index = static_cast<int64_t>(3 * rng.Uniform());
      }
      inputs.push_back(DataOf(indices));
      continue;
    }
    std::vector<float> values(count);
    for (float& value : values) {
      value = static_cast<float>(2 * rng.Uniform() - 1);
    }
    inputs.push_back(DataOf(values));
  }
  return inputs;
}

}  // namespace tilefarm::graph

#endif  // TILEFARM_TESTS_GRAPH_RANDOM_INPUTS_H_
