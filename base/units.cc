#include "base/units.h"

#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tilefarm {

std::string FormatSeconds(double seconds) {
  if (!(seconds > 0)) return "-";
  // 999.9996 us would otherwise print as 1000.000 us.
  constexpr double kRounded = 0.9999995;
  if (seconds >= kRounded) return absl::StrFormat("%.3f s", seconds);
  if (seconds >= kRounded * 1e-3) {
    return absl::StrFormat("%.3f ms", seconds * 1e3);
  }
  return absl::StrFormat("%.3f us", seconds * 1e6);
}

std::string FormatBytes(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (std::abs(bytes) >= 1023.95 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.4g %s", bytes, kUnits[unit]);
}

std::optional<int64_t> ParseBytes(std::string_view text) {
  static constexpr std::pair<std::string_view, int> kUnits[] = {
      {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}, {"B", 0}};
  int shift = 0;
  for (const auto& [unit, bits] : kUnits) {
    if (!text.ends_with(unit)) continue;
    text.remove_suffix(unit.size());
    shift = bits;
    break;
  }
  int64_t number = 0;
  if (text.empty() ||
      text.find_first_not_of("0123456789") != std::string_view::npos ||
      !absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &number) ||
      number > (std::numeric_limits<int64_t>::max() >> shift)) {
    return std::nullopt;
  }
  return number << shift;
}

std::string FormatRate(double per_second, const std::string& unit) {
  return absl::StrCat(absl::StrFormat("%.1f", per_second * 1e-9), " G", unit);
}

std::string FormatShare(double share) {
  return absl::StrFormat("%.0f %%", share * 100);
}

}  // namespace tilefarm
