#include "base/statistics.h"

#include <algorithm>
#include <cmath>

namespace tilefarm {

MedianInterval MedianOf(std::vector<double> samples) {
  MedianInterval result;
  if (samples.empty()) return result;
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  result.median =
      n % 2 == 1 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
  // The number of samples below the true median is Binomial(n, 1/2). The
  // interval between order statistics r and n - 1 - r (from 0) misses it
  // with probability 2 P(X <= r): take the largest r that keeps 5 %.
  size_t rank = 0;
  double term = std::pow(0.5, static_cast<double>(n));  // P(X = 0)
  double below = term;
  while (rank + 1 < n / 2) {
    term *= static_cast<double>(n - rank) / static_cast<double>(rank + 1);
    if (2 * (below + term) > 0.05) break;
    below += term;
    ++rank;
  }
  result.low = samples[rank];
  result.high = samples[n - 1 - rank];
  return result;
}

}  // namespace tilefarm
