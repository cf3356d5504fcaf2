#include "server/regression/ratio_text.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tilefarm::regression {

std::string ChangeText(double ratio) {
  if (!std::isfinite(ratio)) return "unknown";
  if (ratio >= 2) return absl::StrFormat("x%.2f", ratio);
  const double percent = 100 * (ratio - 1);
  // What rounds to zero has no sign.
  if (std::abs(percent) < 0.05) return "0.0 %";
  return absl::StrFormat("%+.1f %%", percent);
}

std::string IntervalText(const RatioInterval& interval) {
  if (interval.clusters == 0 || !std::isfinite(interval.high)) {
    return "unknown";
  }
  return absl::StrCat(ChangeText(interval.low), " to ",
                      ChangeText(interval.high));
}

std::string PercentText(double share) {
  return absl::StrFormat("%.4g %%", 100 * share);
}

std::string SecondsText(double seconds) {
  if (!(seconds > 0)) return "-";
  if (seconds < 1e-6) return absl::StrFormat("%.4g ns", seconds * 1e9);
  if (seconds < 1e-3) return absl::StrFormat("%.4g us", seconds * 1e6);
  if (seconds < 1) return absl::StrFormat("%.4g ms", seconds * 1e3);
  return absl::StrFormat("%.4g s", seconds);
}

}  // namespace tilefarm::regression
