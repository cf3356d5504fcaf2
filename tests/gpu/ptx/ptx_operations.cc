#include "tests/gpu/ptx/ptx_operations.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <type_traits>

#include "tests/gpu/ptx/ptx_floats.h"
#include "tests/gpu/ptx/ptx_warp.h"

namespace tilefarm::ptx {
namespace {

// Calls f with a value of the type; false: none of these.
template <typename F>
bool WithInteger(const Type& type, F f) {
  const bool is_signed = type.kind == 's';
  if (type.kind != 's' && type.kind != 'u' && type.kind != 'b') return false;
  switch (type.bits) {
    case 8:
      is_signed ? f(int8_t()) : f(uint8_t());
      return true;
    case 16:
      is_signed ? f(int16_t()) : f(uint16_t());
      return true;
    case 32:
      is_signed ? f(int32_t()) : f(uint32_t());
      return true;
    default:
      is_signed ? f(int64_t()) : f(uint64_t());
      return true;
  }
}
template <typename F>
bool WithFloat(const Type& type, F f) {
  if (type.kind == 'B' && type.count == 1) {
    f(BFloat16());
  } else if (type.kind == 'f' && type.count == 1) {
    type.bits == 16 ? f(Float16()) : type.bits == 32 ? f(float()) : f(double());
  } else {
    return false;
  }
  return true;
}
template <typename F>
bool WithNumber(const Type& type, F f) {
  return WithInteger(type, f) || WithFloat(type, f);
}

// Sums and products of floats are made in a type that has more than twice their
// bits, and rounded once; those of integers without signs, because they wrap.
template <typename T, bool is_integral = std::is_integral_v<T>>
struct WideOf {
  using type = std::conditional_t<sizeof(T) == 2, double, T>;
};
template <typename T>
struct WideOf<T, true> {
  using type = std::make_unsigned_t<T>;
};
template <typename T>
using Wide = typename WideOf<T>::type;
// Integers are compared as they are.
template <typename T>
using Compared = std::conditional_t<std::is_integral_v<T>, T, Wide<T>>;

// Elementwise -----------------------------------------------------------------

template <typename To, typename From, typename Op>
void Map1(Warp& warp, const Instruction& i, uint32_t mask) {
  To* to = warp.At<To>(i.args[0]);
  const From* a = warp.At<From>(i.args[1]);
  ForLanes(mask, [&](int l) { to[l] = Op()(a[l]); });
}
template <typename To, typename From, typename Op>
void Map2(Warp& warp, const Instruction& i, uint32_t mask) {
  To* to = warp.At<To>(i.args[0]);
  const From* a = warp.At<From>(i.args[1]);
  const From* b = warp.At<From>(i.args[2]);
  ForLanes(mask, [&](int l) { to[l] = Op()(a[l], b[l]); });
}
template <typename To, typename From, typename Op>
void Map3(Warp& warp, const Instruction& i, uint32_t mask) {
  To* to = warp.At<To>(i.args[0]);
  const From* a = warp.At<From>(i.args[1]);
  const From* b = warp.At<From>(i.args[2]);
  const To* c = warp.At<To>(i.args[3]);
  ForLanes(mask, [&](int l) { to[l] = Op()(a[l], b[l], c[l]); });
}
// Of two halves of a word each.
template <typename T, typename Op>
void Pairs2(Warp& warp, const Instruction& i, uint32_t mask) {
  T* to = warp.At<T>(i.args[0]);
  const T* a = warp.At<T>(i.args[1]);
  const T* b = warp.At<T>(i.args[2]);
  ForLanes(mask, [&](int l) {
    for (int k = 2 * l; k < 2 * l + 2; ++k) to[k] = Op()(a[k], b[k]);
  });
}
template <typename T, typename Op>
void Pairs3(Warp& warp, const Instruction& i, uint32_t mask) {
  T* to = warp.At<T>(i.args[0]);
  const T* a = warp.At<T>(i.args[1]);
  const T* b = warp.At<T>(i.args[2]);
  const T* c = warp.At<T>(i.args[3]);
  ForLanes(mask, [&](int l) {
    for (int k = 2 * l; k < 2 * l + 2; ++k) to[k] = Op()(a[k], b[k], c[k]);
  });
}

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

#if defined(__x86_64__)
// The most frequent instruction, and a call of the library otherwise.
__attribute__((target("avx2,fma"))) void FmaFloats(Warp& warp,
                                                   const Instruction& i,
                                                   uint32_t mask) {
  float* to = warp.At<float>(i.args[0]);
  const float* a = warp.At<float>(i.args[1]);
  const float* b = warp.At<float>(i.args[2]);
  const float* c = warp.At<float>(i.args[3]);
  for (int l = 0; l < kWarpLanes; ++l) {
    const float sum = __builtin_fmaf(a[l], b[l], c[l]);
    to[l] = (mask >> l & 1) != 0 ? sum : to[l];
  }
}
#endif

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

// By more bits than there are: 0, or the sign.
template <typename T>
void ShiftLeft(Warp& warp, const Instruction& i, uint32_t mask) {
  T* to = warp.At<T>(i.args[0]);
  const T* a = warp.At<T>(i.args[1]);
  const uint32_t* by = warp.At<uint32_t>(i.args[2]);
  ForLanes(mask, [&](int l) {
    to[l] = by[l] >= 8 * sizeof(T) ? T{0} : static_cast<T>(a[l] << by[l]);
  });
}
template <typename T>
void ShiftRight(Warp& warp, const Instruction& i, uint32_t mask) {
  T* to = warp.At<T>(i.args[0]);
  const T* a = warp.At<T>(i.args[1]);
  const uint32_t* by = warp.At<uint32_t>(i.args[2]);
  constexpr uint32_t kBits = 8 * sizeof(T);
  ForLanes(mask, [&](int l) {
    if (std::is_unsigned_v<T> && by[l] >= kBits) {
      to[l] = 0;
    } else {
      to[l] = static_cast<T>(a[l] >> std::min(by[l], kBits - 1));
    }
  });
}
// more[0]: left; more[1]: amounts wrap, and otherwise stop at 32.
void FunnelShift(Warp& warp, const Instruction& i, uint32_t mask) {
  ForLanes(mask, [&](int l) {
    const uint64_t both = uint64_t{warp.At<uint32_t>(i.args[2])[l]} << 32 |
                          warp.At<uint32_t>(i.args[1])[l];
    uint32_t by = warp.At<uint32_t>(i.args[3])[l];
    by = i.more[1] != 0 ? by & 31 : std::min(by, uint32_t{32});
    warp.At<uint32_t>(i.args[0])[l] =
        static_cast<uint32_t>(i.more[0] != 0 ? both << by >> 32 : both >> by);
  });
}

// Bits from a position on, extended by their sign where T is signed.
template <typename T>
void ExtractBits(Warp& warp, const Instruction& i, uint32_t mask) {
  using U = std::make_unsigned_t<T>;
  constexpr uint32_t kBits = 8 * sizeof(T);
  ForLanes(mask, [&](int l) {
    const T a = warp.At<T>(i.args[1])[l];
    const uint32_t from = warp.At<uint32_t>(i.args[2])[l] & 0xff;
    const uint32_t count = warp.At<uint32_t>(i.args[3])[l] & 0xff;
    const uint32_t sign = std::min(from + count, kBits) - 1;
    const bool is_negative = std::is_signed_v<T> && count > 0 &&
                             (static_cast<U>(a) >> sign & 1) != 0;
    U out = is_negative ? ~U{0} : U{0};
    for (uint32_t bit = 0; bit < std::min(count, kBits); ++bit) {
      const bool is_set =
          from + bit < kBits && (static_cast<U>(a) >> (from + bit) & 1) != 0;
      if (from + bit < kBits) {
        out = is_set ? out | U{1} << bit : out & ~(U{1} << bit);
      }
    }
    warp.At<T>(i.args[0])[l] = static_cast<T>(out);
  });
}
template <typename T>
void InsertBits(Warp& warp, const Instruction& i, uint32_t mask) {
  constexpr uint32_t kBits = 8 * sizeof(T);
  ForLanes(mask, [&](int l) {
    const T a = warp.At<T>(i.args[1])[l];
    T out = warp.At<T>(i.args[2])[l];
    const uint32_t from = warp.At<uint32_t>(i.args[3])[l] & 0xff;
    const uint32_t count = warp.At<uint32_t>(i.args[4])[l] & 0xff;
    for (uint32_t bit = 0; bit < count && from + bit < kBits; ++bit) {
      const T one = T{1} << (from + bit);
      out = (a >> bit & 1) != 0 ? out | one : out & ~one;
    }
    warp.At<T>(i.args[0])[l] = out;
  });
}

// The bytes of two words that the nibbles of a third name.
void PermuteBytes(Warp& warp, const Instruction& i, uint32_t mask) {
  ForLanes(mask, [&](int l) {
    const uint64_t both = uint64_t{warp.At<uint32_t>(i.args[2])[l]} << 32 |
                          warp.At<uint32_t>(i.args[1])[l];
    const uint32_t select = warp.At<uint32_t>(i.args[3])[l];
    uint32_t out = 0;
    for (uint32_t k = 0; k < 4; ++k) {
      const uint32_t nibble = select >> (4 * k) & 15;
      auto byte = static_cast<uint8_t>(both >> (8 * (nibble & 7)));
      if (nibble >= 8) byte = (byte & 0x80) != 0 ? 0xff : 0;
      out |= uint32_t{byte} << (8 * k);
    }
    warp.At<uint32_t>(i.args[0])[l] = out;
  });
}

void LogicOfThree(Warp& warp, const Instruction& i, uint32_t mask) {
  ForLanes(mask, [&](int l) {
    uint32_t out = 0;
    for (uint32_t bit = 0; bit < 32; ++bit) {
      const uint32_t row = (warp.At<uint32_t>(i.args[1])[l] >> bit & 1) * 4 +
                           (warp.At<uint32_t>(i.args[2])[l] >> bit & 1) * 2 +
                           (warp.At<uint32_t>(i.args[3])[l] >> bit & 1);
      out |= static_cast<uint32_t>(i.more[0] >> row & 1) << bit;
    }
    warp.At<uint32_t>(i.args[0])[l] = out;
  });
}

// Choices
// ---------------------------------------------------------------------

template <typename T>
void Select(Warp& warp, const Instruction& i, uint32_t mask) {
  T* to = warp.At<T>(i.args[0]);
  const T* a = warp.At<T>(i.args[1]);
  const T* b = warp.At<T>(i.args[2]);
  const uint8_t* p = warp.At<uint8_t>(i.args[3]);
  ForLanes(mask, [&](int l) { to[l] = p[l] != 0 ? a[l] : b[l]; });
}

enum Comparison : int64_t {
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kEqu,
  kNeu,
  kLtu,
  kLeu,
  kGtu,
  kGeu,
  kNum,
  kNan
};

template <typename T>
bool Compare(int64_t comparison, T a, T b) {
  bool unordered = false;
  if constexpr (!std::is_integral_v<T>) {
    unordered = std::isnan(a) || std::isnan(b);
  }
  switch (comparison) {
    case kEq:
      return !unordered && a == b;
    case kNe:
      return !unordered && a != b;
    case kLt:
      return !unordered && a < b;
    case kLe:
      return !unordered && a <= b;
    case kGt:
      return !unordered && a > b;
    case kGe:
      return !unordered && a >= b;
    case kEqu:
      return unordered || a == b;
    case kNeu:
      return unordered || a != b;
    case kLtu:
      return unordered || a < b;
    case kLeu:
      return unordered || a <= b;
    case kGtu:
      return unordered || a > b;
    case kGeu:
      return unordered || a >= b;
    case kNum:
      return !unordered;
    default:
      return unordered;
  }
}

// args: result, its opposite (or a sink), a, b, and a predicate with more[1]:
// 0 none, 1 and, 2 or, 3 xor; more[2]: that one is negated.
template <typename T>
void SetPredicate(Warp& warp, const Instruction& i, uint32_t mask) {
  uint8_t* p = warp.At<uint8_t>(i.args[0]);
  uint8_t* q = warp.At<uint8_t>(i.args[1]);
  const T* a = warp.At<T>(i.args[2]);
  const T* b = warp.At<T>(i.args[3]);
  ForLanes(mask, [&](int l) {
    bool holds = Compare(i.more[0], static_cast<Compared<T>>(a[l]),
                         static_cast<Compared<T>>(b[l]));
    bool opposite = !holds;
    if (i.more[1] != 0) {
      const bool other =
          (warp.At<uint8_t>(i.args[4])[l] != 0) != (i.more[2] != 0);
      const auto join = [&](bool value) {
        return i.more[1] == 1   ? value && other
               : i.more[1] == 2 ? value || other
                                : value != other;
      };
      holds = join(holds);
      opposite = join(opposite);
    }
    p[l] = holds;
    q[l] = opposite;
  });
}

bool MakeSetPredicate(const Parts& opcode, const Operands& operands,
                      Places& places, Instruction& out) {
  static const std::map<std::string_view, Comparison> kComparisons = {
      {"eq", kEq},   {"ne", kNe},   {"lt", kLt},   {"le", kLe},   {"gt", kGt},
      {"ge", kGe},   {"lo", kLt},   {"ls", kLe},   {"hi", kGt},   {"hs", kGe},
      {"equ", kEqu}, {"neu", kNeu}, {"ltu", kLtu}, {"leu", kLeu}, {"gtu", kGtu},
      {"geu", kGeu}, {"num", kNum}, {"nan", kNan}};
  const auto comparison = kComparisons.find(opcode[1]);
  const Type type = ParseType(opcode.back());
  const int64_t join = Has(opcode, "and")   ? 1
                       : Has(opcode, "or")  ? 2
                       : Has(opcode, "xor") ? 3
                                            : 0;
  // "p|q" is two operands.
  const size_t results = operands.size() - 2 - (join != 0);
  if (comparison == kComparisons.end() || operands.size() < 3 || results > 2) {
    return false;
  }
  const Type predicate = ParseType("pred");
  Operand sink;
  sink.kind = Operand::Kind::kSink;
  out.args = {places.Place(operands[0], predicate),
              places.Place(results == 2 ? operands[1] : sink, predicate),
              places.Place(operands[results], type),
              places.Place(operands[results + 1], type)};
  out.more = {comparison->second, join, 0};
  if (join != 0) {
    out.args.push_back(places.Place(operands.back(), predicate));
    out.more[2] = operands.back().negated;
  }
  return WithNumber(type, [&]<typename T>(T) { out.run = SetPredicate<T>; });
}

// Conversions
// -----------------------------------------------------------------

enum Rounding : int64_t { kToNearest, kToZero, kDownward, kUpward };

template <typename T>
T RoundToInteger(T value, int64_t rounding) {
  switch (rounding) {
    case kToZero:
      return std::trunc(value);
    case kDownward:
      return std::floor(value);
    case kUpward:
      return std::ceil(value);
    default:
      return std::nearbyint(value);
  }
}

// more: rounding, whether to an integral value, bytes of a lane in both.
template <typename To, typename From>
void Convert(Warp& warp, const Instruction& i, uint32_t mask) {
  const auto to_bytes = static_cast<size_t>(i.more[2]);
  const auto from_bytes = static_cast<size_t>(i.more[3]);
  ForLanes(mask, [&](int l) {
    From from;
    std::memcpy(
        &from, warp.registers + i.args[1] + static_cast<size_t>(l) * from_bytes,
        sizeof(from));
    To to;
    if constexpr (std::is_integral_v<To> && std::is_integral_v<From>) {
      to = static_cast<To>(from);
    } else if constexpr (std::is_integral_v<To>) {
      const double value = RoundToInteger(
          static_cast<double>(static_cast<Wide<From>>(from)), i.more[0]);
      constexpr auto kLeast = std::numeric_limits<To>::min();
      constexpr auto kMost = std::numeric_limits<To>::max();
      to = std::isnan(value)                      ? To{0}
           : value <= static_cast<double>(kLeast) ? kLeast
           : value >= static_cast<double>(kMost)  ? kMost
                                                  : static_cast<To>(value);
    } else if constexpr (std::is_integral_v<From>) {
      to = static_cast<To>(static_cast<Wide<To>>(from));
    } else {
      auto value =
          static_cast<std::conditional_t<sizeof(From) == 8 || sizeof(To) == 8,
                                         double, float>>(from);
      if (i.more[1] != 0) value = RoundToInteger(value, i.more[0]);
      to = static_cast<To>(value);
    }
    // An integer is extended to its register.
    uint64_t bits = 0;
    if constexpr (std::is_integral_v<To>) {
      bits = static_cast<uint64_t>(static_cast<int64_t>(to));
      if (std::is_unsigned_v<To>) bits = static_cast<uint64_t>(to);
    } else {
      std::memcpy(&bits, &to, sizeof(to));
    }
    std::memcpy(warp.registers + i.args[0] + static_cast<size_t>(l) * to_bytes,
                &bits, to_bytes);
  });
}

// "cvt.rn.f16x2.f32 d, a, b": a is the upper half.
template <typename T>
void ConvertPair(Warp& warp, const Instruction& i, uint32_t mask) {
  T* to = warp.At<T>(i.args[0]);
  const float* high = warp.At<float>(i.args[1]);
  const float* low = warp.At<float>(i.args[2]);
  ForLanes(mask, [&](int l) {
    to[2 * l] = static_cast<T>(low[l]);
    to[2 * l + 1] = static_cast<T>(high[l]);
  });
}

// To the 19 upper bits, halves away from zero.
void ConvertTf32(Warp& warp, const Instruction& i, uint32_t mask) {
  uint32_t* to = warp.At<uint32_t>(i.args[0]);
  const uint32_t* from = warp.At<uint32_t>(i.args[1]);
  ForLanes(mask, [&](int l) {
    const bool is_finite = (from[l] & 0x7f800000) != 0x7f800000;
    to[l] = is_finite ? (from[l] + 0x1000) & ~uint32_t{0x1fff} : from[l];
  });
}

bool MakeConversion(const Parts& opcode, const Operands& operands,
                    Places& places, Instruction& out) {
  if (opcode.size() < 3 || operands.size() < 2) return false;
  const Type to = ParseType(opcode[opcode.size() - 2]);
  const Type from = ParseType(opcode.back());
  out.args = {places.Place(operands[0], to)};
  for (size_t k = 1; k < operands.size(); ++k) {
    out.args.push_back(places.Place(operands[k], from));
  }
  if (Has(opcode, "sat") || Has(opcode, "satfinite") || Has(opcode, "relu")) {
    return false;
  }
  if (to.count == 2) {
    if (operands.size() != 3 || from.kind != 'f' || opcode[1] != "rn") {
      return false;
    }
    out.run = to.kind == 'B' ? ConvertPair<BFloat16> : ConvertPair<Float16>;
    return true;
  }
  if (to.kind == 't') {
    out.run = ConvertTf32;
    return opcode[1] == "rna";
  }
  if (operands.size() != 2) return false;
  int64_t rounding = kToNearest;
  bool to_integer = false;
  for (const std::string& part : opcode) {
    const bool is_integer = part.ends_with('i');
    const std::string direction =
        is_integer ? part.substr(0, part.size() - 1) : part;
    if (direction == "rz") rounding = kToZero;
    if (direction == "rm") rounding = kDownward;
    if (direction == "rp") rounding = kUpward;
    // Floats are rounded to nearest only.
    if (direction.size() == 2 && direction[0] == 'r' && !is_integer &&
        direction != "rn") {
      return false;
    }
    to_integer |= is_integer && direction.size() == 2;
  }
  const auto width = [](const Operand& operand, const Type& type) {
    return operand.width > 0 ? operand.width : type.bytes();
  };
  out.more = {rounding, to_integer, width(operands[0], to),
              width(operands[1], from)};
  bool known = false;
  WithNumber(to, [&]<typename To>(To) {
    known = WithNumber(
        from, [&]<typename From>(From) { out.run = Convert<To, From>; });
  });
  return known;
}

// Memory ----------------------------------------------------------------------

enum class Space { kShared, kGlobal, kLocal, kConstant, kPlain };

// Shared memory is addressed by 32 bits, local memory by more[4] bytes.
// Parameters have addresses of this process, and so has local memory where it
// is not said to be local.
template <Space space>
auto* Reach(Warp& warp, const Instruction& i, int lane, int bytes) {
  const int64_t offset = i.more[0];
  if constexpr (space == Space::kShared) {
    return warp.Shared(
        warp.At<uint32_t>(i.args[0])[lane] + static_cast<uint32_t>(offset),
        bytes, bytes);
  } else if constexpr (space == Space::kGlobal) {
    return warp.Global(
        warp.At<uint64_t>(i.args[0])[lane] + static_cast<uint64_t>(offset),
        bytes, bytes);
  } else if constexpr (space == Space::kConstant) {
    return warp.Constant(
        warp.At<uint32_t>(i.args[0])[lane] + static_cast<uint32_t>(offset),
        bytes, bytes);
  } else if constexpr (space == Space::kLocal) {
    const uint64_t address = i.more[4] == 4
                                 ? warp.At<uint32_t>(i.args[0])[lane]
                                 : warp.At<uint64_t>(i.args[0])[lane];
    return warp.Local(lane, address + static_cast<uint64_t>(offset), bytes,
                      bytes);
  } else {
    return reinterpret_cast<unsigned char*>(warp.At<uint64_t>(i.args[0])[lane] +
                                            static_cast<uint64_t>(offset));
  }
}

// more[0]: to local addresses, from those of this process.
void ConvertLocal(Warp& warp, const Instruction& i, uint32_t mask) {
  ForLanes(mask, [&](int l) {
    const auto memory = reinterpret_cast<uint64_t>(warp.LocalMemory(l));
    const uint64_t by = memory - kLocalBase;
    const uint64_t from = warp.At<uint64_t>(i.args[1])[l];
    warp.At<uint64_t>(i.args[0])[l] = i.more[0] != 0 ? from - by : from + by;
  });
}

// args: address, registers; more: offset, bytes of an element, then of each
// register, and whether elements are extended by their sign.
template <Space space>
void Load(Warp& warp, const Instruction& i, uint32_t mask) {
  const auto count = i.args.size() - 1;
  const auto bytes = static_cast<size_t>(i.more[1]);
  const auto width = static_cast<size_t>(i.more[2]);
  const bool is_signed = i.more[3] != 0;
  ForLanes(mask, [&](int l) {
    const unsigned char* from =
        Reach<space>(warp, i, l, static_cast<int>(bytes * count));
    if (from == nullptr) return;
    for (size_t k = 0; k < count; ++k, from += bytes) {
      unsigned char* to =
          warp.registers + i.args[k + 1] + static_cast<size_t>(l) * width;
      std::memcpy(to, from, bytes);
      if (width > bytes) {
        const bool is_negative = is_signed && (to[bytes - 1] & 0x80) != 0;
        std::memset(to + bytes, is_negative ? 0xff : 0, width - bytes);
      }
    }
  });
}
template <Space space>
void Store(Warp& warp, const Instruction& i, uint32_t mask) {
  const auto count = i.args.size() - 1;
  const auto bytes = static_cast<size_t>(i.more[1]);
  const auto width = static_cast<size_t>(i.more[2]);
  ForLanes(mask, [&](int l) {
    unsigned char* to =
        Reach<space>(warp, i, l, static_cast<int>(bytes * count));
    if (to == nullptr) return;
    for (size_t k = 0; k < count; ++k, to += bytes) {
      std::memcpy(
          to, warp.registers + i.args[k + 1] + static_cast<size_t>(l) * width,
          bytes);
    }
  });
}

bool MakeAccess(const Parts& opcode, const Operands& operands, Places& places,
                Instruction& out) {
  const bool is_load = opcode[0] == "ld";
  if (operands.size() != 2) return false;
  const Operand& address = operands[is_load ? 1 : 0];
  const Operand& value = operands[is_load ? 0 : 1];
  if (address.kind != Operand::Kind::kAddress || address.parts.size() != 1) {
    return false;
  }
  const Type type = ParseType(opcode.back());
  const bool shared = Has(opcode, "shared") || Has(opcode, "shared::cta");
  const bool global = Has(opcode, "global");
  if (type.kind == 0) return false;
  if (Has(opcode, "volatile") || Has(opcode, "acquire") ||
      Has(opcode, "release")) {
    return false;
  }
  int64_t offset = 0;
  const Operand& base = address.parts.front();
  const bool constant = Has(opcode, "const");
  const bool is_word =
      shared || constant || (Has(opcode, "local") && base.width == 4);
  out.args = {places.Base(address, is_word, &offset)};
  const bool is_vector = value.kind == Operand::Kind::kVector;
  const Operands values = is_vector ? value.parts : Operands{value};
  int width = type.bytes();
  for (const Operand& one : values) {
    out.args.push_back(places.Place(one, type));
    if (one.width > 0) width = one.width;
  }
  for (const Operand& one : values) {
    if (one.width > 0 && one.width != width) return false;
    // Constants have the width of their type.
    if (one.width == 0 && width != type.bytes()) return false;
  }
  out.more = {offset, type.bytes(), width, type.kind == 's', is_word ? 4 : 8};
  if (shared) {
    out.run = is_load ? Load<Space::kShared> : Store<Space::kShared>;
  } else if (global) {
    out.run = is_load ? Load<Space::kGlobal> : Store<Space::kGlobal>;
  } else if (constant && is_load) {
    out.run = Load<Space::kConstant>;
  } else if (Has(opcode, "local")) {
    out.run = is_load ? Load<Space::kLocal> : Store<Space::kLocal>;
  } else if (Has(opcode, "param") || opcode.size() == 2 ||
             opcode[1].starts_with('v')) {
    // Without a space: only registers in memory are addressed so by us, and
    // those of Memory, which are addresses of this process too.
    out.run = is_load ? Load<Space::kPlain> : Store<Space::kPlain>;
  } else {
    return false;
  }
  return true;
}

// mov: of words, from a vector of parts to a word, and back.
void Pack(Warp& warp, const Instruction& i, uint32_t mask) {
  const auto width = static_cast<size_t>(i.more[0]);
  const size_t count = i.args.size() - 1;
  ForLanes(mask, [&](int l) {
    unsigned char bytes[8];
    for (size_t k = 0; k < count; ++k) {
      std::memcpy(
          bytes + k * width,
          warp.registers + i.args[k + 1] + static_cast<size_t>(l) * width,
          width);
    }
    std::memcpy(
        warp.registers + i.args[0] + static_cast<size_t>(l) * width * count,
        bytes, width * count);
  });
}
void Unpack(Warp& warp, const Instruction& i, uint32_t mask) {
  const auto width = static_cast<size_t>(i.more[0]);
  const size_t count = i.args.size() - 1;
  ForLanes(mask, [&](int l) {
    unsigned char bytes[8];
    std::memcpy(
        bytes,
        warp.registers + i.args[0] + static_cast<size_t>(l) * width * count,
        width * count);
    for (size_t k = 0; k < count; ++k) {
      std::memcpy(
          warp.registers + i.args[k + 1] + static_cast<size_t>(l) * width,
          bytes + k * width, width);
    }
  });
}

bool MakeMove(const Parts& opcode, const Operands& operands, Places& places,
              Instruction& out) {
  const Type type = ParseType(opcode.back());
  if (operands.size() != 2 || type.kind == 0) return false;
  for (const bool to_vector : {true, false}) {
    const Operand& vector = operands[to_vector ? 0 : 1];
    if (vector.kind != Operand::Kind::kVector) continue;
    const auto count = static_cast<int>(vector.parts.size());
    const Type part{'b', type.bits / count};
    out.args = {places.Place(operands[to_vector ? 1 : 0], type)};
    for (const Operand& one : vector.parts) {
      if (one.width > 0 && one.width != part.bytes()) return false;
      out.args.push_back(places.Place(one, part));
    }
    out.more = {part.bytes()};
    out.run = to_vector ? Unpack : Pack;
    return true;
  }
  out.args = {places.Place(operands[0], type), places.Place(operands[1], type)};
  const Type bits{'b', type.bits * type.count};
  return WithInteger(bits, [&]<typename T>(T) { out.run = Map1<T, T, Copy>; });
}

// Tables ----------------------------------------------------------------------

template <typename Op>
bool Unary(const Type& type, Instruction& out) {
  return WithNumber(type, [&]<typename T>(T) { out.run = Map1<T, T, Op>; });
}
template <typename Op>
bool UnaryFloat(const Type& type, Instruction& out) {
  if (type.kind != 'f' || type.count != 1 || type.bits < 32) return false;
  out.run = type.bits == 32 ? Map1<float, float, Op> : Map1<double, double, Op>;
  return true;
}
template <typename Op>
bool Binary(const Type& type, Instruction& out) {
  if (type.count == 2) {
    out.run = type.kind == 'B'   ? Pairs2<BFloat16, Op>
              : type.kind == 'f' ? Pairs2<Float16, Op>
              : type.kind == 's' ? Pairs2<int16_t, Op>
                                 : Pairs2<uint16_t, Op>;
    return true;
  }
  return WithNumber(type, [&]<typename T>(T) { out.run = Map2<T, T, Op>; });
}
template <typename Op>
bool BinaryInteger(const Type& type, Instruction& out) {
  return WithInteger(type, [&]<typename T>(T) { out.run = Map2<T, T, Op>; });
}
template <typename Op>
bool Logic(const Type& type, Instruction& out) {
  if (type.kind == 'p') {
    out.run = Map2<uint8_t, uint8_t, OfPredicates<Op>>;
    return true;
  }
  return BinaryInteger<Op>(type, out);
}

bool Multiply(const Parts& opcode, const Type& type, bool adds,
              Instruction& out) {
  if (Has(opcode, "wide")) {
    return WithInteger(type,
                       [&]<typename T>(T) {
                         if constexpr (sizeof(T) == 2 || sizeof(T) == 4) {
                           out.run = adds ? Map3<Twice<T>, T, MadWide>
                                          : Map2<Twice<T>, T, MulWide>;
                         }
                       }) &&
           out.run != nullptr;
  }
  if (Has(opcode, "hi")) return !adds && BinaryInteger<MulHigh>(type, out);
  if (!adds) return Binary<Mul>(type, out);
  if (type.count == 2) {
    out.run = type.kind == 'B' ? Pairs3<BFloat16, Fma> : Pairs3<Float16, Fma>;
    return true;
  }
  return WithNumber(type, [&]<typename T>(T) { out.run = Map3<T, T, Fma>; });
}

}  // namespace

bool Has(const Parts& opcode, std::string_view part) {
  return std::find(opcode.begin(), opcode.end(), part) != opcode.end();
}

bool MakeOperation(const Parts& opcode, const Operands& operands,
                   Places& places, Instruction& out) {
  const std::string& name = opcode[0];
  if (name == "ld" || name == "st") {
    return MakeAccess(opcode, operands, places, out);
  }
  if (name == "mov") return MakeMove(opcode, operands, places, out);
  if (name == "cvt") return MakeConversion(opcode, operands, places, out);
  if (name == "setp") return MakeSetPredicate(opcode, operands, places, out);
  const Type type = ParseType(opcode.back());
  if (type.kind == 0 || operands.empty()) return false;
  for (const std::string& part : opcode) {
    // Roundings and variants that nothing here does.
    for (const char* other :
         {"rz", "rm", "rp", "sat", "cc", "NaN", "relu", "xorsign", "ftz"}) {
      if (part == other && !(part == "ftz" && Has(opcode, "approx"))) {
        return false;
      }
    }
  }
  // Amounts and positions are words; a predicate chooses.
  const Type word = ParseType("u32"), predicate = ParseType("pred");
  const bool shifts = name == "shl" || name == "shr";
  const bool takes = name == "bfe" || name == "bfi";
  for (size_t k = 0; k < operands.size(); ++k) {
    Type one = type;
    if (shifts && k == 2) one = word;
    if (name == "bfe" && k >= 2) one = word;
    if (name == "bfi" && k >= 3) one = word;
    if (name == "selp" && k == 3) one = predicate;
    if ((name == "popc" || name == "clz") && k == 0) one = word;
    out.args.push_back(places.Place(operands[k], one));
  }
  const size_t expected =
      name == "bfi" ? 5
      : name == "mad" || name == "fma" || takes || name == "selp" ||
              name == "shf" || name == "prmt"
          ? 4
      : name == "lop3" ? 5
      : name == "neg" || name == "abs" || name == "not" || name == "sqrt" ||
              name == "rcp" || name == "rsqrt" || name == "ex2" ||
              name == "lg2" || name == "sin" || name == "cos" ||
              name == "tanh" || name == "popc" || name == "clz" ||
              name == "cvta"
          ? 2
          : 3;
  if (operands.size() != expected) return false;
  if (name == "add") return Binary<Add>(type, out);
  if (name == "sub") return Binary<Sub>(type, out);
  if (name == "mul") return Multiply(opcode, type, /*adds=*/false, out);
  if (name == "mad" || name == "fma") {
#if defined(__x86_64__)
    if (type.kind == 'f' && type.bits == 32 && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("avx2")) {
      out.run = FmaFloats;
      return true;
    }
#endif
    return Multiply(opcode, type, /*adds=*/true, out);
  }
  if (name == "div") return Binary<Div>(type, out);
  if (name == "rem") return BinaryInteger<Rem>(type, out);
  if (name == "min") return Binary<Min>(type, out);
  if (name == "max") return Binary<Max>(type, out);
  if (name == "and") return Logic<And>(type, out);
  if (name == "or") return Logic<Or>(type, out);
  if (name == "xor") return Logic<Xor>(type, out);
  if (name == "not" && type.kind == 'p') {
    out.run = Map1<uint8_t, uint8_t, NotPredicate>;
    return true;
  }
  if (name == "not") {
    return WithInteger(type, [&]<typename T>(T) { out.run = Map1<T, T, Not>; });
  }
  if (name == "neg") return Unary<Negate>(type, out);
  if (name == "abs") return Unary<Absolute>(type, out);
  if (name == "shl") {
    return WithInteger(type, [&]<typename T>(T) {
      out.run = ShiftLeft<std::make_unsigned_t<T>>;
    });
  }
  if (name == "shr") {
    return WithInteger(type, [&]<typename T>(T) { out.run = ShiftRight<T>; });
  }
  if (name == "shf") {
    out.more = {Has(opcode, "l"), Has(opcode, "wrap")};
    out.run = FunnelShift;
    return type.bits == 32;
  }
  if (takes && type.bits >= 32) {
    return WithInteger(type, [&]<typename T>(T) {
      out.run =
          name == "bfe" ? ExtractBits<T> : InsertBits<std::make_unsigned_t<T>>;
    });
  }
  if (name == "prmt") {
    out.run = PermuteBytes;
    return opcode.size() == 2;
  }
  if (name == "lop3") {
    out.more = {static_cast<int64_t>(operands[4].value)};
    out.run = LogicOfThree;
    return true;
  }
  if (name == "popc" || name == "clz") {
    const bool counts_ones = name == "popc";
    out.run = type.bits == 32 ? counts_ones
                                    ? Map1<uint32_t, uint32_t, PopulationCount>
                                    : Map1<uint32_t, uint32_t, LeadingZeros>
              : counts_ones ? Map1<uint32_t, uint64_t, PopulationCount>
                              : Map1<uint32_t, uint64_t, LeadingZeros>;
    return true;
  }
  if (name == "selp") {
    const Type bits{'b', type.bits * type.count};
    return WithInteger(bits, [&]<typename T>(T) { out.run = Select<T>; });
  }
  if (name == "cvta") {
    out.more = {Has(opcode, "to")};
    out.run =
        Has(opcode, "local") ? ConvertLocal : Map1<uint64_t, uint64_t, Copy>;
    return !Has(opcode, "shared") && type.bits == 64;
  }
  if (name == "sqrt") return UnaryFloat<SquareRoot>(type, out);
  if (name == "rcp") return UnaryFloat<Reciprocal>(type, out);
  if (name == "rsqrt") return UnaryFloat<ReciprocalSquareRoot>(type, out);
  if (name == "ex2") return UnaryFloat<Exp2>(type, out);
  if (name == "lg2") return UnaryFloat<Log2>(type, out);
  if (type.kind == 'f' && type.bits == 32) {
    out.run = name == "sin"    ? Map1<float, float, Sine>
              : name == "cos"  ? Map1<float, float, Cosine>
              : name == "tanh" ? Map1<float, float, Tanh>
                               : nullptr;
    return out.run != nullptr;
  }
  return false;
}

}  // namespace tilefarm::ptx
