#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "base/check.h"
#include "cost_model/cost_model.h"

namespace tilefarm::cost_model {
namespace {

// The k-th largest value, k >= 1.
float KthLargest(std::span<const float> values, int k) {
  std::vector<float> copy(values.begin(), values.end());
  std::nth_element(copy.begin(), copy.begin() + (k - 1), copy.end(),
                   std::greater<float>());
  return copy[static_cast<size_t>(k - 1)];
}

double TopKRecall(std::span<const float> predicted,
                  std::span<const float> truth, int k) {
  const float true_bar = KthLargest(truth, k);
  const float predicted_bar = KthLargest(predicted, k);
  int above = 0, above_hits = 0, tied = 0, tied_hits = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    // Any of several tied true values is correct.
    const bool right = truth[i] >= true_bar;
    if (predicted[i] > predicted_bar) {
      ++above;
      above_hits += right ? 1 : 0;
    } else if (predicted[i] == predicted_bar) {
      ++tied;
      tied_hits += right ? 1 : 0;
    }
  }
  // The ranks that the tied values share.
  const double places = k - above;
  return (above_hits + places * tied_hits / tied) / k;
}

}  // namespace

RankingMetrics ComputeRankingMetrics(std::span<const float> predicted,
                                     std::span<const float> truth, int k) {
  TF_CHECK(predicted.size() == truth.size());
  RankingMetrics metrics;
  metrics.samples = static_cast<int>(truth.size());
  metrics.k = std::clamp(k, 0, metrics.samples);
  double right = 0;
  int64_t pairs = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    for (size_t j = i + 1; j < truth.size(); ++j) {
      if (truth[i] == truth[j]) continue;
      ++pairs;
      if (predicted[i] == predicted[j]) {
        right += 0.5;
      } else if ((predicted[i] > predicted[j]) == (truth[i] > truth[j])) {
        right += 1;
      }
    }
  }
  metrics.pairwise_accuracy =
      pairs > 0 ? right / static_cast<double>(pairs) : 0.5;
  if (metrics.k > 0) {
    metrics.top_k_recall = TopKRecall(predicted, truth, metrics.k);
  }
  return metrics;
}

absl::Status CostModel::Merge(std::string_view /*bytes*/) {
  return absl::OkStatus();
}

}  // namespace tilefarm::cost_model
