// The random numbers of R after set.seed(SEED): Mersenne Twister (Matsumoto and
// Nishimura, 1998), seeded as R does, and normal ones by inversion. With it the
// examples of papers and packages can be made again, number by number.
#ifndef TILEFARM_TESTS_SERVER_REGRESSION_R_RANDOM_H_
#define TILEFARM_TESTS_SERVER_REGRESSION_R_RANDOM_H_

#include <cstdint>
#include <vector>

namespace tilefarm::regression {

class RRandom {
 public:
  explicit RRandom(uint32_t seed);
  // runif(1)
  double Uniform();
  // rnorm(count, mean, deviation), appended to `values`.
  void Normals(int count, double mean, double deviation,
               std::vector<double>* values);

 private:
  static constexpr int kWords = 624;
  void Refill();

  uint32_t words_[kWords];
  int next_ = kWords;
};

}  // namespace tilefarm::regression

#endif  // TILEFARM_TESTS_SERVER_REGRESSION_R_RANDOM_H_
