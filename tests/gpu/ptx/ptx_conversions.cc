// Comparisons, and conversions between types.
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <type_traits>

#include "tests/gpu/ptx/ptx_numbers.h"
#include "tests/gpu/ptx/ptx_operations.h"
#include "tests/gpu/ptx/ptx_warp.h"

namespace tilefarm::ptx {
namespace {

// Comparisons
// -----------------------------------------------------------------

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

// args: result, its opposite or that of the second half (or a sink), a, b, and
// a predicate with more[1]: 0 none, 1 and, 2 or, 3 xor; more[2]: that one is
// negated.
bool Join(Warp& warp, const Instruction& i, int lane, bool value) {
  if (i.more[1] == 0) return value;
  const bool other =
      (warp.At<uint8_t>(i.args[4])[lane] != 0) != (i.more[2] != 0);
  return i.more[1] == 1   ? value && other
         : i.more[1] == 2 ? value || other
                          : value != other;
}
template <typename T>
void SetPredicate(Warp& warp, const Instruction& i, uint32_t mask) {
  uint8_t* p = warp.At<uint8_t>(i.args[0]);
  uint8_t* q = warp.At<uint8_t>(i.args[1]);
  const T* a = warp.At<T>(i.args[2]);
  const T* b = warp.At<T>(i.args[3]);
  ForLanes(mask, [&](int l) {
    const bool holds = Compare(i.more[0], static_cast<Compared<T>>(a[l]),
                               static_cast<Compared<T>>(b[l]));
    const bool first = Join(warp, i, l, holds);
    q[l] = Join(warp, i, l, !holds);
    p[l] = first;
  });
}
// Of the two halves of words.
template <typename T>
void SetPredicates(Warp& warp, const Instruction& i, uint32_t mask) {
  const T* a = warp.At<T>(i.args[2]);
  const T* b = warp.At<T>(i.args[3]);
  ForLanes(mask, [&](int l) {
    bool results[2];
    for (int half = 0; half < 2; ++half) {
      const int k = 2 * l + half;
      results[half] = Join(warp, i, l,
                           Compare(i.more[0], static_cast<Compared<T>>(a[k]),
                                   static_cast<Compared<T>>(b[k])));
    }
    for (int half = 0; half < 2; ++half) {
      warp.At<uint8_t>(i.args[static_cast<size_t>(half)])[l] = results[half];
    }
  });
}

}  // namespace

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
  if (type.count == 2) {
    out.run = type.kind == 'B'   ? SetPredicates<BFloat16>
              : type.kind == 'f' ? SetPredicates<Float16>
                                 : nullptr;
    return results == 2 && out.run != nullptr;
  }
  return WithNumber(type, [&]<typename T>(T) { out.run = SetPredicate<T>; });
}

namespace {

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

}  // namespace

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

}  // namespace tilefarm::ptx
