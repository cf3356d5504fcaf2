// Element types, with vector lanes for lowered code.
#ifndef TILEFARM_COMPILER_IR_DTYPE_H_
#define TILEFARM_COMPILER_IR_DTYPE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tilefarm::ir {

enum class TypeCode : uint8_t { kInt, kUInt, kFloat, kBFloat };

// A value type. bool is a one-bit unsigned integer that uses one byte of
// memory. Types in programs have one lane; only lowering makes vectors.
struct DataType {
  TypeCode code = TypeCode::kInt;
  uint8_t bits = 64;
  uint16_t lanes = 1;

  static constexpr DataType Int(int bits) {
    return {TypeCode::kInt, static_cast<uint8_t>(bits), 1};
  }
  static constexpr DataType UInt(int bits) {
    return {TypeCode::kUInt, static_cast<uint8_t>(bits), 1};
  }
  static constexpr DataType Float(int bits) {
    return {TypeCode::kFloat, static_cast<uint8_t>(bits), 1};
  }
  static constexpr DataType BFloat16() { return {TypeCode::kBFloat, 16, 1}; }
  static constexpr DataType Bool() { return {TypeCode::kUInt, 1, 1}; }
  // The type of loop variables, extents and indices.
  static constexpr DataType Index() { return Int(64); }

  bool is_bool() const { return code == TypeCode::kUInt && bits == 1; }
  bool is_int() const { return code == TypeCode::kInt; }
  bool is_uint() const { return code == TypeCode::kUInt && bits > 1; }
  bool is_integral() const { return is_int() || is_uint(); }
  // Includes bfloat16.
  bool is_float() const {
    return code == TypeCode::kFloat || code == TypeCode::kBFloat;
  }
  bool is_index() const { return *this == Index(); }
  bool is_vector() const { return lanes > 1; }
  // Bytes of one element in memory, lanes not counted.
  int bytes() const { return (bits + 7) / 8; }
  DataType element() const { return with_lanes(1); }
  DataType with_lanes(int n) const {
    return {code, bits, static_cast<uint16_t>(n)};
  }

  // "float32", "bool", "bfloat16"; vectors as "float32x8".
  std::string ToString() const;
  // The dtypes of the language (float16/32/64, bfloat16, int8/16/32/64,
  // uint8/16/32/64, bool) without lanes; nullopt for other texts.
  static std::optional<DataType> Parse(std::string_view text);

  bool operator==(const DataType&) const = default;
};

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_DTYPE_H_
