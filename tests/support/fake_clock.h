// A clock that only tests move.
#ifndef TILEFARM_TESTS_SUPPORT_FAKE_CLOCK_H_
#define TILEFARM_TESTS_SUPPORT_FAKE_CLOCK_H_

#include "base/clock.h"
#include "base/mutex.h"

namespace tilefarm::testing {

// Thread-safe.
class FakeClock : public Clock {
 public:
  absl::Time Now() override {
    MutexLock lock(mutex_);
    return absl::FromUnixSeconds(1'700'000'000) + now_;
  }
  absl::Duration Monotonic() override {
    MutexLock lock(mutex_);
    return now_;
  }
  void Advance(absl::Duration step) {
    MutexLock lock(mutex_);
    now_ += step;
  }

 private:
  Mutex mutex_;
  absl::Duration now_ ABSL_GUARDED_BY(mutex_) = absl::Hours(1);
};

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_SUPPORT_FAKE_CLOCK_H_
