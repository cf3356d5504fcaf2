#include "compiler/graph/run_graph.h"

#include <cstddef>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace tilefarm::graph {
namespace {

// Runs the function on copies of the call's tensors. Values that lie in one
// whole share its bytes.
absl::Status RunCall(const Graph& graph, const Call& call,
                     const RunFunction& run, std::vector<TensorData>& values) {
  std::map<ValueId, std::vector<std::byte>> bytes;
  const auto bytes_of = [&](ValueId id) -> std::vector<std::byte>& {
    const ValueId whole = WholeOf(graph, id);
    const auto [it, fresh] = bytes.try_emplace(whole);
    if (!fresh) return it->second;
    const auto size = static_cast<size_t>(graph.values[whole].type.num_bytes());
    it->second.assign(values[whole].bytes().begin(),
                      values[whole].bytes().end());
    it->second.resize(size);
    return it->second;
  };
  std::vector<std::span<std::byte>> buffers;
  const auto add = [&](ValueId id) {
    const ir::BufferNode& param = *call.function->params[buffers.size()];
    buffers.push_back(std::span(bytes_of(id))
                          .first(static_cast<size_t>(param.memory_elements()) *
                                 static_cast<size_t>(param.dtype.bytes())));
  };
  for (ValueId id : call.inputs) add(id);
  for (ValueId id : call.outputs) add(id);
  TF_RETURN_IF_ERROR(run(*call.function, buffers));
  for (ValueId id : call.outputs) {
    // Several parts of one whole are one entry.
    auto entry = bytes.extract(WholeOf(graph, id));
    if (entry) values[entry.key()] = TensorData(std::move(entry.mapped()));
  }
  return absl::OkStatus();
}

}  // namespace

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
    for (ValueId id : call.inputs) ++uses[WholeOf(graph, id)];
  }
  for (ValueId id : graph.outputs) ++uses[id];
  for (const Call& call : graph.calls) {
    if (call.op != kJoin) TF_RETURN_IF_ERROR(RunCall(graph, call, run, values));
    for (ValueId id : call.inputs) {
      const ValueId whole = WholeOf(graph, id);
      if (--uses[whole] == 0) values[whole] = TensorData();
    }
  }
  std::vector<TensorData> outputs;
  for (ValueId id : graph.outputs) outputs.push_back(values[id]);
  return outputs;
}

}  // namespace tilefarm::graph
