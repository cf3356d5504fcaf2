// Trees for many rows at once: one instruction evaluates a node for four rows,
// all nodes of a tree are evaluated, and the results select a leaf. No branch
// depends on a value, so none is mispredicted, and a tree of three levels takes
// a fifth of the instructions of walking row by row.
//
//   rows of candidates      columns of a block        tree of two levels
//   r0: a b c d ...         a: r0 r1 r2 r3 ...        m0 = a < 2
//   r1: a b c d ...    ->   b: r0 r1 r2 r3 ...   ->   m1 = b < 5, m2 = d < 1
//   ...                     ...                       m0 ? (m1 ? A : B)
//                                                        : (m2 ? C : D)
#ifndef TILEFARM_COST_MODEL_FOREST_LANES_H_
#define TILEFARM_COST_MODEL_FOREST_LANES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tilefarm::cost_model {

struct TreeNode;

// Immutable except for Add; thread-safe to read.
class ForestLanes {
 public:
  // Deeper trees are rejected: evaluating all their nodes costs more than a
  // walk.
  static constexpr int kMaxLevels = 5;

  explicit ForestLanes(int columns = 0) : columns_(columns) {}

  // Adds a tree whose children come after their parent; indices count from the
  // start of `nodes`. False, without a change, if it is too deep.
  bool Add(std::span<const TreeNode> nodes);

  // Adds to each row's sum the trees' values in the order of Add: the same
  // numbers, bit for bit, as walking each tree for each row. `rows` point to
  // `columns` values each; as many sums as rows.
  void AddSums(std::span<const float* const> rows, std::span<float> sums) const;

 private:
  static constexpr size_t kLanes = 4;
  // Rows per block: a block of columns fits into the L1 cache.
  static constexpr size_t kRowsTogether = 32;

  using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));
  using Bits = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));

  // How a node reads a column, in which 0 counts as missing. If a node sends
  // missing values in another direction than the comparison with 0 would, it
  // reads an infinity instead of 0.
  enum class Zero { kAsIs, kLowest, kHighest };
  struct Seen {
    int32_t column;
    Zero zero;
    bool operator==(const Seen&) const = default;
  };

  // A complete tree: a leaf on a higher level is moved below nodes whose
  // results do not matter.
  struct Tree {
    int32_t levels = 0;
    int32_t nodes = 0;   // first of 2^levels - 1, each level from left to right
    int32_t leaves = 0;  // first of 2^(levels - 1) pairs
  };
  struct Node {
    Floats threshold;
    int64_t offset;  // of its column in a block
  };
  // The two leaves below a node.
  struct Pair {
    Bits right;
    Bits change;  // right ^ change is the left one
  };

  size_t OffsetOf(Seen seen);
  void Fill(std::span<const TreeNode> nodes, size_t from, int levels,
            size_t node, const Tree& tree);
  void ReadBlock(std::span<const float* const> rows, float* block) const;
  template <int kLevels>
  void AddTree(const Tree& tree, const float* block, size_t rows,
               float* sums) const;
  template <int kLevels, size_t kLowest>
  static Bits Leaf(const Node* nodes, const Pair* pairs, size_t node,
                   const float* block);

  int columns_;
  std::vector<Tree> trees_;
  std::vector<Node> nodes_;
  std::vector<Pair> pairs_;
  std::vector<Seen> replaced_;  // appended to the original columns
};

}  // namespace tilefarm::cost_model

#endif  // TILEFARM_COST_MODEL_FOREST_LANES_H_
