#include "cost_model/forest.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace tilefarm::cost_model {
namespace {

// Bytes of a stored node: column, threshold, left, right, flag.
constexpr uint64_t kNodeBytes = 20;
// Rows that are evaluated with a tree while it is in the cache.
constexpr size_t kRowsTogether = 256;

}  // namespace

absl::StatusOr<Forest> Forest::Create(
    const std::vector<std::vector<TreeNode>>& trees, int columns) {
  Forest forest;
  forest.lanes_.emplace(columns);
  for (const std::vector<TreeNode>& tree : trees) {
    const int32_t size = static_cast<int32_t>(tree.size());
    if (size == 0) return absl::InvalidArgumentError("a tree without nodes");
    const int32_t base = static_cast<int32_t>(forest.nodes_.size());
    forest.roots_.push_back(base);
    for (int32_t i = 0; i < size; ++i) {
      TreeNode node = tree[static_cast<size_t>(i)];
      if (!std::isfinite(node.threshold)) {
        return absl::InvalidArgumentError("a tree with a value not finite");
      }
      if (node.column >= 0) {
        if (node.column >= columns || node.left <= i || node.left >= size ||
            node.right <= i || node.right >= size) {
          return absl::InvalidArgumentError(
              absl::StrCat("a tree whose node ", i, " is out of range"));
        }
        node.left += base;
        node.right += base;
      }
      forest.nodes_.push_back(node);
    }
    if (forest.lanes_ && !forest.lanes_->Add(tree)) forest.lanes_.reset();
  }
  return forest;
}

float Forest::Walk(int32_t root, const float* row) const {
  const TreeNode* nodes = nodes_.data();
  const TreeNode* node = nodes + root;
  while (node->column >= 0) {
    const float value = row[node->column];
    // The direction is unpredictable: use a select instead of a branch.
    const bool left =
        (value == 0) ? node->missing_goes_left : (value < node->threshold);
    node = nodes + (left ? node->left : node->right);
  }
  return node->threshold;
}

float Forest::PredictRow(std::span<const float> row) const {
  float sum = 0;
  for (const int32_t root : roots_) sum += Walk(root, row.data());
  return sum;
}

std::vector<float> Forest::PredictAll(
    std::span<const FeatureRows* const> candidates) const {
  std::vector<const float*> rows;
  for (const FeatureRows* candidate : candidates) {
    if (candidate->rows <= 0) continue;
    const size_t columns =
        candidate->values.size() / static_cast<size_t>(candidate->rows);
    for (int r = 0; r < candidate->rows; ++r) {
      rows.push_back(candidate->values.data() +
                     static_cast<size_t>(r) * columns);
    }
  }
  std::vector<float> sums(rows.size(), 0);
  if (lanes_) {
    lanes_->AddSums(rows, sums);
  } else {
    for (size_t begin = 0; begin < rows.size(); begin += kRowsTogether) {
      const size_t end = std::min(begin + kRowsTogether, rows.size());
      for (const int32_t root : roots_) {
        for (size_t r = begin; r < end; ++r) sums[r] += Walk(root, rows[r]);
      }
    }
  }
  std::vector<float> out;
  out.reserve(candidates.size());
  size_t next = 0;
  for (const FeatureRows* candidate : candidates) {
    float sum = 0;
    for (int r = 0; r < candidate->rows; ++r) sum += sums[next++];
    out.push_back(sum);
  }
  return out;
}

float Forest::Predict(const FeatureRows& candidate) const {
  if (candidate.rows <= 0) return 0;
  const size_t columns =
      candidate.values.size() / static_cast<size_t>(candidate.rows);
  const std::span<const float> values = candidate.values;
  float sum = 0;
  for (int r = 0; r < candidate.rows; ++r) {
    sum +=
        PredictRow(values.subspan(static_cast<size_t>(r) * columns, columns));
  }
  return sum;
}

void Forest::Write(ByteWriter& writer) const {
  writer.U32(static_cast<uint32_t>(roots_.size()));
  for (size_t t = 0; t < roots_.size(); ++t) {
    const int32_t begin = roots_[t];
    const int32_t end = t + 1 < roots_.size()
                            ? roots_[t + 1]
                            : static_cast<int32_t>(nodes_.size());
    writer.U32(static_cast<uint32_t>(end - begin));
    for (int32_t i = begin; i < end; ++i) {
      const TreeNode& node = nodes_[static_cast<size_t>(i)];
      const bool leaf = node.column < 0;
      writer.U32(static_cast<uint32_t>(node.column));
      writer.F32(node.threshold);
      writer.U32(static_cast<uint32_t>(leaf ? 0 : node.left - begin));
      writer.U32(static_cast<uint32_t>(leaf ? 0 : node.right - begin));
      writer.U32(node.missing_goes_left ? 1 : 0);
    }
  }
}

absl::StatusOr<Forest> Forest::Read(ByteReader& reader, int columns) {
  const uint32_t count = reader.U32();
  if (!reader.Has(count, kNodeBytes)) {
    return absl::DataLossError("cost model: cut off");
  }
  std::vector<std::vector<TreeNode>> trees(count);
  for (std::vector<TreeNode>& tree : trees) {
    const uint32_t size = reader.U32();
    if (!reader.Has(size, kNodeBytes)) {
      return absl::DataLossError("cost model: cut off");
    }
    tree.resize(size);
    for (TreeNode& node : tree) {
      node.column = static_cast<int32_t>(reader.U32());
      node.threshold = reader.F32();
      node.left = static_cast<int32_t>(reader.U32());
      node.right = static_cast<int32_t>(reader.U32());
      node.missing_goes_left = reader.U32() != 0;
    }
  }
  absl::StatusOr<Forest> forest = Create(trees, columns);
  if (!forest.ok()) {
    return absl::DataLossError(
        absl::StrCat("cost model: ", forest.status().message()));
  }
  return forest;
}

}  // namespace tilefarm::cost_model
