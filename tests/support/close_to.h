// Whether two numbers are the same up to rounding.
#ifndef TILEFARM_TESTS_SUPPORT_CLOSE_TO_H_
#define TILEFARM_TESTS_SUPPORT_CLOSE_TO_H_

#include <cmath>

namespace tilefarm {

// NaN is close to NaN only, and an infinity to itself only: a bound relative to
// an infinity would hold for every number.
inline bool CloseTo(double got, double want, double absolute, double relative) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return true;
  return std::isfinite(want) &&
         std::abs(got - want) <= absolute + relative * std::abs(want);
}

}  // namespace tilefarm

#endif  // TILEFARM_TESTS_SUPPORT_CLOSE_TO_H_
