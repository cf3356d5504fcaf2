// Wilcoxon's signed-rank statistic (Wilcoxon, 1945): exact tail probabilities,
// and the interval of a centre of symmetry that follows from them
// (Hodges and Lehmann, 1963; Hollander, Wolfe and Chicken, 2014, section 3.7).
// Nothing is assumed of the distribution except that it is symmetric about the
// centre; moments need not exist.
#ifndef TILEFARM_SERVER_REGRESSION_SIGNED_RANK_H_
#define TILEFARM_SERVER_REGRESSION_SIGNED_RANK_H_

#include <cstdint>
#include <span>

namespace tilefarm::regression {

// The most values that these functions take: their tables have n^2 entries.
inline constexpr int kMostRanked = 256;

// P(W <= w) if W is the sum of those ranks of 1..n whose sign, a fair coin, is
// positive; 0 <= n <= kMostRanked. Exact up to rounding.
double SignedRankTail(int n, int64_t w);

// The largest w with P(W <= w) <= level; -1 if P(W <= 0) = 2^-n exceeds it.
int64_t SignedRankCritical(int n, double level);

// The fewest values for which an interval that misses the centre on either side
// with probability `tail` at most is bounded: the least n with 2^-n <= tail.
// 0 < tail <= 0.5.
int FewestRanked(double tail);

struct CentreInterval {
  double centre = 0;         // the median of the Walsh averages
  double low = 0, high = 0;  // may be infinite: see FewestRanked
};

// The Hodges-Lehmann estimate and the interval of values that the one-sided
// tests, each at level `tail`, do not reject. `values`: finite, 1 to
// kMostRanked of them.
CentreInterval CentreOf(std::span<const double> values, double tail);

}  // namespace tilefarm::regression

#endif  // TILEFARM_SERVER_REGRESSION_SIGNED_RANK_H_
