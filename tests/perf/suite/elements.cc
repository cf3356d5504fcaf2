#include "tests/perf/suite/elements.h"

#include <bit>
#include <cstdint>
#include <stdexcept>

namespace tilefarm::perf {
namespace {

template <typename T>
T At(const void* data, size_t i) {
  return static_cast<const T*>(data)[i];
}

}  // namespace

size_t ElementBytes(const std::string& dtype) {
  if (dtype == "uint8" || dtype == "int8") return 1;
  if (dtype == "float16" || dtype == "bfloat16") return 2;
  if (dtype == "int32" || dtype == "float32") return 4;
  throw std::invalid_argument("dtype " + dtype);
}

void FillRandom(const std::string& dtype, void* data, size_t count,
                std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (size_t i = 0; i < count; ++i) {
    if (ElementBytes(dtype) == 1) {
      static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(random() >> 8);
    } else if (dtype == "float16") {
      static_cast<_Float16*>(data)[i] = static_cast<_Float16>(uniform(random));
    } else if (dtype == "bfloat16") {
      static_cast<uint16_t*>(data)[i] =
          static_cast<uint16_t>(std::bit_cast<uint32_t>(uniform(random)) >> 16);
    } else if (dtype == "int32") {
      static_cast<int32_t*>(data)[i] = static_cast<int32_t>(random());
    } else {
      static_cast<float*>(data)[i] = uniform(random);
    }
  }
}

double ElementAt(const std::string& dtype, const void* data, size_t i) {
  if (dtype == "uint8") return At<uint8_t>(data, i);
  if (dtype == "int8") return At<int8_t>(data, i);
  if (dtype == "int32") return At<int32_t>(data, i);
  if (dtype == "float16") return static_cast<double>(At<_Float16>(data, i));
  if (dtype == "bfloat16") {
    const uint32_t bits = static_cast<uint32_t>(At<uint16_t>(data, i)) << 16;
    return std::bit_cast<float>(bits);
  }
  return At<float>(data, i);
}

}  // namespace tilefarm::perf
