#include "compiler/graph/plan_memory.h"

#include <algorithm>
#include <utility>

namespace tilefarm::graph {
namespace {

int64_t RoundUp(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Bytes in the arena and the calls during which they are needed.
struct Block {
  ValueId root = 0;
  int64_t bytes = 0;
  int first = 0, last = 0;  // calls, inclusive
  int64_t offset = 0;
};

bool LiveTogether(const Block& a, const Block& b) {
  return a.first <= b.last && b.first <= a.last;
}

// The blocks that are live together with `block`, by offset.
std::vector<const Block*> Neighbours(const Block& block,
                                     const std::vector<const Block*>& placed) {
  std::vector<const Block*> found;
  for (const Block* other : placed) {
    if (LiveTogether(block, *other)) found.push_back(other);
  }
  return found;
}

// The lowest offset that is free while the block is live.
int64_t LowestOffset(const Block& block,
                     const std::vector<const Block*>& neighbours) {
  int64_t offset = 0;
  for (const Block* other : neighbours) {
    if (other->offset - offset >= block.bytes) break;
    offset = std::max(offset, other->offset + other->bytes);
  }
  return offset;
}

// The highest such offset with which the block ends at `end` or before;
// negative if there is none.
int64_t HighestOffset(const Block& block,
                      const std::vector<const Block*>& neighbours,
                      int64_t end) {
  int64_t offset = end - block.bytes;
  for (auto other = neighbours.rbegin(); other != neighbours.rend(); ++other) {
    if ((*other)->offset + (*other)->bytes <= offset) break;
    offset = std::min(offset, (*other)->offset - block.bytes);
  }
  return offset;
}

void Insert(const Block& block, std::vector<const Block*>& placed) {
  placed.insert(std::upper_bound(placed.begin(), placed.end(), &block,
                                 [](const Block* a, const Block* b) {
                                   return a->offset < b->offset;
                                 }),
                &block);
}

// Largest first, each at the lowest offset that is free while it is live
// (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
// Inference", 2020: greedy by size).
int64_t PlaceBySize(std::vector<Block>& blocks) {
  std::stable_sort(
      blocks.begin(), blocks.end(),
      [](const Block& a, const Block& b) { return a.bytes > b.bytes; });
  std::vector<const Block*> placed;
  int64_t end = 0;
  for (Block& block : blocks) {
    block.offset = LowestOffset(block, Neighbours(block, placed));
    end = std::max(end, block.offset + block.bytes);
    Insert(block, placed);
  }
  return end;
}

// In order of computation, in turns at the lower and the upper end of an arena
// of `limit` bytes: a chain then needs its largest pair of neighbours only.
int64_t PlaceAtBothEnds(std::vector<Block>& blocks, int64_t limit) {
  std::stable_sort(
      blocks.begin(), blocks.end(),
      [](const Block& a, const Block& b) { return a.first < b.first; });
  std::vector<const Block*> placed;
  int64_t end = 0;
  bool high = false;
  for (Block& block : blocks) {
    const std::vector<const Block*> neighbours = Neighbours(block, placed);
    block.offset = high ? HighestOffset(block, neighbours, limit) : -1;
    if (block.offset < 0) block.offset = LowestOffset(block, neighbours);
    end = std::max(end, block.offset + block.bytes);
    Insert(block, placed);
    high = !high;
  }
  return end;
}

// Places the blocks in the better of the two ways; returns the arena's size.
int64_t PlaceBlocks(std::vector<Block>& blocks, int64_t largest_live_bytes) {
  std::vector<Block> by_size = blocks;
  const int64_t size = PlaceBySize(by_size);
  if (size > largest_live_bytes) {
    const int64_t other = PlaceAtBothEnds(blocks, largest_live_bytes);
    if (other < size) return other;
  }
  blocks = std::move(by_size);
  return size;
}

int64_t LargestLiveBytes(const std::vector<Block>& blocks, size_t calls) {
  std::vector<int64_t> change(calls + 1);
  for (const Block& block : blocks) {
    change[block.first] += block.bytes;
    change[block.last + 1] -= block.bytes;
  }
  int64_t live = 0, most = 0;
  for (int64_t delta : change) most = std::max(most, live += delta);
  return most;
}

}  // namespace

MemoryPlan PlanMemory(const Graph& graph, int64_t alignment) {
  MemoryPlan plan;
  plan.places.resize(graph.values.size());
  plan.is_alias.resize(graph.calls.size());
  // The value whose storage each value uses.
  std::vector<ValueId> root(graph.values.size());
  for (size_t i = 0; i < graph.values.size(); ++i) {
    root[i] = WholeOf(graph, static_cast<ValueId>(i));
  }
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    const Call& call = graph.calls[i];
    if (call.op == kJoin) plan.is_alias[i] = true;
    if (call.op != "reshape" || call.inputs.size() != 1) continue;
    const TensorType& from = graph.values[call.inputs[0]].type;
    const TensorType& to = graph.values[call.outputs[0]].type;
    if (from.num_bytes() != to.num_bytes() || from.dtype != to.dtype) continue;
    plan.is_alias[i] = true;
    root[call.outputs[0]] = root[call.inputs[0]];
  }

  constexpr int kNever = -1;
  std::vector<int> first(graph.values.size(), kNever);
  std::vector<int> last(graph.values.size(), kNever);
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    if (plan.is_alias[i]) continue;
    const int now = static_cast<int>(i);
    for (ValueId id : graph.calls[i].outputs) {
      // The first part makes the whole.
      if (first[root[id]] == kNever) first[root[id]] = now;
      last[root[id]] = std::max(last[root[id]], now);
    }
    for (ValueId id : graph.calls[i].inputs) last[root[id]] = now;
  }

  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    plan.places[graph.inputs[i]] = {Storage::kInput, static_cast<int64_t>(i)};
  }
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (graph.values[i].constant != nullptr) {
      plan.places[i] = {Storage::kConstant, static_cast<int64_t>(i)};
    }
  }
  // An output is computed in the caller's memory where one output alone needs
  // the value.
  std::vector<int> copied_outputs;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const ValueId from = root[graph.outputs[i]];
    if (plan.places[from].storage == Storage::kNone) {
      plan.places[from] = {Storage::kOutput, static_cast<int64_t>(i)};
    } else {
      copied_outputs.push_back(static_cast<int>(i));
    }
  }

  std::vector<Block> blocks;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (first[i] == kNever || plan.places[i].storage != Storage::kNone) {
      continue;
    }
    blocks.push_back({static_cast<ValueId>(i),
                      RoundUp(graph.values[i].type.num_bytes(), alignment),
                      first[i], last[i]});
  }
  plan.largest_live_bytes = LargestLiveBytes(blocks, graph.calls.size());
  plan.arena_bytes = PlaceBlocks(blocks, plan.largest_live_bytes);
  for (const Block& block : blocks) {
    plan.places[block.root] = {Storage::kArena, block.offset};
  }
  for (size_t i = 0; i < graph.values.size(); ++i) {
    plan.places[i] = plan.places[root[i]];
  }
  for (int i : copied_outputs) {
    plan.copies.push_back({plan.places[graph.outputs[i]], i,
                           graph.values[graph.outputs[i]].type.num_bytes()});
  }
  return plan;
}

}  // namespace tilefarm::graph
