// Floats of 16 bits, as their bits; arithmetic is that of wider ones.
#ifndef TILEFARM_TESTS_GPU_PTX_PTX_FLOATS_H_
#define TILEFARM_TESTS_GPU_PTX_PTX_FLOATS_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace tilefarm::ptx {

// IEEE binary16: 5 bits of exponent, 10 of fraction.
struct Float16 {
  uint16_t bits = 0;

  Float16() = default;
  // Rounded to nearest, even.
  explicit Float16(double value) {
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    const double size = std::fabs(value);
    if (std::isnan(value)) {
      bits = 0x7fff;
    } else if (size == 0) {
      bits = sign;
    } else if (size >= 65520) {
      bits = sign | 0x7c00;
    } else {
      // The last bit's weight: 2^-24 of the least numbers.
      int exponent = 0;
      std::frexp(size, &exponent);
      const int scale = std::max(exponent - 11, -24);
      const double units = std::nearbyint(std::ldexp(size, -scale));
      // 1024 units more are one of the exponent; numbers below 2^-14 have no
      // hidden one.
      bits = static_cast<uint16_t>(
          sign + static_cast<uint16_t>(units) +
          static_cast<uint16_t>(std::max(scale + 24, 0) * 1024));
    }
  }
  explicit operator float() const {
    static const auto* values = [] {
      auto* all = new std::array<float, 65536>;
      for (unsigned i = 0; i < all->size(); ++i) {
        Float16 one;
        one.bits = static_cast<uint16_t>(i);
        (*all)[i] = one.Value();
      }
      return all;
    }();
    return (*values)[bits];
  }
  explicit operator double() const { return static_cast<float>(*this); }

 private:
  float Value() const {
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;
    const double size = exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                        : exponent == 0
                            ? std::ldexp(fraction, -24)
                            : std::ldexp(1024 + fraction, exponent - 25);
    return static_cast<float>((bits & 0x8000) != 0 ? -size : size);
  }
};

// The upper half of a float.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  // Rounded to nearest, even. Of a double by way of a float whose last bit is
  // sticky, so that it is rounded once.
  explicit BFloat16(double value) {
    auto single = static_cast<float>(value);
    if (std::isnan(single)) {
      bits = 0x7fff;
      return;
    }
    if (!std::isinf(single) && static_cast<double>(single) != value) {
      if (std::fabs(single) > std::fabs(value)) {
        single = std::nextafter(single, 0.0F);
      }
      single = std::bit_cast<float>(std::bit_cast<uint32_t>(single) | 1);
    }
    const auto word = std::bit_cast<uint32_t>(single);
    bits = static_cast<uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16);
  }
  explicit operator float() const {
    return std::bit_cast<float>(uint32_t{bits} << 16);
  }
  explicit operator double() const { return static_cast<float>(*this); }
};

}  // namespace tilefarm::ptx

#endif  // TILEFARM_TESTS_GPU_PTX_PTX_FLOATS_H_
