// Which calls read each value of a graph.
#ifndef TILEFARM_COMPILER_GRAPH_USES_H_
#define TILEFARM_COMPILER_GRAPH_USES_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "compiler/graph/graph.h"

namespace tilefarm::graph {

class Uses {
 public:
  explicit Uses(const Graph& graph);

  // The number of values.
  size_t size() const { return readers_.size(); }
  // The calls that read the value, ascending, each once.
  const std::vector<int>& readers(ValueId id) const {
    return readers_[static_cast<size_t>(id)];
  }
  bool is_output(ValueId id) const {
    return is_output_[static_cast<size_t>(id)];
  }
  // The call that computes the value; -1 for inputs and constants.
  int producer(ValueId id) const { return producer_[static_cast<size_t>(id)]; }
  // The only call that reads the value; nullopt if there are several or none,
  // or if the value is an output.
  std::optional<int> OnlyReader(ValueId id) const;

 private:
  std::vector<std::vector<int>> readers_;
  std::vector<bool> is_output_;
  std::vector<int> producer_;
};

}  // namespace tilefarm::graph

#endif  // TILEFARM_COMPILER_GRAPH_USES_H_
