// Rounding to the 16-bit floating-point formats, in integer arithmetic, so
// that every platform gives the same bits.
#ifndef TILEFARM_COMPILER_IR_FLOAT16_H_
#define TILEFARM_COMPILER_IR_FLOAT16_H_

#include <bit>
#include <cstdint>

#include "compiler/ir/dtype.h"

namespace tilefarm::ir {

// Round to nearest even; overflow gives infinity; NaN stays NaN.
inline uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return static_cast<uint16_t>(sign | 0x7E00);
  if (magnitude >= 0x477FF000) return static_cast<uint16_t>(sign | 0x7C00);
  if (magnitude < 0x33000000) return static_cast<uint16_t>(sign);
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  const uint32_t fraction = (magnitude & 0x7FFFFF) | 0x800000;
  // Subnormals have fewer fraction bits.
  const int drop = exponent < -14 ? 13 + (-14 - exponent) : 13;
  uint32_t out = fraction >> drop;
  const uint32_t rest = fraction & ((1u << drop) - 1);
  const uint32_t half = 1u << (drop - 1);
  if (rest > half || (rest == half && (out & 1) != 0)) ++out;
  if (exponent >= -14) {
    // The implicit bit adds one to the exponent field; rounding may carry.
    out += static_cast<uint32_t>(exponent + 14) << 10;
  }
  return static_cast<uint16_t>(sign | out);
}

inline float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 0x1F;
  const uint32_t fraction = half & 0x3FF;
  if (exponent == 0x1F) {
    return std::bit_cast<float>(sign | 0x7F800000 | (fraction << 13));
  }
  if (exponent == 0) {
    // fraction * 2^-24, exact in float.
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) |
                              (fraction << 13));
}

inline uint16_t FloatToBFloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) {
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  }
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

inline float BFloatToFloat(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

// The value of `dtype`, which has 32 bits or 16, that is nearest to `value`.
inline float RoundTo(DataType dtype, float value) {
  if (dtype.bits == 32) return value;
  return dtype.code == TypeCode::kBFloat ? BFloatToFloat(FloatToBFloat(value))
                                         : HalfToFloat(FloatToHalf(value));
}

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_FLOAT16_H_
