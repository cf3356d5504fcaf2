// Records that a loop makes progress, for a watchdog.
#ifndef TILEFARM_BASE_PULSE_H_
#define TILEFARM_BASE_PULSE_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace tilefarm {

// Thread-safe; one loop calls Beat. Times are of a monotonic clock.
class Pulse {
 public:
  void Beat(absl::Duration now) { at_ = absl::ToInt64Nanoseconds(now); }
  // The loop waits for work, for an unlimited time.
  void Rest() { at_ = kResting; }
  // Time since the last beat; zero while the loop rests and before the first
  // beat.
  absl::Duration Still(absl::Duration now) const {
    const int64_t at = at_;
    return at == kResting ? absl::ZeroDuration() : now - absl::Nanoseconds(at);
  }

 private:
  static constexpr int64_t kResting = -1;
  std::atomic<int64_t> at_{kResting};
};

}  // namespace tilefarm

#endif  // TILEFARM_BASE_PULSE_H_
