// Arithmetic, and which operation an opcode is.
#include "tests/gpu/ptx/ptx_operations.h"

#include <algorithm>
#include <type_traits>

#include "tests/gpu/ptx/ptx_arithmetic.h"
#include "tests/gpu/ptx/ptx_numbers.h"
#include "tests/gpu/ptx/ptx_warp.h"

namespace tilefarm::ptx {
namespace {

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

template <typename T>
void Select(Warp& warp, const Instruction& i, uint32_t mask) {
  T* to = warp.At<T>(i.args[0]);
  const T* a = warp.At<T>(i.args[1]);
  const T* b = warp.At<T>(i.args[2]);
  const uint8_t* p = warp.At<uint8_t>(i.args[3]);
  ForLanes(mask, [&](int l) { to[l] = p[l] != 0 ? a[l] : b[l]; });
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
  if (name == "cvta") {
    return MakeAddressConversion(opcode, operands, places, out);
  }
  if (name == "mapa") return MakeClusterAddress(opcode, operands, places, out);
  if (name == "setp") return MakeSetPredicate(opcode, operands, places, out);
  const Type type = ParseType(opcode.back());
  if (type.kind == 0 || operands.empty()) return false;
  for (const std::string& part : opcode) {
    // Roundings and variants that nothing here does.
    for (const char* other :
         {"rz", "rm", "rp", "sat", "cc", "NaN", "relu", "xorsign", "ftz"}) {
      const bool known = (part == "ftz" && Has(opcode, "approx")) ||
                         (part == "NaN" && type.kind == 'f');
      if (part == other && !known) return false;
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
              name == "tanh" || name == "popc" || name == "clz"
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
  if (Has(opcode, "NaN")) {
    if (name == "min") return Binary<MinOrNan>(type, out);
    if (name == "max") return Binary<MaxOrNan>(type, out);
    return false;
  }
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
