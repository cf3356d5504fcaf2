#include "server/services/device_clock.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/clock_canary.h"
#include "server/services/convert.h"

namespace tilefarm::services {
namespace {

constexpr double kMega = 1e6;
// What a processor's clock can be. Canaries outside were disturbed.
constexpr double kLeastMhz = 100, kMostMhz = 10'000;

// Cores that multiply 64 bits in more than three cycles, by the beginnings of
// LLVM's names: small ones and AMD's before Zen (A. Fog, Instruction tables).
constexpr absl::string_view kSlowMultipliers[] = {
    "amdfam10",         "atom",         "bdver",      "bonnell",    "btver",
    "clearwaterforest", "goldmont",     "gracemont",  "grandridge", "k8",
    "opteron",          "sierraforest", "silvermont", "slm",        "tremont"};

bool KnowsCanary(absl::string_view target) {
  constexpr absl::string_view kKind = "x86-64";
  if (!absl::StartsWith(target, kKind)) return false;
  target.remove_prefix(kKind.size());
  if (target.empty() || target[0] != ':') return true;
  target.remove_prefix(1);
  return std::none_of(
      std::begin(kSlowMultipliers), std::end(kSlowMultipliers),
      [&](absl::string_view name) { return absl::StartsWith(target, name); });
}

}  // namespace

DeviceClock ClockOf(const std::string& target,
                    const std::string& device_state) {
  const double seconds = NumberIn(device_state, "canary_seconds");
  if (seconds > 0 && KnowsCanary(target)) {
    // Less than a megahertz is noise.
    const double mhz = std::round(kClockCanarySteps *
                                  kClockCanaryCyclesPerStep / seconds / kMega);
    if (mhz >= kLeastMhz && mhz <= kMostMhz) {
      return {.mhz = mhz, .measured = true};
    }
  }
  return {.mhz = NumberIn(device_state, "clock_mhz")};
}

}  // namespace tilefarm::services
