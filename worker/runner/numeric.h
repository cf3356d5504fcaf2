// Conversion to 16-bit floats, for which the compiler has no types.
#ifndef TILEFARM_WORKER_RUNNER_NUMERIC_H_
#define TILEFARM_WORKER_RUNNER_NUMERIC_H_

#include <bit>
#include <cmath>
#include <cstdint>

namespace tilefarm::worker {

inline float HalfToFloat(uint16_t h) {
  const int exponent = h >> 10 & 0x1f;
  const int mantissa = h & 0x3ff;
  float v;
  if (exponent == 0x1f) {
    v = mantissa == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    v = std::ldexp(static_cast<float>(mantissa), -24);
  } else {
    v = std::ldexp(static_cast<float>(mantissa | 0x400), exponent - 25);
  }
  return (h & 0x8000) != 0 ? -v : v;
}

// Rounds a value in [-1, 1] to nearest, ties to even.
inline uint16_t UnitToHalf(float v) {
  const uint16_t sign = std::signbit(v) ? 0x8000 : 0;
  const float a = std::fabs(v);
  if (a < 0x1p-14f) {  // subnormal: multiples of 2^-24
    return sign | static_cast<uint16_t>(std::nearbyint(a * 0x1p24f));
  }
  int exponent;
  const float fraction = std::frexp(a, &exponent);  // in [0.5, 1)
  // A mantissa that rounds up to 2048 carries into the exponent by itself.
  const int mantissa = static_cast<int>(std::nearbyint(fraction * 2048));
  return sign | static_cast<uint16_t>(((exponent + 13) << 10) + mantissa);
}

inline float BFloat16ToFloat(uint16_t b) {
  return std::bit_cast<float>(uint32_t{b} << 16);
}

// Rounds a finite value to nearest, ties to even.
inline uint16_t FloatToBFloat16(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_NUMERIC_H_
