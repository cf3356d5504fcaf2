#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/graph/passes.h"

namespace tilefarm::graph {
namespace {

// Results up to this size are folded whatever their inputs are.
constexpr int64_t kSmallBytes = 1 << 16;
// Larger ones are folded if they are at most this many times their inputs.
constexpr int64_t kMaxGrowth = 4;

bool IsWorthFolding(const Graph& graph, const Call& call) {
  int64_t in = 0, out = 0;
  for (ValueId id : call.inputs) {
    if (graph.values[id].constant == nullptr) return false;
    in += graph.values[id].type.num_bytes();
  }
  for (ValueId id : call.outputs) out += graph.values[id].type.num_bytes();
  return out <= kSmallBytes || out / kMaxGrowth <= in;
}

}  // namespace

absl::StatusOr<Graph> FoldConstants(Graph graph, const RunFunction& run) {
  std::vector<Call> kept;
  for (Call& call : graph.calls) {
    if (!IsWorthFolding(graph, call)) {
      kept.push_back(std::move(call));
      continue;
    }
    TF_ASSIGN_OR_RETURN(std::vector<TensorData> results,
                        EvaluateCall(graph, call, run));
    for (size_t i = 0; i < results.size(); ++i) {
      graph.values[call.outputs[i]].constant =
          std::make_shared<const TensorData>(std::move(results[i]));
    }
  }
  graph.calls = std::move(kept);
  return graph;
}

}  // namespace tilefarm::graph
