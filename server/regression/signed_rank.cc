#include "server/regression/signed_rank.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/check.h"

namespace tilefarm::regression {
namespace {

// P(W = 0), P(W = 1), ... P(W = most). One rank after the other is added with
// either sign.
std::vector<double> Probabilities(int n, int64_t most) {
  std::vector<double> probability(static_cast<size_t>(most) + 1, 0);
  probability[0] = 1;
  for (int rank = 1; rank <= n; ++rank) {
    for (int64_t w = most; w >= 0; --w) {
      double& p = probability[static_cast<size_t>(w)];
      p *= 0.5;
      if (w >= rank) p += 0.5 * probability[static_cast<size_t>(w - rank)];
    }
  }
  return probability;
}

int64_t Largest(int n) { return static_cast<int64_t>(n) * (n + 1) / 2; }

}  // namespace

double SignedRankTail(int n, int64_t w) {
  TF_CHECK(n >= 0 && n <= kMostRanked);
  if (w < 0) return 0;
  if (w >= Largest(n)) return 1;
  double sum = 0;
  for (const double p : Probabilities(n, w)) sum += p;
  return std::min(sum, 1.0);
}

int64_t SignedRankCritical(int n, double level) {
  TF_CHECK(n >= 0 && n <= kMostRanked);
  const std::vector<double> probability = Probabilities(n, Largest(n));
  double sum = 0;
  int64_t w = -1;
  for (const double p : probability) {
    sum += p;
    if (sum > level) break;
    ++w;
  }
  return w;
}

int FewestRanked(double tail) {
  TF_CHECK(tail > 0 && tail <= 0.5);
  int n = 1;
  while (std::ldexp(1.0, -n) > tail) ++n;
  return n;
}

CentreInterval CentreOf(std::span<const double> values, double tail) {
  const size_t n = values.size();
  TF_CHECK(n >= 1 && n <= static_cast<size_t>(kMostRanked));
  std::vector<double> averages;
  averages.reserve(n * (n + 1) / 2);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i; j < n; ++j) {
      averages.push_back((values[i] + values[j]) / 2);
    }
  }
  std::sort(averages.begin(), averages.end());
  const size_t count = averages.size();
  CentreInterval result;
  result.centre = count % 2 == 1
                      ? averages[count / 2]
                      : (averages[count / 2 - 1] + averages[count / 2]) / 2;
  // W of the values less a centre is the number of Walsh averages above it. The
  // interval is closed, which with ties makes it wider than needed, not
  // narrower.
  const int64_t critical = SignedRankCritical(static_cast<int>(n), tail);
  if (critical < 0) {
    result.low = -std::numeric_limits<double>::infinity();
    result.high = std::numeric_limits<double>::infinity();
    return result;
  }
  const auto rank = static_cast<size_t>(critical);
  result.low = averages[rank];
  result.high = averages[count - 1 - rank];
  return result;
}

}  // namespace tilefarm::regression
