// What the instructions of a target can do, as far as schedules, lowering and
// code generation ask for it. They ask by these names alone; which features of
// LLVM give a capability stands in one table, capability.cc.
#ifndef TILEFARM_COMPILER_TARGET_CAPABILITY_H_
#define TILEFARM_COMPILER_TARGET_CAPABILITY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace tilefarm::target {

enum class Capability : uint8_t {
  // Dot products by one instruction: each 32-bit lane of a vector of so many
  // bits gets the sum of its group of products, of four bytes or of two 16-bit
  // numbers. Bytes are all signed or all unsigned; mixed: one operand each.
  kByteDot128,
  kByteDot256,
  kMixedByteDot128,
  kMixedByteDot256,
  kMixedByteDot512,
  kInt16Dot128,
  kInt16Dot256,
  kInt16Dot512,
  kBFloat16Dot128,
  kBFloat16Dot256,
  kBFloat16Dot512,
  // In such a lane, the sum of two products of signed 16-bit numbers, which
  // takes another instruction to add up.
  kInt16PairProduct256,
  kInt16PairProduct512,
  // Products of tiles, 16 rows of 64 bytes each: bytes of any sign, bfloat16.
  kByteTile,
  kBFloat16Tile,
  // Conversions between float16 and float32.
  kHalfConversion,
  // p * 2^n of float32 vectors of so many bits in one instruction.
  kScaling128,
  kScaling256,
  kScaling512,
  // Fused products and sums of vectors that LLVM does not form by itself.
  kExplicitFma,
  // Shuffles that transpose a tile faster than loads of its single elements.
  kTransposingShuffles,
  // Stores of whole vectors that bypass the caches.
  kStreamingStores,
};
inline constexpr int kCapabilities =
    static_cast<int>(Capability::kStreamingStores) + 1;

// A set of them. A value type.
class Capabilities {
 public:
  bool Has(Capability capability) const {
    return (set_ & Bit(capability)) != 0;
  }
  void Add(Capability capability) { set_ |= Bit(capability); }
  bool operator==(const Capabilities&) const = default;

 private:
  static_assert(kCapabilities <= 64);
  static uint64_t Bit(Capability capability) {
    return uint64_t{1} << static_cast<int>(capability);
  }

  uint64_t set_ = 0;
};

// Those of a target of the kind. `has_feature` is asked for features that LLVM
// knows for the kind, by their names.
Capabilities ResolveCapabilities(
    std::string_view kind,
    const std::function<bool(std::string_view feature)>& has_feature);

// What gives the capability, for messages: LLVM's features, or the kinds of
// targets that all have it: "avxvnni or avx512vnni with avx512vl".
std::string Requirement(Capability capability);

}  // namespace tilefarm::target

#endif  // TILEFARM_COMPILER_TARGET_CAPABILITY_H_
