// One call instead of several.
#ifndef TILEFARM_COMPILER_GRAPH_MERGE_CALLS_H_
#define TILEFARM_COMPILER_GRAPH_MERGE_CALLS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace tilefarm::graph {

// The call that does what `members` (indices into graph.calls, ascending) do
// one after another. Its inputs are the members' inputs from outside, in order
// of first use; its outputs are `outputs`. Every other result of a member
// becomes an allocation of the merged function, so nothing outside may need it.
absl::StatusOr<Call> MergeCalls(const Graph& graph,
                                const std::vector<int>& members,
                                const std::vector<ValueId>& outputs);

// The graph with one call for each group of calls, where the last of them was;
// its outputs are those of the last one.
absl::StatusOr<Graph> MergeGroups(Graph graph,
                                  const std::vector<std::vector<int>>& groups);

}  // namespace tilefarm::graph

#endif  // TILEFARM_COMPILER_GRAPH_MERGE_CALLS_H_
