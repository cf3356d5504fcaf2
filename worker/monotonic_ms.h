// The clock for tune-runner's deadlines. Uses the C library only.
#ifndef TILEFARM_WORKER_MONOTONIC_MS_H_
#define TILEFARM_WORKER_MONOTONIC_MS_H_

#include <time.h>

#include <cstdint>

namespace tilefarm::worker {

// Milliseconds since an arbitrary moment in the past; never goes back.
inline int64_t MonotonicMs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1000 + t.tv_nsec / 1000000;
}

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_MONOTONIC_MS_H_
