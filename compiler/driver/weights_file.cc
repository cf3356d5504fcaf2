#include "compiler/driver/weights_file.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/strings/escaping.h"
#include "base/hash.h"

namespace tilefarm::driver {
namespace {

constexpr size_t kHeaderBytes = 64;
constexpr uint64_t kVersion = 1;

void PutNumber(uint64_t number, size_t bytes, std::string& text, size_t at) {
  for (size_t i = 0; i < bytes; ++i) {
    text[at + i] = static_cast<char>(number >> (8 * i));
  }
}

}  // namespace

WeightsFile MakeWeightsFile(const std::vector<codegen::ModelWeights>& pieces) {
  WeightsFile file;
  file.bytes.assign(kHeaderBytes, '\0');
  codegen::AppendWeights(pieces, file.bytes);
  const std::string_view weights =
      std::string_view(file.bytes).substr(kHeaderBytes);
  file.digest = absl::HexStringToBytes(Sha256Hex(weights));
  file.bytes.replace(0, 8, "TFWEIGHT");
  PutNumber(kVersion, 4, file.bytes, 8);
  PutNumber(kHeaderBytes, 4, file.bytes, 12);
  PutNumber(weights.size(), 8, file.bytes, 16);
  std::copy(file.digest.begin(), file.digest.end(), file.bytes.begin() + 24);
  return file;
}

}  // namespace tilefarm::driver
