// Calls of constants are replaced by their results. Results that are much
// larger than what they are made of stay calls where that saves memory and its
// traffic:
//
//   add(x, broadcast(c))        fusion reads c
//   matmul(x, dequantize(w))    w has 4 bits
//
// but not where a call that is fused with none of these reads them over and
// over, from a layout that it would rather choose itself:
//
//   conv2d(x, full(0.02))
#include <algorithm>
#include <cstddef>
#include <memory>
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
// A small file must not take all memory.
constexpr int64_t kMaxFoldedBytes = int64_t{1} << 30;

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

class Folding {
 public:
  explicit Folding(const Graph& graph)
      : graph_(graph), read_often_(AreReadOften(graph)) {}

  bool IsWorthIt(const Call& call) const {
    int64_t in = 0, out = 0;
    int64_t narrowest = sizeof(int64_t), widest = 0;  // bytes of an element
    bool read_often = false;
    for (ValueId id : call.inputs) {
      const Value& value = graph_.values[id];
      if (value.constant == nullptr) return false;
      in += value.type.num_bytes();
      narrowest = std::min<int64_t>(narrowest, value.type.dtype.bytes());
    }
    for (ValueId id : call.outputs) {
      const TensorType& type = graph_.values[id].type;
      out += type.num_bytes();
      widest = std::max<int64_t>(widest, type.dtype.bytes());
      read_often = read_often || read_often_[id];
    }
    return out <= kSmallBytes || out / kMaxGrowth <= in ||
           (read_often && narrowest >= widest && out <= kMaxFoldedBytes);
  }

 private:
  const Graph& graph_;
  const std::vector<bool> read_often_;
};

}  // namespace

absl::StatusOr<Graph> FoldConstants(Graph graph, const RunFunction& run) {
  const Folding folding(graph);
  std::vector<Call> kept;
  for (Call& call : graph.calls) {
    if (!folding.IsWorthIt(call)) {
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
