#include "compiler/graph/run_graph.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace tilefarm::graph {

absl::StatusOr<std::vector<TensorData>> RunGraph(
    const Graph& graph, std::span<const TensorData> inputs,
    const RunFunction& run) {
  if (inputs.size() != graph.inputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        inputs.size(), " inputs; the graph has ", graph.inputs.size()));
  }
  std::vector<TensorData> values(graph.values.size());
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (graph.values[i].constant != nullptr) {
      values[i] = *graph.values[i].constant;
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& input = graph.values[graph.inputs[i]];
    if (static_cast<int64_t>(inputs[i].bytes().size()) !=
        input.type.num_bytes()) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", input.name, " has ", inputs[i].bytes().size(),
                       " bytes; it is ", input.type.ToString()));
    }
    values[graph.inputs[i]] = inputs[i];
  }
  std::vector<int> uses(graph.values.size());
  for (const Call& call : graph.calls) {
    for (ValueId id : call.inputs) ++uses[id];
  }
  for (ValueId id : graph.outputs) ++uses[id];
  for (const Call& call : graph.calls) {
    std::vector<std::vector<std::byte>> storage;
    for (ValueId id : call.inputs) {
      storage.emplace_back(values[id].bytes().begin(),
                           values[id].bytes().end());
    }
    for (ValueId id : call.outputs) {
      storage.emplace_back(
          static_cast<size_t>(graph.values[id].type.num_bytes()));
    }
    const std::vector<std::span<std::byte>> buffers(storage.begin(),
                                                    storage.end());
    TF_RETURN_IF_ERROR(run(*call.function, buffers));
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      values[call.outputs[i]] =
          TensorData(std::move(storage[call.inputs.size() + i]));
    }
    for (ValueId id : call.inputs) {
      if (--uses[id] == 0) values[id] = TensorData();
    }
  }
  std::vector<TensorData> outputs;
  for (ValueId id : graph.outputs) outputs.push_back(values[id]);
  return outputs;
}

}  // namespace tilefarm::graph
