#include "cost_model/model_bytes.h"

#include "absl/status/status.h"
#include "base/byte_stream.h"
#include "base/hash.h"

namespace tilefarm::cost_model {
namespace {

constexpr std::string_view kMagic = "TFCM";
// The version of the format and of the meaning of the feature columns; samples
// with other meanings would train a wrong model.
constexpr uint32_t kVersion = 6;
constexpr size_t kChecksumBytes = 8;

}  // namespace

std::string Seal(std::string_view kind, std::string_view body) {
  ByteWriter writer;
  writer.Bytes(kMagic);
  writer.U32(kVersion);
  writer.U32(static_cast<uint32_t>(kind.size()));
  writer.Bytes(kind);
  writer.Bytes(body);
  std::string sealed = writer.Take();
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
  const std::string_view stored_kind = reader.Bytes(reader.U32());
  if (!reader.ok() || version != kVersion) {
    return absl::DataLossError("cost model: another version of the format");
  }
  if (stored_kind != kind) {
    return absl::DataLossError("cost model: another kind of model");
  }
  return bytes.substr(kMagic.size() + 8 + kind.size());
}

}  // namespace tilefarm::cost_model
