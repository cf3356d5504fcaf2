#include "tests/server/regression/r_random.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tilefarm::regression {
namespace {

// qnorm(p), by bisection of the distribution function to the last bit.
double NormalQuantile(double p) {
  if (p > 0.5) return -NormalQuantile(1 - p);
  double low = -40, high = 0;
  while (true) {
    const double middle = (low + high) / 2;
    if (middle <= low || middle >= high) return middle;
    (std::erfc(-middle / std::numbers::sqrt2) / 2 < p ? low : high) = middle;
  }
}

}  // namespace

RRandom::RRandom(uint32_t seed) {
  // R scrambles the seed first, and overwrites the first word of the state,
  // which has the position.
  for (int i = 0; i < 50; ++i) seed = 69069 * seed + 1;
  seed = 69069 * seed + 1;
  for (uint32_t& word : words_) {
    seed = 69069 * seed + 1;
    word = seed;
  }
}

void RRandom::Refill() {
  constexpr int kShift = 397;
  for (int i = 0; i < kWords; ++i) {
    const uint32_t y =
        (words_[i] & 0x80000000u) | (words_[(i + 1) % kWords] & 0x7fffffffu);
    words_[i] = words_[(i + kShift) % kWords] ^ (y >> 1) ^
                ((y & 1) != 0 ? 0x9908b0dfu : 0);
  }
  next_ = 0;
}

double RRandom::Uniform() {
  if (next_ == kWords) Refill();
  uint32_t y = words_[next_++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  y ^= y >> 18;
  // R keeps it within (0, 1).
  constexpr double kScale = 2.3283064365386963e-10;
  return std::clamp(y * kScale, 0.5 * kScale, 1 - 0.5 * kScale);
}

void RRandom::Normals(int count, double mean, double deviation,
                      std::vector<double>* values) {
  constexpr double kBig = 134217728;  // 2^27: a uniform number of 53 bits
  for (int i = 0; i < count; ++i) {
    const double high = static_cast<int>(kBig * Uniform());
    const double uniform = (high + Uniform()) / kBig;
    values->push_back(mean + deviation * NormalQuantile(uniform));
  }
}

}  // namespace tilefarm::regression
