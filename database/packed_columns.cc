#include "database/packed_columns.h"

#include <bit>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "base/json.h"

namespace tilefarm::database {
namespace {

constexpr size_t kDigestDigits = 64;
constexpr size_t kSampleBytes = 8;
constexpr double kLeastSeconds = 0x1p-60;
constexpr double kMostSeconds = 0x1p40;

int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool Packable(double seconds) {
  return seconds >= kLeastSeconds && seconds <= kMostSeconds;
}

}  // namespace

std::optional<std::string> PackDigest(std::string_view text) {
  if (text.size() != kDigestDigits) return std::nullopt;
  std::string bytes(kDigestDigits / 2, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    const int high = DigitOf(text[2 * i]);
    const int low = DigitOf(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes[i] = static_cast<char>(high << 4 | low);
  }
  return bytes;
}

std::optional<std::string> PackSamples(std::span<const double> seconds) {
  if (seconds.empty()) return std::nullopt;
  std::string bytes;
  bytes.reserve(seconds.size() * kSampleBytes);
  for (const double sample : seconds) {
    if (!Packable(sample)) return std::nullopt;
    const uint64_t bits = std::bit_cast<uint64_t>(sample);
    for (int shift = 56; shift >= 0; shift -= 8) {
      bytes.push_back(static_cast<char>(bits >> shift & 0xff));
    }
  }
  return bytes;
}

absl::StatusOr<std::vector<double>> UnpackSamples(std::string_view bytes) {
  if (bytes.empty() || bytes.size() % kSampleBytes != 0) {
    return absl::DataLossError("the samples are cut off");
  }
  std::vector<double> seconds;
  seconds.reserve(bytes.size() / kSampleBytes);
  for (size_t at = 0; at < bytes.size(); at += kSampleBytes) {
    uint64_t bits = 0;
    for (size_t i = 0; i < kSampleBytes; ++i) {
      bits = bits << 8 | static_cast<unsigned char>(bytes[at + i]);
    }
    seconds.push_back(std::bit_cast<double>(bits));
    if (!Packable(seconds.back())) {
      return absl::DataLossError("a sample is not a time");
    }
  }
  return seconds;
}

std::string SamplesToText(std::span<const double> seconds) {
  return nlohmann::json(seconds).dump();
}

absl::StatusOr<std::vector<double>> SamplesFromText(std::string_view text) {
  const nlohmann::json json = ParseJson(text);
  if (!json.is_array()) {
    return absl::DataLossError("the samples are not a JSON array");
  }
  std::vector<double> seconds;
  for (const nlohmann::json& value : json) {
    // JSON has no NaN: it was written as null.
    seconds.push_back(value.is_number()
                          ? value.get<double>()
                          : std::numeric_limits<double>::quiet_NaN());
  }
  return seconds;
}

}  // namespace tilefarm::database
