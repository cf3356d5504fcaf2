#include "tests/perf/regression_gate/binomial_interval.h"

#include <gtest/gtest.h>

namespace tilefarm::regression {
namespace {

void ExpectInterval(int successes, int trials, double low, double high) {
  const RateInterval interval = BinomialInterval(successes, trials);
  EXPECT_NEAR(interval.low, low, 1e-4) << successes << " of " << trials;
  EXPECT_NEAR(interval.high, high, 1e-4) << successes << " of " << trials;
}

// Values that every table of Clopper-Pearson intervals has.
TEST(BinomialIntervalTest, IsThatOfClopperAndPearson) {
  ExpectInterval(0, 10, 0, 0.3085);
  ExpectInterval(10, 10, 0.6915, 1);
  ExpectInterval(5, 10, 0.1871, 0.8129);
  ExpectInterval(1, 20, 0.0013, 0.2487);
  ExpectInterval(0, 400, 0, 0.00918);
  ExpectInterval(90, 100, 0.8238, 0.9510);
}

TEST(BinomialIntervalTest, NoTrialsSayNothing) { ExpectInterval(0, 0, 0, 1); }

}  // namespace
}  // namespace tilefarm::regression
