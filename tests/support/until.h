// Waits for another thread or process, with a timeout.
#ifndef TILEFARM_TESTS_SUPPORT_UNTIL_H_
#define TILEFARM_TESTS_SUPPORT_UNTIL_H_

#include <functional>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace tilefarm {

// Polls. False if the condition does not become true within `limit`.
inline bool Until(const std::function<bool()>& condition,
                  absl::Duration limit = absl::Seconds(60),
                  absl::Duration interval = absl::Milliseconds(1)) {
  const absl::Duration end = Clock::Real().Monotonic() + limit;
  while (!condition()) {
    if (Clock::Real().Monotonic() > end) return false;
    absl::SleepFor(interval);
  }
  return true;
}

}  // namespace tilefarm

#endif  // TILEFARM_TESTS_SUPPORT_UNTIL_H_
