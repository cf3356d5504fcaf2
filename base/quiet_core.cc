#include "base/quiet_core.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>

namespace tilefarm {
namespace {

using SteadyClock = std::chrono::steady_clock;

// The core counts as shared if its contention exceeds the unshared one by this
// factor.
constexpr double kShared = 1.1;
constexpr std::chrono::microseconds kPause{200};

double Since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

// The median of several attempts: an attempt may be interrupted, and the first
// one finds other data in the caches.
template <typename Work>
double MedianSeconds(const Work& work) {
  constexpr int kAttempts = 5;
  double seconds[kAttempts];
  for (double& attempt : seconds) {
    const auto start = SteadyClock::now();
    work();
    attempt = Since(start);
  }
  std::nth_element(seconds, seconds + kAttempts / 2, seconds + kAttempts);
  return seconds[kAttempts / 2];
}

struct Line {
  uint64_t word;
  unsigned char rest[56];
};

}  // namespace

double CoreContention() {
  constexpr int kMultiplications = 800;
  // 128 KiB: more than an L1 cache, less than an L2 cache. Written first,
  // because untouched memory would all be the same page of zeros.
  constexpr size_t kLines = 2048;
  static const std::vector<Line> lines(kLines, Line{1, {}});
  uint64_t x = 88172645463325252;
  const double chain = MedianSeconds([&x] {
    for (int i = 0; i < kMultiplications; ++i) {
      x = x * 6364136223846793005 + 1;
    }
    asm volatile("" : "+r"(x));
  });
  // Straight-line code for four lines at a time: with a loop for them, the
  // place of its branches in memory decided over the time as well.
  const double reading = MedianSeconds([] {
    uint64_t a = 0, b = 0, c = 0, d = 0;
    for (size_t i = 0; i < kLines; i += 4) {
      a += lines[i].word;
      b += lines[i + 1].word;
      c += lines[i + 2].word;
      d += lines[i + 3].word;
    }
    asm volatile("" : : "r"(a + b + c + d));
  });
  return reading / std::max(chain, 1e-9);
}

double AloneContention(std::vector<double> seen) {
  if (seen.empty()) return 0;
  const auto low = seen.begin() + static_cast<std::ptrdiff_t>(seen.size() / 50);
  std::nth_element(seen.begin(), low, seen.end());
  return *low;
}

double LearnAloneContention(int looks) {
  std::vector<double> seen;
  for (int i = 0; i < looks; ++i) {
    seen.push_back(CoreContention());
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  return AloneContention(std::move(seen));
}

bool QuietCore::IsQuiet(double contention) const {
  return !(alone_ > 0) || contention <= kShared * alone_;
}

bool QuietCore::Await(double seconds) const {
  const auto start = SteadyClock::now();
  while (!IsQuiet()) {
    if (Since(start) >= seconds) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

}  // namespace tilefarm
