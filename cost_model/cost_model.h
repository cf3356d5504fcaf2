// Predicts which candidates are fast.
#ifndef TILEFARM_COST_MODEL_COST_MODEL_H_
#define TILEFARM_COST_MODEL_COST_MODEL_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/rng.h"

namespace tilefarm::cost_model {

// Features of one candidate: one row of kColumns floats a buffer store (see
// feature_columns.h for every column).
struct FeatureRows {
  std::vector<float> values;  // rows x columns, row-major
  int rows = 0;
};

// A measured candidate. Rows of one `group` (task) are compared with each
// other only. `score` is higher for faster: best_seconds / seconds in (0, 1],
// 0 for a failed one.
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

// How well the scores that were predicted before a training ranked its new
// samples.
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
  // Higher is better; only the order means something. All equal until trained;
  // candidates whose rows have another number of columns get the lowest score.
  virtual std::vector<float> Predict(
      std::span<const FeatureRows> candidates) const = 0;
  // The same for candidates given by pointers, none of which is null.
  virtual std::vector<float> PredictAll(
      std::span<const FeatureRows* const> candidates) const;
  // Adds samples and retrains, at a cost that does not grow with the number of
  // earlier samples. Returns the metrics of the model as it was before, on
  // these samples. InvalidArgument: rows of the wrong size.
  virtual absl::StatusOr<RankingMetrics> Update(
      std::span<const Sample> samples) = 0;
  // The trees and the samples that the next training starts from.
  virtual absl::StatusOr<std::string> Serialize() const = 0;
  // Replaces the model. DataLoss: damaged bytes, or those of another kind of
  // model or feature set; the model is left as it was.
  virtual absl::Status Load(std::string_view bytes) = 0;
  // Adds the samples of another model that this one does not have, from what
  // Serialize made of it, and retrains. DataLoss as Load. A model that keeps no
  // samples has nothing to add.
  virtual absl::Status Merge(std::string_view bytes);
  // False until the first Update or Load.
  virtual bool trained() const = 0;
};

// Of samples of one group. A pair that is tied in the prediction counts half;
// where ties leave open which ones are the predicted top k, the recall is the
// expected one. Without a pair of different scores the accuracy is 0.5. `k` is
// at most the number of samples.
RankingMetrics ComputeRankingMetrics(std::span<const float> predicted,
                                     std::span<const float> truth, int k);

// Gradient-boosted trees. The result depends only on the seed, the samples and
// their order.
std::unique_ptr<CostModel> MakeXgboostModel(uint64_t seed);
// Random scores, which depend only on the seed and the candidate's features.
std::unique_ptr<CostModel> MakeRandomModel(uint64_t seed);

}  // namespace tilefarm::cost_model

#endif  // TILEFARM_COST_MODEL_COST_MODEL_H_
