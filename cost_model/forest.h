// A representation of regression trees for prediction without locks and without
// XGBoost. Stored trees are checked before they are used.
#ifndef TILEFARM_COST_MODEL_FOREST_H_
#define TILEFARM_COST_MODEL_FOREST_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/byte_stream.h"
#include "cost_model/cost_model.h"
#include "cost_model/forest_lanes.h"

namespace tilefarm::cost_model {

// A value 0 of a feature counts as missing, as in training.
struct TreeNode {
  // -1: a leaf, whose value is `threshold`.
  int32_t column = -1;
  float threshold = 0;
  // Children come after their parent, so every walk ends.
  int32_t left = 0, right = 0;  // left: feature < threshold
  bool missing_goes_left = false;
};

// Immutable once made; thread-safe to read.
class Forest {
 public:
  // InvalidArgument: a child or column out of range.
  static absl::StatusOr<Forest> Create(
      const std::vector<std::vector<TreeNode>>& trees, int columns);
  Forest() = default;

  // The sum of all trees for one row of `columns` values.
  float PredictRow(std::span<const float> row) const;
  // The sum over a candidate's rows.
  float Predict(const FeatureRows& candidate) const;
  // The same for many candidates, whose rows have as many columns as the
  // forest. The results are exactly those of Predict.
  std::vector<float> PredictAll(
      std::span<const FeatureRows* const> candidates) const;
  int trees() const { return static_cast<int>(roots_.size()); }

  void Write(ByteWriter& writer) const;
  // DataLoss if the bytes are not a forest.
  static absl::StatusOr<Forest> Read(ByteReader& reader, int columns);

 private:
  // The leaf of the tree for the row.
  float Walk(int32_t root, const float* row) const;

  std::vector<int32_t> roots_;
  std::vector<TreeNode> nodes_;  // children as indices into this
  // The same trees, for many rows at once; none if a tree is too deep for it.
  std::optional<ForestLanes> lanes_;
};

}  // namespace tilefarm::cost_model

#endif  // TILEFARM_COST_MODEL_FOREST_H_
