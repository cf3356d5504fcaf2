#include "tests/perf/regression_gate/binomial_interval.h"

#include <cmath>

namespace tilefarm::regression {
namespace {

// P(X <= k) of n trials with probability p.
double Tail(int k, int n, double p) {
  if (k < 0) return 0;
  if (k >= n || p <= 0) return 1;
  if (p >= 1) return 0;
  double sum = 0;
  for (int i = 0; i <= k; ++i) {
    sum += std::exp(std::lgamma(n + 1.0) - std::lgamma(i + 1.0) -
                    std::lgamma(n - i + 1.0) + i * std::log(p) +
                    (n - i) * std::log1p(-p));
  }
  return sum;
}

// The p at which P(X <= k) is `tail`: it falls with p.
double Solve(int k, int n, double tail) {
  double low = 0, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (Tail(k, n, middle) > tail ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

RateInterval BinomialInterval(int successes, int trials, double error) {
  RateInterval interval;
  if (trials <= 0) return interval;
  if (successes > 0) {
    interval.low = Solve(successes - 1, trials, 1 - error / 2);
  }
  if (successes < trials) interval.high = Solve(successes, trials, error / 2);
  return interval;
}

}  // namespace tilefarm::regression
