// The types of operands: calls a template for that of an instruction.
#ifndef TILEFARM_TESTS_GPU_PTX_PTX_NUMBERS_H_
#define TILEFARM_TESTS_GPU_PTX_PTX_NUMBERS_H_

#include <cstdint>
#include <type_traits>

#include "tests/gpu/ptx/ptx_floats.h"
#include "tests/gpu/ptx/ptx_operations.h"

namespace tilefarm::ptx {

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

}  // namespace tilefarm::ptx

#endif  // TILEFARM_TESTS_GPU_PTX_PTX_NUMBERS_H_
