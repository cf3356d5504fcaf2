#include "server/regression/change_points.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/rng.h"
#include "base/split_mix.h"
#include "base/statistics.h"

namespace tilefarm::regression {
namespace {

// The most points of a window: one evaluation then takes about 10 ms.
constexpr int kMostWindow = 4096;
// Permutations whose statistic equals the split's up to rounding reach it.
constexpr double kUpToRounding = 1 - 1e-12;

struct Split {
  size_t at = 0;  // the first point after it
  double statistic = 0;
};

// Evaluates segments; keeps its arrays between them.
class Splitter {
 public:
  explicit Splitter(size_t least_segment) : least_(least_segment) {}

  // The split (tau, kappa) of the largest Q (equation 7 of the paper, with
  // exponent 1): every tau, and for each one every kappa. Needs 2 * least
  // points.
  Split Best(std::span<const double> x) {
    const size_t n = x.size();
    Prepare(x);
    // distances_to_left[j] is the sum of |x[i] - x[j]| over the left part.
    to_left_.assign(n, 0);
    double within_left = 0;
    Split best;
    for (size_t tau = 1; tau + least_ <= n; ++tau) {
      const double added = x[tau - 1];
      within_left += to_left_[tau - 1];
      for (size_t j = 0; j < n; ++j) to_left_[j] += std::abs(added - x[j]);
      if (tau < least_) continue;
      Consider(tau, n, within_left, &best);
    }
    return best;
  }

 private:
  // to_earlier_[j] is the sum of |x[i] - x[j]| over i < j.
  void Prepare(std::span<const double> x) {
    const size_t n = x.size();
    to_earlier_.assign(n, 0);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = i + 1; j < n; ++j) {
        to_earlier_[j] += std::abs(x[i] - x[j]);
      }
    }
  }

  // All kappa of one tau.
  void Consider(size_t tau, size_t n, double within_left, Split* best) const {
    const auto left = static_cast<double>(tau);
    const double left_mean = 2 * within_left / (left * (left - 1));
    double across = 0, within_right = 0;
    for (size_t k = tau; k < n; ++k) {
      across += to_left_[k];
      within_right += to_earlier_[k] - to_left_[k];
      if (k + 1 - tau < least_) continue;
      const auto right = static_cast<double>(k + 1 - tau);
      const double energy = 2 * across / (left * right) - left_mean -
                            2 * within_right / (right * (right - 1));
      const double statistic = left * right / (left + right) * energy;
      if (statistic > best->statistic) *best = {tau, statistic};
    }
  }

  const size_t least_;
  std::vector<double> to_left_, to_earlier_;
};

struct Found {
  size_t index = 0;
  double p_value = 1;
};

class Finder {
 public:
  Finder(std::span<const double> values, const ChangePointOptions& options)
      : values_(values),
        options_(options),
        least_(static_cast<size_t>(options.least_segment)),
        splitter_(least_) {}

  std::vector<Found> Run() {
    const auto window = static_cast<size_t>(options_.window);
    size_t first = 0;
    for (;;) {
      const size_t last = std::min(first + window, values_.size());
      window_.clear();
      Bisect(first, last);
      std::sort(
          window_.begin(), window_.end(),
          [](const Found& a, const Found& b) { return a.index < b.index; });
      if (last == values_.size()) {
        found_.insert(found_.end(), window_.begin(), window_.end());
        return std::move(found_);
      }
      // Changes in the last quarter are left to the next window, which has more
      // points after them. It starts at the last change, or else at the half.
      size_t next = first + window / 2;
      for (const Found& change : window_) {
        if (change.index >= last - window / 4) break;
        found_.push_back(change);
        next = change.index;
      }
      first = next;
    }
  }

 private:
  void Bisect(size_t first, size_t last) {
    if (last - first < 2 * least_) return;
    const Split split = splitter_.Best(values_.subspan(first, last - first));
    if (!(split.statistic > 0)) return;
    const std::optional<double> p_value = Test(first, last, split.statistic);
    if (!p_value.has_value()) return;
    const size_t index = first + split.at;
    window_.push_back({index, *p_value});
    Bisect(first, index);
    Bisect(index, last);
  }

  // The p-value if it is significant. Stops as soon as it cannot be.
  std::optional<double> Test(size_t first, size_t last, double statistic) {
    std::vector<double> points(values_.begin() + static_cast<long>(first),
                               values_.begin() + static_cast<long>(last));
    // A stream for each segment: results do not depend on other segments.
    Rng rng(MixBits(options_.seed ^ MixBits(first * kSplitMixStep + last)));
    const double total = options_.permutations + 1.0;
    double reached = 1;
    for (int i = 0; i < options_.permutations; ++i) {
      rng.Shuffle(points);
      if (splitter_.Best(points).statistic >= statistic * kUpToRounding) {
        ++reached;
        if (reached / total > options_.significance) return std::nullopt;
      }
    }
    return reached / total;
  }

  const std::span<const double> values_;
  const ChangePointOptions& options_;
  const size_t least_;
  Splitter splitter_;
  std::vector<Found> window_, found_;
};

absl::Status Check(std::span<const double> values,
                   const ChangePointOptions& options) {
  if (values.size() > kMostSeriesPoints) {
    return absl::InvalidArgumentError(
        absl::StrCat("a series of ", values.size(),
                     " points is too long: the limit is ", kMostSeriesPoints));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("point ", i, " of the series is not finite"));
    }
  }
  if (options.least_segment < 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a segment has at least 2 points, not ", options.least_segment));
  }
  if (options.window < 4 * options.least_segment ||
      options.window > kMostWindow) {
    return absl::InvalidArgumentError(
        absl::StrCat("a window has 4 times the least segment to ", kMostWindow,
                     " points, not ", options.window));
  }
  if (!(options.significance > 0 && options.significance < 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the significance is between 0 and 1, but is ", options.significance));
  }
  if (options.permutations < 1 || options.permutations > 1'000'000 ||
      1 / (options.permutations + 1.0) > options.significance) {
    return absl::InvalidArgumentError(
        absl::StrCat("with ", options.permutations,
                     " permutations no split reaches the significance ",
                     options.significance));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ChangePoint>> FindChangePoints(
    std::span<const double> values, const ChangePointOptions& options) {
  if (absl::Status status = Check(values, options); !status.ok()) return status;
  const std::vector<Found> found = Finder(values, options).Run();
  const auto median = [&](size_t first, size_t last) {
    return MedianOf({values.begin() + static_cast<long>(first),
                     values.begin() + static_cast<long>(last)})
        .median;
  };
  std::vector<ChangePoint> changes;
  for (size_t i = 0; i < found.size(); ++i) {
    const size_t before = i == 0 ? 0 : found[i - 1].index;
    const size_t after =
        i + 1 == found.size() ? values.size() : found[i + 1].index;
    changes.push_back({.index = found[i].index,
                       .p_value = found[i].p_value,
                       .before = median(before, found[i].index),
                       .after = median(found[i].index, after)});
  }
  return changes;
}

}  // namespace tilefarm::regression
