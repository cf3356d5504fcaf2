#include "cost_model/forest_lanes.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "cost_model/forest.h"

namespace tilefarm::cost_model {
namespace {

int LevelsBelow(std::span<const TreeNode> nodes, size_t node, int most) {
  if (nodes[node].column < 0) return 0;
  if (most == 0) return 1;
  const int left =
      LevelsBelow(nodes, static_cast<size_t>(nodes[node].left), most - 1);
  const int right =
      LevelsBelow(nodes, static_cast<size_t>(nodes[node].right), most - 1);
  return 1 + std::max(left, right);
}

}  // namespace

size_t ForestLanes::OffsetOf(Seen seen) {
  const auto columns = static_cast<size_t>(columns_);
  if (seen.zero == Zero::kAsIs) {
    return static_cast<size_t>(seen.column) * kRowsTogether;
  }
  const auto found = std::ranges::find(replaced_, seen);
  const auto at = static_cast<size_t>(found - replaced_.begin());
  if (found == replaced_.end()) replaced_.push_back(seen);
  return (columns + at) * kRowsTogether;
}

bool ForestLanes::Add(std::span<const TreeNode> nodes) {
  // A tree of one leaf also gets a node above it whose result does not matter.
  const int levels = std::max(1, LevelsBelow(nodes, 0, kMaxLevels));
  if (levels > kMaxLevels) return false;
  Tree tree;
  tree.levels = levels;
  tree.nodes = static_cast<int32_t>(nodes_.size());
  tree.leaves = static_cast<int32_t>(pairs_.size());
  nodes_.resize(nodes_.size() + (size_t{1} << levels) - 1);
  pairs_.resize(pairs_.size() + (size_t{1} << (levels - 1)));
  Fill(nodes, 0, levels, 0, tree);
  trees_.push_back(tree);
  return true;
}

// Copies the part of the tree from `from` on to `levels` levels below `node`,
// which is numbered within the tree, level by level.
void ForestLanes::Fill(std::span<const TreeNode> nodes, size_t from, int levels,
                       size_t node, const Tree& tree) {
  const TreeNode& source = nodes[from];
  const bool is_leaf = source.column < 0;
  Node& made = nodes_[static_cast<size_t>(tree.nodes) + node];
  made.threshold = Floats{} + (is_leaf ? 0.0f : source.threshold);
  Seen seen{std::max(source.column, 0), Zero::kAsIs};
  if (!is_leaf && source.missing_goes_left != (0 < source.threshold)) {
    seen.zero = source.missing_goes_left ? Zero::kLowest : Zero::kHighest;
  }
  made.offset = static_cast<int64_t>(OffsetOf(seen));
  const auto left = is_leaf ? from : static_cast<size_t>(source.left);
  const auto right = is_leaf ? from : static_cast<size_t>(source.right);
  if (levels > 1) {
    Fill(nodes, left, levels - 1, 2 * node + 1, tree);
    Fill(nodes, right, levels - 1, 2 * node + 2, tree);
    return;
  }
  const size_t first = (size_t{1} << (tree.levels - 1)) - 1;
  Pair& pair = pairs_[static_cast<size_t>(tree.leaves) + node - first];
  const auto high = std::bit_cast<int32_t>(nodes[right].threshold);
  pair.right = Bits{} + high;
  pair.change = Bits{} + (high ^ std::bit_cast<int32_t>(nodes[left].threshold));
}

// --- A block of rows, by columns ---------------------------------------------

void ForestLanes::ReadBlock(std::span<const float* const> rows,
                            float* block) const {
  const auto columns = static_cast<size_t>(columns_);
  const auto load = [](const float* from) {
    Floats lanes;
    std::memcpy(&lanes, from, sizeof(lanes));
    return lanes;
  };
  for (size_t r = 0; r < rows.size(); r += kLanes) {
    // Fill the block with copies of the last row, whose sums are not used.
    const float* from[kLanes];
    for (size_t i = 0; i < kLanes; ++i) {
      from[i] = rows[std::min(r + i, rows.size() - 1)];
    }
    size_t c = 0;
    for (; c + kLanes <= columns; c += kLanes) {
      const Floats a = load(from[0] + c), b = load(from[1] + c);
      const Floats d = load(from[2] + c), e = load(from[3] + c);
      const Floats ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
      const Floats ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      const Floats de_low = __builtin_shufflevector(d, e, 0, 4, 1, 5);
      const Floats de_high = __builtin_shufflevector(d, e, 2, 6, 3, 7);
      const Floats turned[kLanes] = {
          __builtin_shufflevector(ab_low, de_low, 0, 1, 4, 5),
          __builtin_shufflevector(ab_low, de_low, 2, 3, 6, 7),
          __builtin_shufflevector(ab_high, de_high, 0, 1, 4, 5),
          __builtin_shufflevector(ab_high, de_high, 2, 3, 6, 7)};
      for (size_t i = 0; i < kLanes; ++i) {
        std::memcpy(block + (c + i) * kRowsTogether + r, &turned[i],
                    sizeof(Floats));
      }
    }
    for (; c < columns; ++c) {
      for (size_t i = 0; i < kLanes; ++i) {
        block[c * kRowsTogether + r + i] = from[i][c];
      }
    }
  }
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float* to = block + columns * kRowsTogether;
  for (const Seen& seen : replaced_) {
    const float* from =
        block + static_cast<size_t>(seen.column) * kRowsTogether;
    const Floats instead =
        Floats{} + (seen.zero == Zero::kLowest ? -kInfinity : kInfinity);
    for (size_t r = 0; r < rows.size(); r += kLanes) {
      const Floats value = load(from + r);
      const Floats out = value == Floats{} ? instead : value;
      std::memcpy(to + r, &out, sizeof(out));
    }
    to += kRowsTogether;
  }
}

// --- Trees -------------------------------------------------------------------

// The leaf of the part of a tree with `kLevels` levels below `node`; the lowest
// level of the tree begins at node `kLowest`.
template <int kLevels, size_t kLowest>
[[gnu::always_inline]] inline ForestLanes::Bits ForestLanes::Leaf(
    const Node* nodes, const Pair* pairs, size_t node, const float* block) {
  Floats value;
  std::memcpy(&value, block + nodes[node].offset, sizeof(value));
  const Bits goes_left = value < nodes[node].threshold;
  if constexpr (kLevels == 1) {
    const Pair& pair = pairs[node - kLowest];
    return pair.right ^ (goes_left & pair.change);
  } else {
    const Bits left =
        Leaf<kLevels - 1, kLowest>(nodes, pairs, 2 * node + 1, block);
    const Bits right =
        Leaf<kLevels - 1, kLowest>(nodes, pairs, 2 * node + 2, block);
    return right ^ (goes_left & (left ^ right));
  }
}

template <int kLevels>
void ForestLanes::AddTree(const Tree& tree, const float* block, size_t rows,
                          float* sums) const {
  const Node* nodes = nodes_.data() + tree.nodes;
  const Pair* pairs = pairs_.data() + tree.leaves;
  constexpr size_t kLowest = (size_t{1} << (kLevels - 1)) - 1;
  for (size_t r = 0; r < rows; r += kLanes) {
    const Bits leaf = Leaf<kLevels, kLowest>(nodes, pairs, 0, block + r);
    Floats sum;
    std::memcpy(&sum, sums + r, sizeof(sum));
    sum += std::bit_cast<Floats>(leaf);
    std::memcpy(sums + r, &sum, sizeof(sum));
  }
}

void ForestLanes::AddSums(std::span<const float* const> rows,
                          std::span<float> sums) const {
  static constexpr decltype(&ForestLanes::AddTree<1>) kAdd[kMaxLevels] = {
      &ForestLanes::AddTree<1>, &ForestLanes::AddTree<2>,
      &ForestLanes::AddTree<3>, &ForestLanes::AddTree<4>,
      &ForestLanes::AddTree<5>};
  if (trees_.empty()) return;
  const size_t seen = static_cast<size_t>(columns_) + replaced_.size();
  std::vector<float> block(seen * kRowsTogether);
  for (size_t begin = 0; begin < rows.size(); begin += kRowsTogether) {
    const size_t count = std::min(kRowsTogether, rows.size() - begin);
    ReadBlock(rows.subspan(begin, count), block.data());
    float together[kRowsTogether] = {};
    std::copy_n(sums.begin() + static_cast<ptrdiff_t>(begin), count, together);
    for (const Tree& tree : trees_) {
      (this->*kAdd[tree.levels - 1])(tree, block.data(), count, together);
    }
    std::copy_n(together, count, sums.begin() + static_cast<ptrdiff_t>(begin));
  }
}

}  // namespace tilefarm::cost_model
