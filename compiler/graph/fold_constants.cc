// Calls of constants are replaced by their results. Results that are much
// larger than what they are made of stay calls where that saves memory and its
// traffic:
//
//   add(x, broadcast(c))        fusion reads c
//   matmul(x, dequantize(w))    w has 4 bits
//
// but not where a product reads what only repeats: it would be written in every
// run, and could not be packed ahead of time.
//
//   conv2d(x, full(0.02))
#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/graph/access_pattern.h"
#include "compiler/graph/passes.h"

namespace tilefarm::graph {
namespace {

// Results up to this size are folded whatever their inputs are.
constexpr int64_t kSmallBytes = 1 << 16;
// Larger ones are folded if they are at most this many times their inputs.
constexpr int64_t kMaxGrowth = 4;

// Per value: whether it depends on constants only.
std::vector<bool> AreConstant(const Graph& graph) {
  std::vector<bool> constant;
  for (const Value& value : graph.values) {
    constant.push_back(value.constant != nullptr);
  }
  for (const Call& call : graph.calls) {
    const bool all =
        std::all_of(call.inputs.begin(), call.inputs.end(),
                    [&](ValueId id) { return bool{constant[id]}; });
    for (ValueId id : call.outputs) constant[id] = all;
  }
  return constant;
}

// Per value: whether a call that is not injective reads it, or reads what other
// calls make of it and of constants.
std::vector<bool> AreReadOften(const Graph& graph) {
  const std::vector<bool> constant = AreConstant(graph);
  std::vector<bool> often(graph.values.size());
  for (auto call = graph.calls.rbegin(); call != graph.calls.rend(); ++call) {
    const bool now =
        std::all_of(call->outputs.begin(), call->outputs.end(),
                    [&](ValueId id) { return bool{constant[id]}; })
            ? std::any_of(call->outputs.begin(), call->outputs.end(),
                          [&](ValueId id) { return bool{often[id]}; })
            : !PatternOf(*call->function).injective;
    if (!now) continue;
    for (ValueId id : call->inputs) often[id] = true;
  }
  return often;
}

bool IsWorthFolding(const Graph& graph, const Call& call,
                    const std::vector<bool>& read_often) {
  int64_t in = 0, out = 0;
  int64_t narrowest = sizeof(int64_t), widest = 0;  // bytes of an element
  bool often = false;
  for (ValueId id : call.inputs) {
    const TensorType& type = graph.values[id].type;
    in += type.num_bytes();
    narrowest = std::min<int64_t>(narrowest, type.dtype.bytes());
  }
  for (ValueId id : call.outputs) {
    const TensorType& type = graph.values[id].type;
    out += type.num_bytes();
    widest = std::max<int64_t>(widest, type.dtype.bytes());
    often = often || read_often[id];
  }
  return out <= kSmallBytes || out / kMaxGrowth <= in ||
         (often && narrowest >= widest && out <= kMaxEvaluatedBytes);
}

// Replaces the calls of constants for which `worth(graph, call)` by their
// results.
template <typename Worth>
absl::StatusOr<Graph> Fold(Graph graph, const RunFunction& run,
                           const Worth& worth) {
  std::vector<Call> kept;
  for (Call& call : graph.calls) {
    const bool is_constant = std::all_of(
        call.inputs.begin(), call.inputs.end(),
        [&](ValueId id) { return graph.values[id].constant != nullptr; });
    if (!is_constant || !worth(graph, call)) {
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

}  // namespace

absl::StatusOr<Graph> FoldConstants(Graph graph, const RunFunction& run) {
  const std::vector<bool> read_often = AreReadOften(graph);
  return Fold(std::move(graph), run, [&](const Graph& now, const Call& call) {
    return IsWorthFolding(now, call, read_often);
  });
}

absl::StatusOr<Graph> FoldUnfused(Graph graph, const RunFunction& run) {
  const std::set<ValueId> outputs(graph.outputs.begin(), graph.outputs.end());
  TF_ASSIGN_OR_RETURN(
      graph,
      Fold(std::move(graph), run, [&](const Graph& now, const Call& call) {
        int64_t bytes = 0;
        bool is_output = false;
        for (ValueId id : call.outputs) {
          bytes += now.values[id].type.num_bytes();
          is_output = is_output || outputs.contains(id);
        }
        return !is_output && bytes <= kMaxEvaluatedBytes;
      }));
  return DropUnused(std::move(graph));
}

}  // namespace tilefarm::graph
