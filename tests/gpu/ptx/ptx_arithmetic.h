// What instructions compute for one lane, of any type of number.
#ifndef TILEFARM_TESTS_GPU_PTX_PTX_ARITHMETIC_H_
#define TILEFARM_TESTS_GPU_PTX_PTX_ARITHMETIC_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "tests/gpu/ptx/ptx_numbers.h"

namespace tilefarm::ptx {

struct Add {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wide<T>>(a) + static_cast<Wide<T>>(b));
  }
};
struct Sub {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wide<T>>(a) - static_cast<Wide<T>>(b));
  }
};
struct Mul {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T> && sizeof(T) == 2) {
      return static_cast<T>(static_cast<uint32_t>(a) *
                            static_cast<uint32_t>(b));
    } else {
      return static_cast<T>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b));
    }
  }
};
struct Fma {
  template <typename T>
  T operator()(T a, T b, T c) const {
    if constexpr (std::is_integral_v<T>) {
      return Add()(Mul()(a, b), c);
    } else {
      return static_cast<T>(std::fma(static_cast<Wide<T>>(a),
                                     static_cast<Wide<T>>(b),
                                     static_cast<Wide<T>>(c)));
    }
  }
};
struct Div {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      // What the manual leaves open, and what would trap here.
      if (b == 0) return static_cast<T>(-1);
      if (std::is_signed_v<T> && b == static_cast<T>(-1)) {
        return static_cast<T>(-static_cast<Wide<T>>(a));
      }
      return static_cast<T>(a / b);
    } else {
      return static_cast<T>(static_cast<Wide<T>>(a) / static_cast<Wide<T>>(b));
    }
  }
};
struct Rem {
  template <typename T>
  T operator()(T a, T b) const {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
};
// Of a number and NaN the number.
struct Min {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return std::min(a, b);
    } else {
      return static_cast<T>(
          std::fmin(static_cast<Wide<T>>(a), static_cast<Wide<T>>(b)));
    }
  }
};
struct Max {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return std::max(a, b);
    } else {
      return static_cast<T>(
          std::fmax(static_cast<Wide<T>>(a), static_cast<Wide<T>>(b)));
    }
  }
};
template <typename Extreme>
struct OrNan {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return Extreme()(a, b);
    } else {
      const auto x = static_cast<Wide<T>>(a), y = static_cast<Wide<T>>(b);
      return std::isnan(x) ? a : std::isnan(y) ? b : Extreme()(a, b);
    }
  }
};
using MinOrNan = OrNan<Min>;
using MaxOrNan = OrNan<Max>;
struct MulHigh {
  template <typename T>
  T operator()(T a, T b) const {
    using Twice =
        std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return static_cast<T>((static_cast<Twice>(a) * static_cast<Twice>(b)) >>
                          (8 * sizeof(T)));
  }
};
struct And {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
struct Not {
  template <typename T>
  T operator()(T a) const {
    return static_cast<T>(~a);
  }
};
// -1 is true, too.
template <typename Op>
struct OfPredicates {
  uint8_t operator()(uint8_t a, uint8_t b) const {
    return Op()(a != 0, b != 0);
  }
};
struct NotPredicate {
  uint8_t operator()(uint8_t a) const { return a == 0; }
};
struct Copy {
  template <typename T>
  T operator()(T a) const {
    return a;
  }
};
struct Negate {
  template <typename T>
  T operator()(T a) const {
    return static_cast<T>(-static_cast<Wide<T>>(a));
  }
};
struct Absolute {
  template <typename T>
  T operator()(T a) const {
    if constexpr (std::is_integral_v<T>) {
      return a < 0 ? static_cast<T>(-static_cast<Wide<T>>(a)) : a;
    } else {
      return static_cast<T>(std::fabs(static_cast<Wide<T>>(a)));
    }
  }
};
struct SquareRoot {
  template <typename T>
  T operator()(T a) const {
    return std::sqrt(a);
  }
};
struct Reciprocal {
  template <typename T>
  T operator()(T a) const {
    return 1 / a;
  }
};
struct ReciprocalSquareRoot {
  template <typename T>
  T operator()(T a) const {
    return static_cast<T>(1 / std::sqrt(static_cast<double>(a)));
  }
};
struct Exp2 {
  template <typename T>
  T operator()(T a) const {
    return std::exp2(a);
  }
};
struct Log2 {
  template <typename T>
  T operator()(T a) const {
    return std::log2(a);
  }
};
struct Sine {
  float operator()(float a) const { return std::sin(a); }
};
struct Cosine {
  float operator()(float a) const { return std::cos(a); }
};
struct Tanh {
  float operator()(float a) const { return std::tanh(a); }
};
struct PopulationCount {
  template <typename T>
  uint32_t operator()(T a) const {
    return static_cast<uint32_t>(std::popcount(a));
  }
};
struct LeadingZeros {
  template <typename T>
  uint32_t operator()(T a) const {
    return static_cast<uint32_t>(std::countl_zero(a));
  }
};

template <typename From>
using Twice = std::conditional_t<
    sizeof(From) == 2,
    std::conditional_t<std::is_signed_v<From>, int32_t, uint32_t>,
    std::conditional_t<std::is_signed_v<From>, int64_t, uint64_t>>;

struct MulWide {
  template <typename T>
  Twice<T> operator()(T a, T b) const {
    return static_cast<Twice<T>>(static_cast<Twice<T>>(a) *
                                 static_cast<Twice<T>>(b));
  }
};
struct MadWide {
  template <typename T>
  Twice<T> operator()(T a, T b, Twice<T> c) const {
    using U = std::make_unsigned_t<Twice<T>>;
    return static_cast<Twice<T>>(static_cast<U>(MulWide()(a, b)) +
                                 static_cast<U>(c));
  }
};

}  // namespace tilefarm::ptx

#endif  // TILEFARM_TESTS_GPU_PTX_PTX_ARITHMETIC_H_
