// splitmix64 (Vigna, 2015): a generator of one word of state, and its
// finaliser, which mixes the bits of a word. A header alone, so that the runner
// has it, too.
#ifndef TILEFARM_BASE_SPLIT_MIX_H_
#define TILEFARM_BASE_SPLIT_MIX_H_

#include <cstdint>

namespace tilefarm {

constexpr uint64_t MixBits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

inline constexpr uint64_t kSplitMixStep = 0x9E3779B97F4A7C15u;

// The next number; advances the state.
constexpr uint64_t SplitMix(uint64_t& state) {
  return MixBits(state += kSplitMixStep);
}

}  // namespace tilefarm

#endif  // TILEFARM_BASE_SPLIT_MIX_H_
