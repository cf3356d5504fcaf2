// The clock of tune-runner's deadlines and measurements. Uses the C library
// only.
#ifndef TILEFARM_WORKER_MONOTONIC_H_
#define TILEFARM_WORKER_MONOTONIC_H_

#include <time.h>

#include <cstdint>

namespace tilefarm::worker {

// Milliseconds since an arbitrary moment in the past; never goes back.
inline int64_t MonotonicMs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1000 + t.tv_nsec / 1000000;
}

// The same in seconds.
inline double MonotonicSeconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_MONOTONIC_H_
