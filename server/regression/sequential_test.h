// Decides between slower, faster and the same, cluster by cluster, with error
// rates that hold although one looks repeatedly.
//
//   TF_ASSIGN_OR_RETURN(auto test, SequentialTest::Create(options));
//   while (test.clusters_to_next_look() > 0 && budget left) {
//     ... measure that many clusters, in any number of processes at once
//     TF_RETURN_IF_ERROR(test.Add(log_ratio));   // each
//   }
//   test.Finish();
//   test.verdict(), test.interval()
//
// The test looks at a few fixed numbers of clusters. Each look spends an equal
// share of the error, and makes an exact signed-rank interval at that level, so
// the probability that any look's interval misses the ratio is `error` at most,
// by the union bound. This needs no joint distribution of the looks. From the
// interval follows the verdict:
//
//         -threshold    0    +threshold
//   ----------+---------+---------+----------> ratio
//      [faster]   [    same    ]   [slower]        interval within: decided
//           [ go on ]         [ go on ]            across a bound: go on
//
// so "slower" says that the ratio exceeds the threshold, not only that it
// exceeds 1. A change close to the threshold stays inconclusive.
// docs/decisions/measurement/sequential-looks.md has the error rates.
#ifndef TILEFARM_SERVER_REGRESSION_SEQUENTIAL_TEST_H_
#define TILEFARM_SERVER_REGRESSION_SEQUENTIAL_TEST_H_

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/regression/paired_ratio.h"

namespace tilefarm::regression {

enum class Verdict { kSlower, kFaster, kSame, kInconclusive };

// "slower", "faster", "same", "inconclusive"
std::string_view VerdictName(Verdict verdict);

// The verdict that an interval allows for the bounds 1 + threshold and
// 1 / (1 + threshold).
Verdict VerdictOf(const RatioInterval& interval, double threshold);

struct SequentialOptions {
  // Changes up to this count as none: 0.03 is 3 %.
  double threshold = 0.03;
  // The probability that the interval misses the ratio at some look. Where
  // several benchmarks are judged together, this benchmark's share
  // (GateOptions).
  double error = 0.01;
  // The last look.
  int most_clusters = 48;
  int looks = 6;
};

// Not thread-safe. A function of the options and the added values: adding the
// same values again gives the same answer, so that a test can be restored.
class SequentialTest {
 public:
  // InvalidArgument: a value out of range, or so small an error that
  // most_clusters can never decide (the message says how many would do).
  static absl::StatusOr<SequentialTest> Create(
      const SequentialOptions& options);

  // How many more clusters until the next look; 0: settled. Those clusters are
  // needed whatever they say, so they can be measured concurrently.
  int clusters_to_next_look() const;
  // InvalidArgument: not finite. FailedPrecondition: settled.
  absl::Status Add(double log_ratio);
  // The budget is spent or no device is left: looks once more, with the share
  // of the next look, and settles. The reason to stop must not be what was
  // measured. Nothing happens if it is settled.
  void Finish();

  bool settled() const { return settled_; }
  // kInconclusive until it is settled, and where it settled without an answer.
  Verdict verdict() const { return verdict_; }
  // Of the last look; before the first one low is 0 and high is infinite, and
  // the ratio is the estimate from all clusters so far.
  const RatioInterval& interval() const { return interval_; }
  std::span<const double> log_ratios() const { return log_ratios_; }
  const SequentialOptions& options() const { return options_; }
  // The numbers of clusters at which it looks, ascending.
  std::span<const int> looks() const { return looks_; }

 private:
  explicit SequentialTest(const SequentialOptions& options)
      : options_(options) {}
  void Look();

  SequentialOptions options_;
  std::vector<int> looks_;
  size_t next_look_ = 0;
  std::vector<double> log_ratios_;
  RatioInterval interval_;
  Verdict verdict_ = Verdict::kInconclusive;
  bool settled_ = false;
};

}  // namespace tilefarm::regression

#endif  // TILEFARM_SERVER_REGRESSION_SEQUENTIAL_TEST_H_
