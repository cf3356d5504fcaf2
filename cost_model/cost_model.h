// Predicts which candidates are fast.
#ifndef TILEFARM_COST_MODEL_COST_MODEL_H_
#define TILEFARM_COST_MODEL_COST_MODEL_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/rng.h"

namespace tilefarm::cost_model {

// Features of one candidate: one row of kColumns floats per buffer store (see
// feature_columns.h for every column).
struct FeatureRows {
  std::vector<float> values;  // rows x columns, row-major
  int rows = 0;
};

// A measured candidate. Only rows of the same `group` (task) are compared with
// each other. `score` is higher for faster ones: best_seconds / seconds in (0,
// 1], 0 for a failed one.
struct Sample {
  FeatureRows features;
  int64_t group = 0;
  float score = 0;
  // If > 0, the model computes the score, as best / seconds of the group: an
  // earlier sample's score falls when a faster one arrives.
  double seconds = 0;
  // The candidate's id. A sample replaces an earlier one of its group with the
  // same id, as after a repeated measurement. 0: no id.
  uint64_t id = 0;
  // Weight in training, in (0, 1]: below 1 for a time that is less certain.
  float weight = 1;
};

// How well the scores predicted before a training ranked its new samples.
struct RankingMetrics {
  int samples = 0;
  double pairwise_accuracy = 0;  // of pairs with different scores
  double top_k_recall = 0;       // share of the true top k in predicted top k
  int k = 0;
};

// Thread-safe: Predict uses a snapshot that Update swaps when it is done.
class CostModel {
 public:
  virtual ~CostModel() = default;
  // Higher is better; only the order is meaningful. All equal until trained.
  // Candidates whose rows have another number of columns get the lowest score.
  // No pointer is null.
  virtual std::vector<float> Predict(
      std::span<const FeatureRows* const> candidates) const = 0;
  // Adds samples and retrains, at a cost that does not grow with the number of
  // earlier samples. Returns the metrics of the model as it was before, on
  // these samples. InvalidArgument: rows of the wrong size.
  virtual absl::StatusOr<RankingMetrics> Update(
      std::span<const Sample> samples) = 0;
  // The trees and the samples that the next training starts from.
  virtual absl::StatusOr<std::string> Serialize() const = 0;
  // Replaces the model. DataLoss, without a change: damaged bytes, or those of
  // another kind of model or feature set.
  virtual absl::Status Load(std::string_view bytes) = 0;
  // Adds the samples of another model, as serialized, that this one does not
  // have, and retrains. DataLoss as for Load. A model that keeps no samples has
  // nothing to add.
  virtual absl::Status Merge(std::string_view bytes);
  // False until the first Update or Load.
  virtual bool trained() const = 0;
};

// For samples of one group. A pair with equal predictions counts half; if ties
// make the predicted top k ambiguous, the recall is the expected one. Without a
// pair of different scores, the accuracy is 0.5. `k` is at most the number of
// samples.
RankingMetrics ComputeRankingMetrics(std::span<const float> predicted,
                                     std::span<const float> truth, int k);

// Gradient-boosted trees. The result depends only on the seed, the samples and
// their order.
std::unique_ptr<CostModel> MakeXgboostModel(uint64_t seed);
// Random scores that depend only on the seed and the candidate's features.
std::unique_ptr<CostModel> MakeRandomModel(uint64_t seed);

}  // namespace tilefarm::cost_model

#endif  // TILEFARM_COST_MODEL_COST_MODEL_H_
