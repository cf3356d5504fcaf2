// A histogram of durations: counts in fixed buckets of seconds.
#ifndef TILEFARM_BASE_HISTOGRAM_H_
#define TILEFARM_BASE_HISTOGRAM_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace tilefarm {

// A value type; the owner synchronizes access.
class Histogram {
 public:
  // Upper bounds in seconds; one more bucket counts longer durations.
  static constexpr std::array<double, 11> kBounds = {
      0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30};

  void Observe(double seconds) {
    const size_t bucket = static_cast<size_t>(
        std::lower_bound(kBounds.begin(), kBounds.end(), seconds) -
        kBounds.begin());
    ++counts_[bucket];
    ++count_;
    sum_ += seconds;
  }
  // Not cumulative; the last count is of durations above all bounds.
  const std::array<int64_t, kBounds.size() + 1>& counts() const {
    return counts_;
  }
  int64_t count() const { return count_; }
  double sum() const { return sum_; }

 private:
  std::array<int64_t, kBounds.size() + 1> counts_ = {};
  int64_t count_ = 0;
  double sum_ = 0;
};

}  // namespace tilefarm

#endif  // TILEFARM_BASE_HISTOGRAM_H_
