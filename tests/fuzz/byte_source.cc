#include "tests/fuzz/byte_source.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tilefarm::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr size_t kLongText = 100'000;
constexpr int kMostRepeated = 6;

uint64_t AnyNumber(ByteSource& source) {
  static constexpr uint64_t kOdd[] = {1,
                                      0,
                                      2,
                                      3,
                                      100,
                                      1000,
                                      1 << 20,
                                      0x7fffffff,
                                      0x80000000,
                                      0xffffffff,
                                      0x7fffffffffffffff,
                                      0x8000000000000000,
                                      0xffffffffffffffff};
  if (source.Chance(32)) return source.Bits();
  return kOdd[source.Below(std::size(kOdd))];
}

double AnyReal(ByteSource& source) {
  static constexpr double kOdd[] = {1e-3,
                                    0.0,
                                    -1.0,
                                    1e300,
                                    1e-300,
                                    std::numeric_limits<double>::infinity(),
                                    std::numeric_limits<double>::quiet_NaN()};
  return kOdd[source.Below(std::size(kOdd))];
}

// Sets `field` of `message`, or adds a value if it is repeated.
void FillField(ByteSource& source, const Words& words,
               const FieldDescriptor* field, Message* message) {
  const Reflection& r = *message->GetReflection();
  const bool many = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: {
      const auto v = static_cast<int32_t>(AnyNumber(source));
      many ? r.AddInt32(message, field, v) : r.SetInt32(message, field, v);
      return;
    }
    case FieldDescriptor::CPPTYPE_INT64: {
      const auto v = static_cast<int64_t>(AnyNumber(source));
      many ? r.AddInt64(message, field, v) : r.SetInt64(message, field, v);
      return;
    }
    case FieldDescriptor::CPPTYPE_UINT32: {
      const auto v = static_cast<uint32_t>(AnyNumber(source));
      many ? r.AddUInt32(message, field, v) : r.SetUInt32(message, field, v);
      return;
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      const uint64_t v = AnyNumber(source);
      many ? r.AddUInt64(message, field, v) : r.SetUInt64(message, field, v);
      return;
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      const double v = AnyReal(source);
      many ? r.AddDouble(message, field, v) : r.SetDouble(message, field, v);
      return;
    }
    case FieldDescriptor::CPPTYPE_FLOAT: {
      const auto v = static_cast<float>(AnyReal(source));
      many ? r.AddFloat(message, field, v) : r.SetFloat(message, field, v);
      return;
    }
    case FieldDescriptor::CPPTYPE_BOOL: {
      const bool v = source.Chance(128);
      many ? r.AddBool(message, field, v) : r.SetBool(message, field, v);
      return;
    }
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int v = source.Chance(240) ? static_cast<int>(source.Below(6))
                                       : static_cast<int>(source.Bits());
      many ? r.AddEnumValue(message, field, v)
           : r.SetEnumValue(message, field, v);
      return;
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string v = AnyText(source, words);
      many ? r.AddString(message, field, v) : r.SetString(message, field, v);
      return;
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      FillMessage(source, words,
                  many ? r.AddMessage(message, field)
                       : r.MutableMessage(message, field));
      return;
  }
}

}  // namespace

uint8_t ByteSource::Byte() {
  if (bytes_.empty()) return 0;
  const auto byte = static_cast<uint8_t>(bytes_.front());
  bytes_.remove_prefix(1);
  return byte;
}

uint64_t ByteSource::Bits() {
  uint64_t bits = 0;
  for (int i = 0; i < 8; ++i) bits = bits << 8 | Byte();
  return bits;
}

size_t ByteSource::Below(size_t count) {
  const size_t value = count <= 256 ? Byte() : Byte() << 8 | Byte();
  return value % count;
}

std::string Damaged(ByteSource& source, std::string text) {
  for (size_t edits = 1 + source.Below(4); edits > 0 && !text.empty();
       --edits) {
    const size_t at = source.Below(text.size());
    switch (source.Below(6)) {
      case 0:
        text[at] = static_cast<char>(source.Byte());
        break;
      case 1:
        text.resize(at);
        break;
      case 2:
        text.insert(at, 1 + source.Below(16), static_cast<char>(source.Byte()));
        break;
      case 3:
        text.erase(at, 1 + source.Below(32));
        break;
      case 4: {
        const std::string piece = text.substr(at, 1 + source.Below(64));
        text.insert(source.Below(text.size()), piece);
        break;
      }
      default: {
        // Replace a number by another one.
        const size_t digit = text.find_first_of("0123456789", at);
        if (digit == std::string::npos) break;
        text.replace(digit, 1, std::to_string(AnyNumber(source)));
      }
    }
  }
  return text;
}

std::string AnyText(ByteSource& source, const Words& words) {
  if (source.Chance(8)) return std::string(kLongText, 'x');
  if (words.empty() || source.Chance(8)) return "";
  std::string text = words[source.Below(words.size())];
  if (source.Chance(32)) text = Damaged(source, std::move(text));
  return text;
}

void FillMessage(ByteSource& source, const Words& words, Message* message) {
  const google::protobuf::Descriptor& type = *message->GetDescriptor();
  // For a oneof, choose one field.
  for (int i = 0; i < type.real_oneof_decl_count(); ++i) {
    const auto* choice = type.oneof_decl(i);
    if (source.Chance(250)) {
      FillField(source, words,
                choice->field(static_cast<int>(
                    source.Below(static_cast<size_t>(choice->field_count())))),
                message);
    }
  }
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    if (field->real_containing_oneof() != nullptr) continue;
    if (source.Chance(64)) continue;
    size_t times = 1;
    if (field->is_repeated()) times = source.Below(kMostRepeated);
    for (; times > 0; --times) FillField(source, words, field, message);
  }
}

}  // namespace tilefarm::fuzz
