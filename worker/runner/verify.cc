#include "worker/runner/verify.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "worker/runner/numeric.h"

namespace tilefarm::worker {
namespace {

// Access to elements by type, so that each loop below is compiled for each
// type.
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

// Access to bounds, which are 0 if `bounds` is null.
class Bounds {
 public:
  Bounds(const BufferSpec& spec, const void* bounds)
      : bounds_(bounds), wide_(BoundBytes(spec.type) == 8) {}
  double At(uint64_t i) const {
    if (bounds_ == nullptr) return 0;
    return wide_ ? Plain<double>::At(bounds_, i) : Plain<float>::At(bounds_, i);
  }

 private:
  const void* bounds_;
  bool wide_;
};

// Takes one compared element into account.
void Note(uint32_t number, uint64_t element, double got, double expected,
          double tolerance, bool equal, Comparison* result) {
  const double difference = std::fabs(got - expected);
  if (std::isfinite(difference)) {
    result->max_abs_error = std::max(result->max_abs_error, difference);
    if (difference > 0) {
      result->max_rel_error =
          std::max(result->max_rel_error, difference / tolerance);
    }
  }
  if (equal) return;
  if (result->equal) {
    result->error = Mismatch(number, element, got, expected, tolerance);
  }
  result->equal = false;
}

template <typename Type>
Comparison CompareFloats(Type, const BufferSpec& spec, uint32_t number,
                         const void* reference, const Bounds& bounds,
                         double slack, const void* output) {
  Comparison result;
  for (uint64_t i = 0; i < spec.elements; ++i) {
    const double expected = Type::At(reference, i);
    const double got = Type::At(output, i);
    if (got == expected) continue;
    const double tolerance = bounds.At(i) + slack;
    if (std::isinf(tolerance)) continue;
    // False for NaN on either side.
    const bool close =
        std::isfinite(expected) && std::fabs(got - expected) <= tolerance;
    const bool same = std::isnan(expected) && std::isnan(got);
    if (same) continue;
    Note(number, i, got, expected, tolerance, close, &result);
  }
  return result;
}

Comparison CompareIntegers(const BufferSpec& spec, uint32_t number,
                           const void* reference, const Bounds& bounds,
                           const void* output) {
  Comparison result;
  if (std::memcmp(reference, output, spec.elements * ElementBytes(spec.type)) ==
      0) {
    return result;
  }
  for (uint64_t i = 0; i < spec.elements; ++i) {
    const int64_t expected = IntegerAt(spec.type, reference, i);
    const int64_t got = IntegerAt(spec.type, output, i);
    if (got == expected) continue;
    // Wraps around if the difference does not fit, as the computation does.
    const auto apart = static_cast<int64_t>(static_cast<uint64_t>(got) -
                                            static_cast<uint64_t>(expected));
    const double tolerance = bounds.At(i);
    if (std::isinf(tolerance)) continue;
    Note(number, i, static_cast<double>(got), static_cast<double>(expected),
         tolerance, std::fabs(static_cast<double>(apart)) <= tolerance,
         &result);
  }
  return result;
}

}  // namespace

double RootMeanSquare(const BufferSpec& spec, const void* bounds) {
  const Bounds values(spec, bounds);
  double largest = 0;
  for (uint64_t i = 0; i < spec.elements; ++i) {
    if (std::isfinite(values.At(i))) {
      largest = std::max(largest, values.At(i));
    }
  }
  if (largest == 0) return 0;
  // Squares of shares of the largest do not overflow.
  double sum = 0;
  uint64_t count = 0;
  for (uint64_t i = 0; i < spec.elements; ++i) {
    const double share = values.At(i) / largest;
    if (!std::isfinite(share)) continue;
    sum += share * share;
    ++count;
  }
  return largest * std::sqrt(sum / static_cast<double>(count));
}

double RootMeanSquareOf(const BufferSpec& spec, const void* data) {
  if (!IsFloat(spec.type)) return 0;
  return WithFloatType(spec.type, [&](auto type) {
    double sum = 0;
    uint64_t count = 0;
    for (uint64_t i = 0; i < spec.elements; ++i) {
      const double value = decltype(type)::At(data, i);
      if (!std::isfinite(value * value)) continue;
      sum += value * value;
      ++count;
    }
    return count == 0 ? 0 : std::sqrt(sum / static_cast<double>(count));
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

Comparison Compare(const BufferSpec& spec, uint32_t number,
                   const void* reference, const void* bounds, double slack,
                   const void* output) {
  const Bounds values(spec, bounds);
  if (!IsFloat(spec.type)) {
    return CompareIntegers(spec, number, reference, values, output);
  }
  return WithFloatType(spec.type, [&](auto type) {
    return CompareFloats(type, spec, number, reference, values, slack, output);
  });
}

}  // namespace tilefarm::worker
