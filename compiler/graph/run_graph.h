// Runs a graph call by call, without fusion or memory planning: what the
// compiled model must compute. For tests and for evaluation.
#ifndef TILEFARM_COMPILER_GRAPH_RUN_GRAPH_H_
#define TILEFARM_COMPILER_GRAPH_RUN_GRAPH_H_

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/builder.h"
#include "compiler/graph/graph.h"

namespace tilefarm::graph {

// The outputs for the inputs, each dense and row-major. InvalidArgument: the
// number or the size of an input is wrong.
absl::StatusOr<std::vector<TensorData>> RunGraph(
    const Graph& graph, std::span<const TensorData> inputs,
    const RunFunction& run);

}  // namespace tilefarm::graph

#endif  // TILEFARM_COMPILER_GRAPH_RUN_GRAPH_H_
