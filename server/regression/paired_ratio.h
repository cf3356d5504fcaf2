// The ratio of a candidate's time to its baseline's, from interleaved pairs.
//
// Samples of one process are not independent: its pages, the offsets of its
// stack and heap and the core's clock are drawn once and shift all of its
// samples. The unit of inference is therefore the *cluster*: one process that
// loads both artifacts and times them alternately. A cluster gives one number,
// the median of the logarithms of its pairs' ratios. Many samples in one
// process make this number more exact, but only more processes make the
// estimate of the ratio more exact.
//
// Both artifacts run on the same buffers: those of their own would differ in
// their pages, which costs more than most regressions. They are two libraries
// to the loader, so their SONAMEs differ, or they have none.
//
// Which artifact of a cluster comes first - is loaded first and opens the first
// round - is a fair coin, independent of all others (CandidateFirst). Within a
// cluster the order is ABBA, so a linear drift cancels. If both artifacts are
// equally fast, exchanging them changes only the sign of the cluster's
// log-ratio. Whatever the machine does meanwhile (load of other processes,
// throttling, drift over hours, heavy tails), the signs are then independent
// fair coins, and tests by signed ranks hold their level without any assumption
// on the noise.
#ifndef TILEFARM_SERVER_REGRESSION_PAIRED_RATIO_H_
#define TILEFARM_SERVER_REGRESSION_PAIRED_RATIO_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tilefarm::regression {

// Times of one call in two neighbouring samples of one process.
struct Pair {
  double baseline_seconds = 0;
  double candidate_seconds = 0;
};

// What one process is asked to do.
struct ClusterPlan {
  // Rounds of two pairs: A B B A, where A is the artifact that comes first.
  int rounds = 0;
  // Calls of the artifact in a sample, so that the clock's resolution and the
  // cost of reading it do not matter.
  int calls_per_sample = 1;
  // Device time of the samples, without process start and loading.
  double seconds = 0;
};

struct ClusterPlanOptions {
  // A sample lasts this long at least, unless one call is longer. Short samples
  // are good: fewer of them are hit by an interruption.
  double sample_seconds = 0.0005;
  // Device time of a cluster. More of it helps only until the noise within the
  // process is below that between processes.
  double cluster_seconds = 0.04;
  // Bounds of the rounds. The lower one wins over cluster_seconds.
  int fewest_rounds = 4;
  int most_rounds = 64;
};

// For an artifact whose call takes `call_seconds`, the slower of the two.
// InvalidArgument: a time that is not positive and finite.
absl::StatusOr<ClusterPlan> PlanCluster(double call_seconds,
                                        const ClusterPlanOptions& options = {});

// The coin of cluster `index` (from 0): whether the candidate comes first. The
// same on every platform; `seed` must be drawn afresh for each comparison, and
// screening and confirmation need different ones.
bool CandidateFirst(uint64_t seed, int64_t index);

// The order of the samples of one cluster: true is the candidate. 4 * rounds
// elements.
std::vector<bool> SampleOrder(bool candidate_first, int rounds);

// The median of log(candidate / baseline) over the pairs. Exchanging candidate
// and baseline of every pair changes its sign and nothing else.
// InvalidArgument: no pairs, or a time that is not positive and finite.
absl::StatusOr<double> ClusterLogRatio(std::span<const Pair> pairs);

// A ratio candidate / baseline with a confidence interval: 1.05 is 5 % slower.
struct RatioInterval {
  double ratio = 1;
  // 0 and infinity: too few clusters for any bound.
  double low = 0, high = 0;
  double level = 0;  // of confidence, two-sided: 0.99
  int clusters = 0;  // 0: nothing was measured, and the rest means nothing
};

// The Hodges-Lehmann estimate over clusters and its signed-rank interval. For
// one look at a fixed number of clusters; sequential_test.h has the interval
// that stays valid when one looks repeatedly. InvalidArgument: no values, more
// than kMostRanked (signed_rank.h), one that is not finite, or a level outside
// (0, 1).
absl::StatusOr<RatioInterval> EstimateRatio(std::span<const double> log_ratios,
                                            double level);

}  // namespace tilefarm::regression

#endif  // TILEFARM_SERVER_REGRESSION_PAIRED_RATIO_H_
