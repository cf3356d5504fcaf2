#include "compiler/ir/dtype.h"

namespace tilefarm::ir {

std::string DataType::ToString() const {
  std::string text;
  if (is_bool()) {
    text = "bool";
  } else {
    switch (code) {
      case TypeCode::kInt:
        text = "int";
        break;
      case TypeCode::kUInt:
        text = "uint";
        break;
      case TypeCode::kFloat:
        text = "float";
        break;
      case TypeCode::kBFloat:
        text = "bfloat";
        break;
    }
    text += std::to_string(bits);
  }
  if (lanes > 1) text.append("x").append(std::to_string(lanes));
  return text;
}

std::optional<DataType> DataType::Parse(std::string_view text) {
  static constexpr DataType kTypes[] = {
      Float(16), Float(32), Float(64), BFloat16(), Int(8),   Int(16), Int(32),
      Int(64),   UInt(8),   UInt(16),  UInt(32),   UInt(64), Bool()};
  for (DataType type : kTypes) {
    if (type.ToString() == text) return type;
  }
  return std::nullopt;
}

}  // namespace tilefarm::ir
