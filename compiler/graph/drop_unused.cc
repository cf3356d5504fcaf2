#include <iterator>
#include <utility>
#include <vector>

#include "compiler/graph/passes.h"

namespace tilefarm::graph {

Graph DropUnused(Graph graph) {
  std::vector<bool> used(graph.values.size());
  for (ValueId id : graph.outputs) used[id] = true;
  std::vector<Call> kept;
  for (auto call = graph.calls.rbegin(); call != graph.calls.rend(); ++call) {
    bool wanted = false;
    for (ValueId id : call->outputs) wanted |= used[id];
    if (!wanted) continue;
    for (ValueId id : call->inputs) used[id] = true;
    kept.push_back(std::move(*call));
  }
  graph.calls.assign(std::make_move_iterator(kept.rbegin()),
                     std::make_move_iterator(kept.rend()));
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (!used[i]) graph.values[i].constant = nullptr;
  }
  return graph;
}

}  // namespace tilefarm::graph
