// What a job requires of a device in addition to its target.
//
//   cores>=4   memory>=8GiB   isolation>=seccomp+cgroup   device=board-3
//   emulated=false   library.openblas=0.3.21   label.rack=b2
//
// KEY=VALUE requires exactly this value, KEY>=VALUE at least this: for numbers,
// sizes, and isolation, which must have at least the level and all parts
// (base/isolation.h). Typed keys: cores, memory, l1, l2, l3, cpu, brand,
// isolation, emulated, artifacts (it takes comparisons), device.
// `library.NAME=VERSION` and `label.NAME=VALUE` compare text; labels are set by
// `rpc-worker --label`. Units of sizes are B, KiB, MiB, GiB and TiB.
#ifndef TILEFARM_SERVER_FARM_REQUIREMENT_H_
#define TILEFARM_SERVER_FARM_REQUIREMENT_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/isolation.h"
#include "compiler/target/target.h"
#include "server/farm/device.h"

namespace tilefarm::farm {

struct Requirement {
  std::string text;  // as given
  std::string key;
  bool at_least = false;  // otherwise exactly
  std::string value;      // of keys that compare text
  int64_t number = 0;     // of the others: cores, bytes
  Isolation isolation;    // of isolation, where it is at_least
};

using Requirements = std::vector<Requirement>;

// InvalidArgument, with the name of the requirement: it is malformed, or no
// device can meet all of them. Examples: an unknown key, 4 and at least 8
// cores, fewer cores than the target has.
absl::StatusOr<Requirements> ParseRequirements(
    std::span<const std::string> texts, const target::Target& target);

// The first requirement that the device does not meet; null: it meets all.
const Requirement* FirstUnmet(const Requirements& requirements,
                              const std::string& name,
                              const DeviceProperties& device);

}  // namespace tilefarm::farm

#endif  // TILEFARM_SERVER_FARM_REQUIREMENT_H_
