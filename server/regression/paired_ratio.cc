#include "server/regression/paired_ratio.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/split_mix.h"
#include "server/regression/signed_rank.h"

namespace tilefarm::regression {
namespace {

// More calls than this fit no sample: one call would take less than a cycle.
constexpr double kMostCalls = 10'000'000;

bool IsTime(double seconds) { return std::isfinite(seconds) && seconds > 0; }

}  // namespace

absl::StatusOr<ClusterPlan> PlanCluster(double call_seconds,
                                        const ClusterPlanOptions& options) {
  if (!IsTime(call_seconds)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the time of a call must be positive, but is ", call_seconds));
  }
  ClusterPlan plan;
  const double calls = std::clamp(
      std::ceil(options.sample_seconds / call_seconds), 1.0, kMostCalls);
  plan.calls_per_sample = static_cast<int>(calls);
  const double round_seconds = 4 * calls * call_seconds;
  plan.rounds = static_cast<int>(
      std::clamp(std::floor(options.cluster_seconds / round_seconds),
                 static_cast<double>(options.fewest_rounds),
                 static_cast<double>(options.most_rounds)));
  plan.seconds = plan.rounds * round_seconds;
  return plan;
}

bool CandidateFirst(uint64_t seed, int64_t index) {
  uint64_t state = MixBits(seed) + kSplitMixStep * static_cast<uint64_t>(index);
  return (SplitMix(state) >> 63) != 0;
}

std::vector<bool> SampleOrder(bool candidate_first, int rounds) {
  std::vector<bool> order;
  order.reserve(4 * static_cast<size_t>(std::max(rounds, 0)));
  for (int round = 0; round < rounds; ++round) {
    for (const bool second : {false, true, true, false}) {
      order.push_back(second != candidate_first);
    }
  }
  return order;
}

absl::StatusOr<double> ClusterLogRatio(std::span<const Pair> pairs) {
  if (pairs.empty()) {
    return absl::InvalidArgumentError("a cluster has no pairs of samples");
  }
  std::vector<double> ratios;
  ratios.reserve(pairs.size());
  for (const Pair& pair : pairs) {
    for (const double seconds :
         {pair.baseline_seconds, pair.candidate_seconds}) {
      if (IsTime(seconds)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "the time of a sample must be positive, but is ", seconds));
    }
    // A difference of logarithms only changes its sign if the two are
    // exchanged. The logarithm of a quotient may differ in the last bit.
    ratios.push_back(std::log(pair.candidate_seconds) -
                     std::log(pair.baseline_seconds));
  }
  std::sort(ratios.begin(), ratios.end());
  const size_t n = ratios.size();
  return n % 2 == 1 ? ratios[n / 2] : (ratios[n / 2 - 1] + ratios[n / 2]) / 2;
}

absl::StatusOr<RatioInterval> EstimateRatio(std::span<const double> log_ratios,
                                            double level) {
  if (!(level > 0 && level < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a confidence level is between 0 and 1, but is ", level));
  }
  if (log_ratios.empty() ||
      log_ratios.size() > static_cast<size_t>(kMostRanked)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a ratio is estimated from 1 to ", kMostRanked,
                     " clusters, not from ", log_ratios.size()));
  }
  for (const double value : log_ratios) {
    if (!std::isfinite(value)) {
      return absl::InvalidArgumentError("a cluster's log-ratio is not finite");
    }
  }
  const CentreInterval centre = CentreOf(log_ratios, (1 - level) / 2);
  return RatioInterval{.ratio = std::exp(centre.centre),
                       .low = std::exp(centre.low),
                       .high = std::exp(centre.high),
                       .level = level,
                       .clusters = static_cast<int>(log_ratios.size())};
}

}  // namespace tilefarm::regression
