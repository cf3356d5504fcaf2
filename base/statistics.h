// Medians of samples and their confidence intervals. Uses the C++ library only,
// because tune-runner compiles it and links nothing else.
#ifndef TILEFARM_BASE_STATISTICS_H_
#define TILEFARM_BASE_STATISTICS_H_

#include <vector>

namespace tilefarm {

struct MedianInterval {
  double median = 0;
  // 95 % confidence interval of the median from order statistics: no
  // assumption on the distribution. With fewer than 6 samples no interval
  // reaches 95 %; it is then the range.
  double low = 0, high = 0;
};

// All zero for no samples.
MedianInterval MedianOf(std::vector<double> samples);

}  // namespace tilefarm

#endif  // TILEFARM_BASE_STATISTICS_H_
