#include "worker/runner/verify.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "base/tolerance.h"
#include "worker/runner/numeric.h"

namespace tilefarm::worker {
namespace {

// Element access by type, so that each loop below is compiled per type.
struct Half {
  static double At(const void* data, uint64_t i) {
    return HalfToFloat(static_cast<const uint16_t*>(data)[i]);
  }
};
struct BFloat {
  static double At(const void* data, uint64_t i) {
    return BFloat16ToFloat(static_cast<const uint16_t*>(data)[i]);
  }
};
template <typename T>
struct Plain {
  static double At(const void* data, uint64_t i) {
    return static_cast<double>(static_cast<const T*>(data)[i]);
  }
};

template <typename Function>
auto WithFloatType(ElementType type, Function function) {
  switch (type) {
    case ElementType::kFloat16:
      return function(Half());
    case ElementType::kBFloat16:
      return function(BFloat());
    case ElementType::kFloat64:
      return function(Plain<double>());
    default:
      return function(Plain<float>());
  }
}

int64_t IntegerAt(ElementType type, const void* data, uint64_t i) {
  switch (type) {
    case ElementType::kInt8:
      return static_cast<const int8_t*>(data)[i];
    case ElementType::kInt16:
      return static_cast<const int16_t*>(data)[i];
    case ElementType::kInt32:
      return static_cast<const int32_t*>(data)[i];
    case ElementType::kUInt16:
      return static_cast<const uint16_t*>(data)[i];
    case ElementType::kUInt32:
      return static_cast<const uint32_t*>(data)[i];
    case ElementType::kInt64:
    case ElementType::kUInt64:
      return static_cast<const int64_t*>(data)[i];
    default:
      return static_cast<const uint8_t*>(data)[i];
  }
}

std::string Mismatch(uint32_t number, uint64_t element, double got,
                     double expected, double tolerance) {
  char text[160];
  std::snprintf(text, sizeof text,
                "wrong result: parameter %u, element %llu is %.9g, expected "
                "%.9g within %.3g",
                number, static_cast<unsigned long long>(element), got, expected,
                tolerance);
  return text;
}

template <typename Type>
Comparison CompareFloats(Type, const BufferSpec& spec,
                         uint64_t reduction_length, uint32_t number,
                         const void* reference, double rms,
                         const void* output) {
  const double factor = RelativeTolerance(spec.epsilon, reduction_length);
  Comparison result;
  for (uint64_t i = 0; i < spec.elements; ++i) {
    const double expected = Type::At(reference, i);
    const double got = Type::At(output, i);
    const double difference = std::fabs(got - expected);
    const double scale = std::fabs(expected) + rms;
    const double tolerance = factor * scale;
    // False for NaN on either side and for equal infinities.
    if (difference <= tolerance && std::isfinite(expected)) {
      if (difference > result.max_abs_error) result.max_abs_error = difference;
      if (difference > 0 && difference > result.max_rel_error * scale) {
        result.max_rel_error = difference / scale;
      }
      continue;
    }
    const bool same = std::isnan(expected) ? std::isnan(got) : got == expected;
    if (same) continue;
    if (result.equal) {
      result.error = Mismatch(number, i, got, expected, tolerance);
    }
    result.equal = false;
    if (std::isfinite(difference)) {
      if (difference > result.max_abs_error) result.max_abs_error = difference;
      if (scale > 0 && difference > result.max_rel_error * scale) {
        result.max_rel_error = difference / scale;
      }
    }
  }
  return result;
}

Comparison CompareIntegers(const BufferSpec& spec, uint32_t number,
                           const void* reference, const void* output) {
  Comparison result;
  if (std::memcmp(reference, output, spec.elements * ElementBytes(spec.type)) ==
      0) {
    return result;
  }
  result.equal = false;
  for (uint64_t i = 0; i < spec.elements; ++i) {
    const int64_t expected = IntegerAt(spec.type, reference, i);
    const int64_t got = IntegerAt(spec.type, output, i);
    if (got == expected) continue;
    const double difference =
        std::fabs(static_cast<double>(got) - static_cast<double>(expected));
    if (result.error.empty()) {
      result.error = Mismatch(number, i, static_cast<double>(got),
                              static_cast<double>(expected), 0);
    }
    if (difference > result.max_abs_error) result.max_abs_error = difference;
    const double scale = std::fabs(static_cast<double>(expected));
    if (scale > 0 && difference > result.max_rel_error * scale) {
      result.max_rel_error = difference / scale;
    }
  }
  return result;
}

}  // namespace

double RootMeanSquare(const BufferSpec& spec, const void* data) {
  if (!IsFloat(spec.type)) return 0;
  return WithFloatType(spec.type, [&](auto type) {
    double sum = 0;
    uint64_t count = 0;
    for (uint64_t i = 0; i < spec.elements; ++i) {
      const double v = decltype(type)::At(data, i);
      if (!std::isfinite(v)) continue;
      sum += v * v;
      ++count;
    }
    return count == 0 ? 0.0 : std::sqrt(sum / static_cast<double>(count));
  });
}

bool AllFinite(const BufferSpec& spec, const void* data) {
  if (!IsFloat(spec.type)) return true;
  return WithFloatType(spec.type, [&](auto type) {
    for (uint64_t i = 0; i < spec.elements; ++i) {
      if (!std::isfinite(decltype(type)::At(data, i))) return false;
    }
    return true;
  });
}

Comparison Compare(const BufferSpec& spec, uint64_t reduction_length,
                   uint32_t number, const void* reference, double rms,
                   const void* output) {
  if (!IsFloat(spec.type)) {
    return CompareIntegers(spec, number, reference, output);
  }
  return WithFloatType(spec.type, [&](auto type) {
    return CompareFloats(type, spec, reduction_length, number, reference, rms,
                         output);
  });
}

}  // namespace tilefarm::worker
