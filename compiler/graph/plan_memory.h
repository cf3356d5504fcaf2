// Assigns memory to the values of a graph: one arena of fixed size, in which
// values that are never needed at the same time share bytes.
#ifndef TILEFARM_COMPILER_GRAPH_PLAN_MEMORY_H_
#define TILEFARM_COMPILER_GRAPH_PLAN_MEMORY_H_

#include <cstdint>
#include <vector>

#include "compiler/graph/graph.h"

namespace tilefarm::graph {

enum class Storage : uint8_t {
  kNone,  // the value is not used
  kInput,
  kOutput,
  kArena,
  kConstant,
};

struct Place {
  Storage storage = Storage::kNone;
  // The number of the input or output; the offset in the arena in bytes; the
  // value that holds the constant.
  int64_t at = 0;
};

struct OutputCopy {
  Place from;
  int output = 0;
  int64_t bytes = 0;
};

struct MemoryPlan {
  std::vector<Place> places;  // per value
  // Per call: whether it only renames its input's elements and needs no code.
  std::vector<bool> is_alias;
  // Outputs that are inputs, constants, or repeat another output.
  std::vector<OutputCopy> copies;
  int64_t arena_bytes = 0;
  // The most bytes that are live at once: no plan needs less.
  int64_t largest_live_bytes = 0;
};

// Offsets are multiples of `alignment` bytes. The values of a "reshape" share
// the storage of its input, and parts that of the whole.
MemoryPlan PlanMemory(const Graph& graph, int64_t alignment = 64);

}  // namespace tilefarm::graph

#endif  // TILEFARM_COMPILER_GRAPH_PLAN_MEMORY_H_
