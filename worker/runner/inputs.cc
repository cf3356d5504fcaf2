#include "worker/runner/inputs.h"

#include <algorithm>
#include <cstring>

#include "base/split_mix.h"
#include "worker/runner/numeric.h"

namespace tilefarm::worker {
namespace {

class Words {
 public:
  explicit Words(uint64_t seed) : state_(seed) {}
  uint64_t Next() { return SplitMix(state_); }

 private:
  uint64_t state_;
};

// In [-1, 1], or (0, 1]. A multiple of 2^-23, which is exact in a float.
float Unit(Words& rng, bool positive) {
  const auto bits = static_cast<int32_t>(rng.Next() >> 40);  // 24 bits
  if (positive) return static_cast<float>(bits / 2 + 1) * 0x1p-23f;
  return static_cast<float>(bits - (1 << 23)) * 0x1p-23f;
}

template <typename T>
void FillIntegers(const BufferSpec& spec, Words& rng, bool positive,
                  void* data) {
  int64_t low = spec.low;
  if (positive) low = std::clamp<int64_t>(1, low, spec.high);
  const uint64_t range = static_cast<uint64_t>(spec.high) -
                         static_cast<uint64_t>(low) + 1;  // 0: all 2^64 values
  T* out = static_cast<T*>(data);
  for (uint64_t i = 0; i < spec.elements; ++i) {
    const uint64_t x = rng.Next() >> 8;
    out[i] = static_cast<T>(static_cast<uint64_t>(low) +
                            (range == 0 ? x : x % range));
  }
}

}  // namespace

void FillInput(const BufferSpec& spec, uint64_t seed, uint32_t index,
               bool positive, void* data) {
  Words rng(Words(seed + index).Next());
  switch (spec.type) {
    case ElementType::kFloat16:
      for (uint64_t i = 0; i < spec.elements; ++i) {
        // Rounding must not make a positive input zero.
        const float v = Unit(rng, positive);
        static_cast<uint16_t*>(data)[i] =
            UnitToHalf(positive ? std::max(v, 0x1p-14f) : v);
      }
      return;
    case ElementType::kBFloat16:
      for (uint64_t i = 0; i < spec.elements; ++i) {
        static_cast<uint16_t*>(data)[i] = FloatToBFloat16(Unit(rng, positive));
      }
      return;
    case ElementType::kFloat32:
      for (uint64_t i = 0; i < spec.elements; ++i) {
        static_cast<float*>(data)[i] = Unit(rng, positive);
      }
      return;
    case ElementType::kFloat64:
      for (uint64_t i = 0; i < spec.elements; ++i) {
        static_cast<double*>(data)[i] = Unit(rng, positive);
      }
      return;
    case ElementType::kInt8:
    case ElementType::kUInt8:
      return FillIntegers<uint8_t>(spec, rng, positive, data);
    case ElementType::kInt16:
    case ElementType::kUInt16:
      return FillIntegers<uint16_t>(spec, rng, positive, data);
    case ElementType::kInt32:
    case ElementType::kUInt32:
      return FillIntegers<uint32_t>(spec, rng, positive, data);
    case ElementType::kInt64:
    case ElementType::kUInt64:
      return FillIntegers<uint64_t>(spec, rng, positive, data);
    case ElementType::kBool:
      for (uint64_t i = 0; i < spec.elements; ++i) {
        static_cast<uint8_t*>(data)[i] = rng.Next() >> 63;
      }
      return;
  }
}

}  // namespace tilefarm::worker
