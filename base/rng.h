// Seeded random numbers, the same on every platform. `std::` distributions
// are not portable, so results that must replay never use them.
#ifndef TILEFARM_BASE_RNG_H_
#define TILEFARM_BASE_RNG_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace tilefarm {

// xoshiro256** (Blackman and Vigna, 2018), seeded through splitmix64.
// A value type: copying it forks the stream. Not thread-safe.
class Rng {
 public:
  explicit Rng(uint64_t seed);

  uint64_t Next();
  // Uniform in [0, bound); bound > 0. Unbiased (Lemire, 2019).
  uint64_t Below(uint64_t bound);
  // Uniform in [low, high], both included.
  int64_t Between(int64_t low, int64_t high);
  // Uniform in [0, 1), 53 bits.
  double Uniform();
  bool Chance(double probability) { return Uniform() < probability; }
  // An index drawn in proportion to the weights, which are >= 0 and not all 0.
  size_t Weighted(std::span<const double> weights);
  // An independent stream, for a child task.
  Rng Fork() { return Rng(Next()); }

  template <typename Container>
  void Shuffle(Container& items) {
    for (size_t i = items.size(); i > 1; --i) {
      using std::swap;
      swap(items[i - 1], items[Below(i)]);
    }
  }

 private:
  uint64_t state_[4];
};

}  // namespace tilefarm

#endif  // TILEFARM_BASE_RNG_H_
