// Training with XGBoost. The only place that calls the library.
#ifndef TILEFARM_COST_MODEL_XGBOOST_TRAINER_H_
#define TILEFARM_COST_MODEL_XGBOOST_TRAINER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "cost_model/forest.h"

namespace tilefarm::cost_model {

// Candidates and their rows in a matrix. The model learns the sum over the rows
// of a candidate.
struct TrainingSet {
  int columns = 0;
  std::vector<float> values;   // row-major
  std::vector<int> rows;       // of each candidate, in order
  std::vector<float> targets;  // of each candidate
  std::vector<float> weights;  // of each candidate, mean about 1
};

// The defaults gave the best results on measured schedules of a matmul: many
// small trees rank candidates better than few large ones, and cost less.
struct TrainingOptions {
  uint64_t seed = 0;
  int rounds = 100;
  int max_depth = 3;
  double learning_rate = 0.2;
  int max_bins = 32;
  double column_share = 0.3;  // share of the columns tried at each split
  double l2_penalty = 2;
};

struct TrainingResult {
  Forest forest;
  // The library's own sums for the candidates, which `forest` must reproduce.
  std::vector<float> fitted;
};

// Uses one thread and is deterministic. Internal: the library failed.
absl::StatusOr<TrainingResult> Train(const TrainingSet& set,
                                     const TrainingOptions& options);

}  // namespace tilefarm::cost_model

#endif  // TILEFARM_COST_MODEL_XGBOOST_TRAINER_H_
