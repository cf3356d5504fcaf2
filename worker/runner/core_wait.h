// Waits until nothing else uses the core of a measurement.
#ifndef TILEFARM_WORKER_RUNNER_CORE_WAIT_H_
#define TILEFARM_WORKER_RUNNER_CORE_WAIT_H_

#include <cstdint>

#include "base/quiet_core.h"

namespace tilefarm::worker {

// Measurements of the core's contention if former runs have not shown it.
inline constexpr int kContentionLooks = 16;

// A measurement in full waits for its core, within limits. A race does not wait
// at first: the first few samples on a shared core are set aside, and it waits
// only if the candidate may still win after them.
class CoreWait {
 public:
  // A shared core slows a kernel down by less than this factor. A candidate
  // loses the race if so many samples are all slower than the best by more.
  static constexpr double kSharedFactor = 1.6;
  static constexpr uint32_t kSharedSamples = 3;
  // `alone_contention`: see QuietCore. best_seconds 0: no race. Waits
  // `patience` seconds in total at most.
  CoreWait(double alone_contention, double best_seconds, double patience);

  // Whether the core is unshared now, or becomes so within `most` seconds and
  // the remaining patience. Sets `waited` if time has passed.
  bool Await(double most, bool* waited);
  bool IsAlone() const { return core_.IsQuiet(); }
  bool HasPatience() const { return patience_ > 0; }
  double waited_seconds() const { return waited_seconds_; }

  // For a sample on a shared core: whether it is one of the first few of a race
  // and does not count. With the last of these, sets `lost` if they rule out
  // that the candidate wins.
  bool SetsAside(double seconds, bool* lost);

 private:
  const QuietCore core_;
  const double best_seconds_;
  const double patience_of_races_;
  double patience_;
  double waited_seconds_ = 0;
  uint32_t aside_ = 0;
  double least_ = 0;  // of the samples that were set aside
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_CORE_WAIT_H_
