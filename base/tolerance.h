// How far a float result may be from the reference. One rule for whoever
// verifies results and for whoever chooses what may be computed differently.
#ifndef TILEFARM_BASE_TOLERANCE_H_
#define TILEFARM_BASE_TOLERANCE_H_

#include <cmath>
#include <cstdint>

namespace tilefarm {

// |result - ref| <= 4 eps (4 + sqrt(K)) (|ref| + rms(ref)), where sums have K
// terms: this is the 4.
inline constexpr double kToleranceFactor = 4;

// To be multiplied by |ref| + rms(ref).
inline double RelativeTolerance(double epsilon, uint64_t reduction_length) {
  return kToleranceFactor * epsilon *
         (4 + std::sqrt(static_cast<double>(reduction_length)));
}

}  // namespace tilefarm

#endif  // TILEFARM_BASE_TOLERANCE_H_
