#include "base/hash.h"

#include <openssl/evp.h>

#include <array>

#include "base/check.h"

namespace tilefarm {
namespace {

std::array<unsigned char, 32> Digest(std::string_view bytes) {
  std::array<unsigned char, 32> digest;
  unsigned int size = 0;
  TF_CHECK(EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size,
                      EVP_sha256(), nullptr) == 1);
  TF_CHECK(size == digest.size());
  return digest;
}

}  // namespace

std::string Sha256Hex(std::string_view bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  out.reserve(64);
  for (unsigned char byte : Digest(bytes)) {
    out.push_back(kHex[byte >> 4]);
    out.push_back(kHex[byte & 15]);
  }
  return out;
}

uint64_t Sha256Prefix(std::string_view bytes) {
  const auto digest = Digest(bytes);
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | digest[i];
  return value;
}

}  // namespace tilefarm
