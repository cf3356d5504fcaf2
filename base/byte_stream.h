// Fields of binary data: u8, u32, u64, i64 (two's complement), f32 and f64
// (IEEE 754), little-endian, one after the other without padding.
//
// Knows the C++ standard library only: tune-runner links nothing else.
#ifndef TILEFARM_BASE_BYTE_STREAM_H_
#define TILEFARM_BASE_BYTE_STREAM_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace tilefarm {

static_assert(std::endian::native == std::endian::little);

// Appends fields.
class ByteWriter {
 public:
  void U8(uint8_t value) { Append(value); }
  void U32(uint32_t value) { Append(value); }
  void U64(uint64_t value) { Append(value); }
  void I64(int64_t value) { Append(value); }
  void F32(float value) { Append(value); }
  void F64(double value) { Append(value); }
  void Bool(bool value) { U8(value ? 1 : 0); }
  void Bytes(std::string_view bytes) { bytes_ += bytes; }
  // The length as u64, then the bytes.
  void Str(std::string_view text) {
    U64(text.size());
    Bytes(text);
  }

  const std::string& bytes() const { return bytes_; }
  std::string Take() { return std::move(bytes_); }

 private:
  template <typename T>
  void Append(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }

  std::string bytes_;
};

// Reads what a ByteWriter wrote, from bytes that must outlive it. Reading past
// the end gives zeros and empty strings and makes ok() false for good, so a
// decoder needs one check at its end.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}
  uint8_t U8() { return Next<uint8_t>(); }
  uint32_t U32() { return Next<uint32_t>(); }
  uint64_t U64() { return Next<uint64_t>(); }
  int64_t I64() { return Next<int64_t>(); }
  float F32() { return Next<float>(); }
  double F64() { return Next<double>(); }
  bool Bool() { return U8() != 0; }
  std::string_view Bytes(uint64_t size) {
    if (!Has(size, 1)) {
      Fail();
      return {};
    }
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }
  std::string Str() { return std::string(Bytes(U64())); }
  // The length, as u32, of a list with elements of at least `element_bytes`
  // each. Fails for a length that does not fit into the rest.
  uint32_t ListLength(size_t element_bytes) {
    const uint32_t length = U32();
    if (Has(length, element_bytes)) return length;
    Fail();
    return 0;
  }

  // Whether `count` more items of `size` bytes each may follow.
  bool Has(uint64_t count, uint64_t size) const {
    return ok_ && count <= rest_.size() / size;
  }
  bool ok() const { return ok_; }
  // All reads succeeded, and nothing is left.
  bool Finished() const { return ok_ && rest_.empty(); }

 private:
  template <typename T>
  T Next() {
    T value{};
    const std::string_view bytes = Bytes(sizeof(value));
    if (ok_) std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  }
  void Fail() {
    ok_ = false;
    rest_ = {};
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace tilefarm

#endif  // TILEFARM_BASE_BYTE_STREAM_H_
