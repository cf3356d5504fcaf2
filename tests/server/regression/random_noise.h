// Noise of known distributions, the same on every platform.
#ifndef TILEFARM_TESTS_SERVER_REGRESSION_RANDOM_NOISE_H_
#define TILEFARM_TESTS_SERVER_REGRESSION_RANDOM_NOISE_H_

#include <cmath>
#include <numbers>

#include "base/rng.h"

namespace tilefarm::regression {

// Standard normal (Box and Muller, 1958).
inline double Normal(Rng& rng) {
  const double radius = std::sqrt(-2 * std::log(1 - rng.Uniform()));
  return radius * std::cos(2 * std::numbers::pi * rng.Uniform());
}

// Student's t: 1 degree of freedom (Cauchy) has no mean, 2 no variance.
inline double StudentT(Rng& rng, int degrees) {
  double squares = 0;
  const double numerator = Normal(rng);
  for (int i = 0; i < degrees; ++i) {
    const double z = Normal(rng);
    squares += z * z;
  }
  return numerator / std::sqrt(squares / degrees);
}

}  // namespace tilefarm::regression

#endif  // TILEFARM_TESTS_SERVER_REGRESSION_RANDOM_NOISE_H_
