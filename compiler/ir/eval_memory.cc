// Reads and writes elements in memory.
#include <cstddef>
#include <cstring>

#include "compiler/ir/eval.h"
#include "compiler/ir/float16.h"

namespace tilefarm::ir {
namespace {
template <typename T>
T ReadAs(const std::byte* data, int64_t index) {
  T value;
  std::memcpy(&value, data + index * static_cast<int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}
template <typename T>
void WriteAs(std::byte* data, int64_t index, T value) {
  std::memcpy(data + index * static_cast<int64_t>(sizeof(T)), &value,
              sizeof(T));
}
}  // namespace

int64_t ReadInt(const std::byte* data, int64_t index, DataType dtype) {
  if (dtype.is_bool()) return ReadAs<uint8_t>(data, index) != 0;
  const bool is_signed = dtype.is_int();
  switch (dtype.bits) {
    case 8:
      return is_signed ? int64_t{ReadAs<int8_t>(data, index)}
                       : int64_t{ReadAs<uint8_t>(data, index)};
    case 16:
      return is_signed ? int64_t{ReadAs<int16_t>(data, index)}
                       : int64_t{ReadAs<uint16_t>(data, index)};
    case 32:
      return is_signed ? int64_t{ReadAs<int32_t>(data, index)}
                       : int64_t{ReadAs<uint32_t>(data, index)};
    default:
      return ReadAs<int64_t>(data, index);
  }
}

double ReadFloat(const std::byte* data, int64_t index, DataType dtype) {
  if (dtype.bits == 64) return ReadAs<double>(data, index);
  if (dtype.bits == 32) return ReadAs<float>(data, index);
  const auto bits = ReadAs<uint16_t>(data, index);
  return dtype.code == TypeCode::kBFloat ? BFloatToFloat(bits)
                                         : HalfToFloat(bits);
}

void WriteInt(std::byte* data, int64_t index, DataType dtype, int64_t value) {
  switch (dtype.bits) {
    case 1:
      return WriteAs<uint8_t>(data, index, value != 0);
    case 8:
      return WriteAs(data, index, static_cast<uint8_t>(value));
    case 16:
      return WriteAs(data, index, static_cast<uint16_t>(value));
    case 32:
      return WriteAs(data, index, static_cast<uint32_t>(value));
    default:
      return WriteAs(data, index, value);
  }
}

void WriteFloat(std::byte* data, int64_t index, DataType dtype, double value) {
  if (dtype.bits == 64) return WriteAs(data, index, value);
  const float single = static_cast<float>(value);
  if (dtype.bits == 32) return WriteAs(data, index, single);
  WriteAs(data, index,
          dtype.code == TypeCode::kBFloat ? FloatToBFloat(single)
                                          : FloatToHalf(single));
}

}  // namespace tilefarm::ir
