#include "base/rng.h"

#include <bit>

#include "base/check.h"
#include "base/split_mix.h"

namespace tilefarm {

Rng::Rng(uint64_t seed) {
  for (uint64_t& word : state_) word = SplitMix(seed);
}

uint64_t Rng::Next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

uint64_t Rng::Below(uint64_t bound) {
  TF_CHECK(bound > 0);
  using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(Next()) * bound;
  if (static_cast<uint64_t>(product) < bound) {
    const uint64_t threshold = -bound % bound;
    while (static_cast<uint64_t>(product) < threshold) {
      product = static_cast<Wide>(Next()) * bound;
    }
  }
  return static_cast<uint64_t>(product >> 64);
}

int64_t Rng::Between(int64_t low, int64_t high) {
  TF_CHECK(low <= high);
  const uint64_t span = static_cast<uint64_t>(high) - low + 1;
  if (span == 0) return static_cast<int64_t>(Next());
  return static_cast<int64_t>(static_cast<uint64_t>(low) + Below(span));
}

double Rng::Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

size_t Rng::Weighted(std::span<const double> weights) {
  double total = 0;
  for (double weight : weights) total += weight;
  TF_CHECK(total > 0);
  double left = Uniform() * total;
  size_t last = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] <= 0) continue;
    last = i;
    left -= weights[i];
    if (left < 0) break;
  }
  return last;
}

}  // namespace tilefarm
