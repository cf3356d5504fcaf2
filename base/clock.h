// Time as an input: code that waits, or whose data expires, takes a Clock, so
// that tests can advance it.
#ifndef TILEFARM_BASE_CLOCK_H_
#define TILEFARM_BASE_CLOCK_H_

#include "absl/time/time.h"

namespace tilefarm {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Wall time, for records that people read. May jump.
  virtual absl::Time Now() = 0;
  // Never goes back; for leases, timeouts and rates. The zero is arbitrary.
  virtual absl::Duration Monotonic() = 0;

  // The machine's own clocks; never destroyed.
  static Clock& Real();
};

}  // namespace tilefarm

#endif  // TILEFARM_BASE_CLOCK_H_
