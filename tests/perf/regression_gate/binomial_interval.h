// The exact confidence interval of a rate (Clopper and Pearson, 1934).
#ifndef TILEFARM_TESTS_PERF_REGRESSION_GATE_BINOMIAL_INTERVAL_H_
#define TILEFARM_TESTS_PERF_REGRESSION_GATE_BINOMIAL_INTERVAL_H_

namespace tilefarm::regression {

struct RateInterval {
  double low = 0, high = 1;
};

// Of `successes` among `trials`, with confidence 1 - error. [0, 1] of no
// trials.
RateInterval BinomialInterval(int successes, int trials, double error = 0.05);

}  // namespace tilefarm::regression

#endif  // TILEFARM_TESTS_PERF_REGRESSION_GATE_BINOMIAL_INTERVAL_H_
