#include "compiler/onnx/small_types.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "compiler/onnx/tensor_proto.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;

constexpr SmallType Float(int onnx_type, int bits, int mantissa_bits, int bias,
                          int max_code, int over_code, int nan_code,
                          bool unsigned_zero = false) {
  return {onnx_type, DataType::UInt(8), bits,      true,     mantissa_bits,
          bias,      max_code,          over_code, nan_code, unsigned_zero};
}

constexpr SmallType Integer(int onnx_type, int bits, bool is_signed) {
  SmallType type{onnx_type, is_signed ? DataType::Int(8) : DataType::UInt(8),
                 bits, false};
  type.min = is_signed ? -(1 << (bits - 1)) : 0;
  type.max = (is_signed ? 1 << (bits - 1) : 1 << bits) - 1;
  return type;
}

// By TensorProto's numbers; Debian's schema does not have them.
constexpr SmallType kTypes[] = {
    Float(17, 8, 3, 7, 0x7e, 0x7f, 0x7f),         // FLOAT8E4M3FN
    Float(18, 8, 3, 8, 0x7f, 0x80, 0x80, true),   // FLOAT8E4M3FNUZ
    Float(19, 8, 2, 15, 0x7b, 0x7c, 0x7e),        // FLOAT8E5M2
    Float(20, 8, 2, 16, 0x7f, 0x80, 0x80, true),  // FLOAT8E5M2FNUZ
    Integer(21, 4, false),                        // UINT4
    Integer(22, 4, true),                         // INT4
    Float(23, 4, 1, 1, 0x7, 0x7, 0x8),       // FLOAT4E2M1, always saturates
    Float(24, 8, 0, 127, 0xfe, 0xff, 0xff),  // FLOAT8E8M0
    Integer(25, 2, false),                   // UINT2
    Integer(26, 2, true),                    // INT2
};

// Operators that move elements without looking at them, and which of their
// inputs are such elements.
enum class Roles { kFirst, kAll, kSecondAndThird };

const std::map<std::string, Roles>& MovingOperators() {
  static const auto* const operators = new std::map<std::string, Roles>{
      {"Compress", Roles::kFirst},        {"Concat", Roles::kAll},
      {"DepthToSpace", Roles::kFirst},    {"Expand", Roles::kFirst},
      {"Flatten", Roles::kFirst},         {"Gather", Roles::kFirst},
      {"GatherElements", Roles::kFirst},  {"GatherND", Roles::kFirst},
      {"Identity", Roles::kFirst},        {"Reshape", Roles::kFirst},
      {"ReverseSequence", Roles::kFirst}, {"Slice", Roles::kFirst},
      {"SpaceToDepth", Roles::kFirst},    {"Split", Roles::kFirst},
      {"Squeeze", Roles::kFirst},         {"Tile", Roles::kFirst},
      {"Transpose", Roles::kFirst},       {"Unsqueeze", Roles::kFirst},
      {"Where", Roles::kSecondAndThird},
  };
  return *operators;
}

// Converters that look at the type themselves, or at the shape only.
const std::set<std::string>& KnowingOperators() {
  static const auto* const operators = new std::set<std::string>{
      "Cast", "CastLike", "DequantizeLinear", "QuantizeLinear", "Shape", "Size",
  };
  return *operators;
}

bool HasRole(Roles roles, int input) {
  switch (roles) {
    case Roles::kFirst:
      return input == 0;
    case Roles::kAll:
      return true;
    case Roles::kSecondAndThird:
      return input == 1 || input == 2;
  }
  return false;
}

// The small type of the value or of an element of the sequence; 0: none.
int SmallTypeIn(const Imported& value) {
  if (value.sequence == nullptr) return value.small_type;
  for (const Imported& element : *value.sequence) {
    const int found = SmallTypeIn(element);
    if (found != 0) return found;
  }
  return 0;
}

}  // namespace

const SmallType* FindSmallType(int onnx_type) {
  for (const SmallType& type : kTypes) {
    if (type.onnx_type == onnx_type) return &type;
  }
  return nullptr;
}

const SmallType* FindSmallType(std::string_view name) {
  for (const SmallType& type : kTypes) {
    if (OnnxTypeName(type.onnx_type) == name) return &type;
  }
  return nullptr;
}

int64_t PackedBytes(const SmallType& type, int64_t num_elements) {
  const int per_byte = 8 / type.bits;
  return num_elements / per_byte + (num_elements % per_byte != 0);
}

std::vector<std::byte> Unpacked(const SmallType& type,
                                std::span<const std::byte> packed,
                                int64_t num_elements) {
  const int per_byte = 8 / type.bits;
  std::vector<std::byte> stored(static_cast<size_t>(num_elements));
  for (size_t i = 0; i < stored.size() && i / per_byte < packed.size(); ++i) {
    int value = std::to_integer<int>(packed[i / per_byte]) >>
                (static_cast<int>(i % per_byte) * type.bits);
    value &= (1 << type.bits) - 1;
    if (!type.is_float && value > type.max) value -= 1 << type.bits;
    stored[i] = static_cast<std::byte>(value);
  }
  return stored;
}

std::vector<std::byte> Packed(const SmallType& type,
                              std::span<const std::byte> stored) {
  const int per_byte = 8 / type.bits;
  std::vector<std::byte> packed(static_cast<size_t>(
      PackedBytes(type, static_cast<int64_t>(stored.size()))));
  for (size_t i = 0; i < stored.size(); ++i) {
    const int value = std::to_integer<int>(stored[i]) & ((1 << type.bits) - 1);
    packed[i / per_byte] |= static_cast<std::byte>(
        value << (static_cast<int>(i % per_byte) * type.bits));
  }
  return packed;
}

double SmallToDouble(const SmallType& type, std::byte stored) {
  const int code = std::to_integer<int>(stored);
  if (!type.is_float) {
    return type.storage.is_int() ? static_cast<int8_t>(code) : code;
  }
  if (type.is_power()) {
    return code == type.nan_code ? std::numeric_limits<double>::quiet_NaN()
                                 : std::ldexp(1.0, code - type.bias);
  }
  const int sign_bit = 1 << (type.bits - 1);
  const int magnitude = code & (sign_bit - 1);
  if (type.unsigned_zero && code == type.nan_code) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  double value;
  if (magnitude > type.max_code) {
    value = magnitude == type.over_code && type.over_code != type.nan_code
                ? std::numeric_limits<double>::infinity()
                : std::numeric_limits<double>::quiet_NaN();
  } else {
    const int exponent = magnitude >> type.mantissa_bits;
    const int mantissa = magnitude & ((1 << type.mantissa_bits) - 1);
    value = std::ldexp(mantissa + (exponent > 0 ? 1 << type.mantissa_bits : 0),
                       std::max(exponent, 1) - type.bias - type.mantissa_bits);
  }
  return (code & sign_bit) != 0 ? -value : value;
}

absl::Status CheckSmallTypes(Node& node) {
  int type = 0;
  for (int i = 0; i < node.num_inputs() && type == 0; ++i) {
    type = SmallTypeIn(node.RawInput(i));
  }
  if (type == 0) return absl::OkStatus();
  const bool standard =
      node.proto().domain().empty() || node.proto().domain() == "ai.onnx";
  if (standard && KnowingOperators().contains(node.op())) {
    return absl::OkStatus();
  }
  const auto moving = MovingOperators().find(node.op());
  if (!standard || moving == MovingOperators().end()) {
    return node.Unsupported("inputs of type ", OnnxTypeName(type));
  }
  for (int i = 0; i < node.num_inputs(); ++i) {
    const int own = SmallTypeIn(node.RawInput(i));
    if (own != (HasRole(moving->second, i) && node.HasInput(i) ? type : 0)) {
      return node.Invalid("input ", i, " must", own == 0 ? " also" : " not",
                          " be of type ", OnnxTypeName(own == 0 ? type : own));
    }
  }
  return absl::OkStatus();
}

void PassSmallTypesOn(Node& node, std::vector<Imported>& outputs) {
  if (!MovingOperators().contains(node.op())) return;
  int type = 0;
  for (int i = 0; i < node.num_inputs() && type == 0; ++i) {
    type = SmallTypeIn(node.RawInput(i));
  }
  for (Imported& output : outputs) {
    if (output.is_tensor() && output.small_type == 0) output.small_type = type;
  }
}

}  // namespace tilefarm::onnx
