// Bytes of stored models: little-endian fields, sealed with a kind, a version
// and a checksum, so that damage is found before anything is used.
//
//   "TFCM" | version u32 | kind: size u32, text | body | first 8 bytes of the
//   SHA-256 of all before, big-endian
#ifndef TILEFARM_COST_MODEL_MODEL_BYTES_H_
#define TILEFARM_COST_MODEL_MODEL_BYTES_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tilefarm::cost_model {

class ByteWriter {
 public:
  void U32(uint32_t value);
  void U64(uint64_t value);
  void F32(float value);
  void F64(double value);
  void Text(std::string_view text);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Reads the output of a ByteWriter. Past the end, every value is 0 and ok()
// false.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}
  uint32_t U32();
  uint64_t U64();
  float F32();
  double F64();
  std::string_view Text();

  bool ok() const { return ok_; }
  bool AtEnd() const { return ok_ && rest_.empty(); }
  // Whether `count` more items of `size` bytes may follow.
  bool Has(uint64_t count, uint64_t size) const {
    return ok_ && count <= rest_.size() / size;
  }

 private:
  uint64_t Take(int bytes);

  std::string_view rest_;
  bool ok_ = true;
};

std::string Seal(std::string_view kind, std::string_view body);
// The body, within `bytes`. DataLoss: damaged, or of another kind or version.
absl::StatusOr<std::string_view> Unseal(std::string_view kind,
                                        std::string_view bytes);

}  // namespace tilefarm::cost_model

#endif  // TILEFARM_COST_MODEL_MODEL_BYTES_H_
