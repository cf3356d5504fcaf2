#include "compiler/schedule/rounding_spread.h"

#include <algorithm>
#include <variant>

#include "compiler/schedule/winograd_transforms.h"

namespace tilefarm::schedule {

double RoundingSpread(const Trace& trace) {
  double spread = 0;
  for (const Instruction& instruction : trace.instructions) {
    if (instruction.primitive != "winograd") continue;
    for (const auto& [name, arg] : instruction.args) {
      const auto* tile = std::get_if<ir::Attr>(&arg.value);
      if (name != "tile" || tile == nullptr) continue;
      spread = std::max(
          spread, WinogradSpread(static_cast<int>(tile->AsInt().value_or(0))));
    }
  }
  return spread;
}

}  // namespace tilefarm::schedule
