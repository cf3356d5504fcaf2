#include "cost_model/model_bytes.h"

#include <cstring>

#include "base/hash.h"

namespace tilefarm::cost_model {
namespace {

constexpr std::string_view kMagic = "TFCM";
// The version of the format and of the meaning of the feature columns; samples
// with other meanings would train a wrong model.
constexpr uint32_t kVersion = 4;
constexpr size_t kChecksumBytes = 8;

}  // namespace

void ByteWriter::U32(uint32_t value) {
  for (int i = 0; i < 4; ++i) bytes_ += static_cast<char>(value >> (8 * i));
}

void ByteWriter::U64(uint64_t value) {
  for (int i = 0; i < 8; ++i) bytes_ += static_cast<char>(value >> (8 * i));
}

void ByteWriter::F32(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  U32(bits);
}

void ByteWriter::F64(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  U64(bits);
}

void ByteWriter::Text(std::string_view text) {
  U32(static_cast<uint32_t>(text.size()));
  bytes_ += text;
}

uint64_t ByteReader::Take(int bytes) {
  if (rest_.size() < static_cast<size_t>(bytes)) {
    ok_ = false;
    rest_ = {};
    return 0;
  }
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) {
    value |= static_cast<uint64_t>(static_cast<unsigned char>(rest_[i]))
             << (8 * i);
  }
  rest_.remove_prefix(bytes);
  return value;
}

uint32_t ByteReader::U32() { return static_cast<uint32_t>(Take(4)); }
uint64_t ByteReader::U64() { return Take(8); }

float ByteReader::F32() {
  const uint32_t bits = U32();
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

double ByteReader::F64() {
  const uint64_t bits = U64();
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

std::string_view ByteReader::Text() {
  const uint32_t size = U32();
  if (!ok_ || size > rest_.size()) {
    ok_ = false;
    rest_ = {};
    return {};
  }
  const std::string_view text = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return text;
}

std::string Seal(std::string_view kind, std::string_view body) {
  ByteWriter header;
  header.U32(kVersion);
  header.Text(kind);
  std::string sealed(kMagic);
  sealed += header.bytes();
  sealed += body;
  const uint64_t checksum = Sha256Prefix(sealed);
  for (int i = kChecksumBytes; i-- > 0;) {
    sealed += static_cast<char>(checksum >> (8 * i));
  }
  return sealed;
}

absl::StatusOr<std::string_view> Unseal(std::string_view kind,
                                        std::string_view bytes) {
  if (bytes.size() < kMagic.size() + kChecksumBytes ||
      bytes.substr(0, kMagic.size()) != kMagic) {
    return absl::DataLossError("cost model: not a stored model");
  }
  uint64_t checksum = 0;
  for (size_t i = bytes.size() - kChecksumBytes; i < bytes.size(); ++i) {
    checksum = checksum << 8 | static_cast<unsigned char>(bytes[i]);
  }
  bytes.remove_suffix(kChecksumBytes);
  if (Sha256Prefix(bytes) != checksum) {
    return absl::DataLossError("cost model: the checksum does not match");
  }
  ByteReader reader(bytes.substr(kMagic.size()));
  const uint32_t version = reader.U32();
  const std::string_view stored_kind = reader.Text();
  if (!reader.ok() || version != kVersion) {
    return absl::DataLossError("cost model: another version of the format");
  }
  if (stored_kind != kind) {
    return absl::DataLossError("cost model: another kind of model");
  }
  return bytes.substr(kMagic.size() + 8 + kind.size());
}

}  // namespace tilefarm::cost_model
