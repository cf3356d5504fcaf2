#include "server/regression/sequential_test.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "server/regression/signed_rank.h"

namespace tilefarm::regression {
namespace {

// `count` numbers of clusters in a geometric series, from the fewest that can
// decide to the most. Fewer if they coincide.
std::vector<int> PlanLooks(int fewest, int most, int count) {
  std::vector<int> looks;
  for (int i = 0; i < count; ++i) {
    const double share = count == 1 ? 1 : static_cast<double>(i) / (count - 1);
    const double clusters =
        fewest * std::pow(static_cast<double>(most) / fewest, share);
    const int rounded = static_cast<int>(std::lround(clusters));
    if (looks.empty() || rounded > looks.back()) looks.push_back(rounded);
  }
  return looks;
}

// Half of the error for each side, shared equally by the looks.
double TailOf(const SequentialOptions& options) {
  return options.error / 2 / options.looks;
}

}  // namespace

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kSlower:
      return "slower";
    case Verdict::kFaster:
      return "faster";
    case Verdict::kSame:
      return "same";
    case Verdict::kInconclusive:
      return "inconclusive";
  }
  return "inconclusive";
}

Verdict VerdictOf(const RatioInterval& interval, double threshold) {
  const double slower = 1 + threshold;
  const double faster = 1 / slower;
  if (interval.clusters == 0) return Verdict::kInconclusive;
  if (interval.low > slower) return Verdict::kSlower;
  if (interval.high < faster) return Verdict::kFaster;
  if (interval.low > faster && interval.high < slower) return Verdict::kSame;
  return Verdict::kInconclusive;
}

absl::StatusOr<SequentialTest> SequentialTest::Create(
    const SequentialOptions& options) {
  if (!(options.threshold > 0 && options.threshold <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a threshold is above 0 and at most 1, but is ", options.threshold));
  }
  if (!(options.error > 0 && options.error <= 0.5)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an error is above 0 and at most 0.5, but is ", options.error));
  }
  if (options.most_clusters < 1 || options.most_clusters > kMostRanked) {
    return absl::InvalidArgumentError(
        absl::StrCat("a test takes 1 to ", kMostRanked, " clusters, not ",
                     options.most_clusters));
  }
  if (options.looks < 1 || options.looks > options.most_clusters) {
    return absl::InvalidArgumentError(
        absl::StrCat("a test of ", options.most_clusters, " clusters has 1 to ",
                     options.most_clusters, " looks, not ", options.looks));
  }
  const int fewest = FewestRanked(TailOf(options));
  if (fewest > options.most_clusters) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an error of ", options.error, " with ", options.looks,
        " looks takes at least ", fewest, " clusters, and at most ",
        options.most_clusters, " are allowed"));
  }
  SequentialTest test(options);
  test.looks_ = PlanLooks(fewest, options.most_clusters, options.looks);
  test.interval_.low = 0;
  test.interval_.high = std::numeric_limits<double>::infinity();
  test.interval_.level = 1 - options.error;
  return test;
}

int SequentialTest::clusters_to_next_look() const {
  if (settled_) return 0;
  return looks_[next_look_] - static_cast<int>(log_ratios_.size());
}

absl::Status SequentialTest::Add(double log_ratio) {
  if (settled_) {
    return absl::FailedPreconditionError("the test is settled");
  }
  if (!std::isfinite(log_ratio)) {
    return absl::InvalidArgumentError("a cluster's log-ratio is not finite");
  }
  log_ratios_.push_back(log_ratio);
  if (clusters_to_next_look() == 0) {
    Look();
  } else if (next_look_ == 0) {
    // An estimate to show, without an interval: that would spend the error.
    interval_.ratio = std::exp(CentreOf(log_ratios_, 0.5).centre);
    interval_.clusters = static_cast<int>(log_ratios_.size());
  }
  return absl::OkStatus();
}

void SequentialTest::Finish() {
  if (settled_) return;
  const size_t seen =
      next_look_ == 0 ? 0 : static_cast<size_t>(looks_[next_look_ - 1]);
  if (log_ratios_.size() > seen) Look();
  settled_ = true;
}

void SequentialTest::Look() {
  const CentreInterval centre = CentreOf(log_ratios_, TailOf(options_));
  interval_.ratio = std::exp(centre.centre);
  interval_.low = std::exp(centre.low);
  interval_.high = std::exp(centre.high);
  interval_.clusters = static_cast<int>(log_ratios_.size());
  verdict_ = VerdictOf(interval_, options_.threshold);
  ++next_look_;
  settled_ = verdict_ != Verdict::kInconclusive || next_look_ == looks_.size();
}

}  // namespace tilefarm::regression
