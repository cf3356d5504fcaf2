#include "compiler/graph/uses.h"

namespace tilefarm::graph {

Uses::Uses(const Graph& graph)
    : readers_(graph.values.size()),
      is_output_(graph.values.size()),
      producer_(graph.values.size(), -1) {
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    const int call = static_cast<int>(i);
    for (const ValueId id : graph.calls[i].inputs) {
      std::vector<int>& list = readers_[static_cast<size_t>(id)];
      if (list.empty() || list.back() != call) list.push_back(call);
    }
    for (const ValueId id : graph.calls[i].outputs) {
      producer_[static_cast<size_t>(id)] = call;
    }
  }
  for (const ValueId id : graph.outputs) {
    is_output_[static_cast<size_t>(id)] = true;
  }
}

std::optional<int> Uses::OnlyReader(ValueId id) const {
  const std::vector<int>& list = readers(id);
  if (is_output(id) || list.size() != 1) return std::nullopt;
  return list[0];
}

}  // namespace tilefarm::graph
