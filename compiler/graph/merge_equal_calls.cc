#include <cstddef>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "compiler/graph/passes.h"
#include "compiler/ir/structural.h"

namespace tilefarm::graph {

Graph MergeEqualCalls(Graph graph) {
  // The value that stands for each value.
  std::vector<ValueId> same(graph.values.size());
  std::iota(same.begin(), same.end(), 0);
  std::map<std::pair<const std::byte*, size_t>, ValueId> constants;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (graph.values[i].constant == nullptr) continue;
    const auto bytes = graph.values[i].constant->bytes();
    if (bytes.empty()) continue;
    const auto [known, is_new] = constants.emplace(
        std::pair(bytes.data(), bytes.size()), static_cast<ValueId>(i));
    if (!is_new && graph.values[known->second].type == graph.values[i].type) {
      same[i] = known->second;
    }
  }
  // Calls with equal inputs are candidates; their functions decide.
  std::map<std::vector<ValueId>, std::vector<const Call*>> by_inputs;
  std::vector<Call> kept;
  kept.reserve(graph.calls.size());
  for (Call& call : graph.calls) {
    for (ValueId& id : call.inputs) id = same[id];
    std::vector<const Call*>& others = by_inputs[call.inputs];
    const Call* equal = nullptr;
    for (const Call* other : others) {
      if (other->op == call.op &&
          ir::StructuralEqual(*other->function, *call.function)) {
        equal = other;
        break;
      }
    }
    if (equal != nullptr) {
      for (size_t i = 0; i < call.outputs.size(); ++i) {
        same[call.outputs[i]] = equal->outputs[i];
      }
      continue;
    }
    kept.push_back(std::move(call));
    others.push_back(&kept.back());
  }
  graph.calls = std::move(kept);
  for (ValueId& id : graph.outputs) id = same[id];
  return graph;
}

}  // namespace tilefarm::graph
