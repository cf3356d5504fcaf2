#include "base/units.h"

#include <cmath>
#include <iterator>

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

std::string FormatRate(double per_second, const std::string& unit) {
  return absl::StrCat(absl::StrFormat("%.1f", per_second * 1e-9), " G", unit);
}

std::string FormatShare(double share) {
  return absl::StrFormat("%.0f %%", share * 100);
}

}  // namespace tilefarm
