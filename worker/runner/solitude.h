// Waiting until nothing else uses the core of a measurement.
#ifndef TILEFARM_WORKER_RUNNER_SOLITUDE_H_
#define TILEFARM_WORKER_RUNNER_SOLITUDE_H_

#include <cstdint>

#include "base/quiet_core.h"

namespace tilefarm::worker {

// A measurement in full waits for its core, within limits. A race does not at
// first: the first few samples of a shared core are set aside, and only where
// they leave a chance that the candidate wins does it wait, too.
class Solitude {
 public:
  // A shared core makes a kernel slower by less than this, hence so many
  // samples of one that are all slower by more lose the race.
  static constexpr double kSharedFactor = 1.6;
  static constexpr uint32_t kSharedSamples = 3;
  // `alone_contention` as QuietCore's; best_seconds 0: no race; waits
  // `patience` seconds in all.
  Solitude(double alone_contention, double best_seconds, double patience);

  // Whether the core is alone now, or is before `most` seconds and patience
  // are over. Sets `waited` where time has passed.
  bool Await(double most, bool* waited);
  bool IsAlone() const { return core_.IsQuiet(); }
  bool HasPatience() const { return patience_ > 0; }
  double waited_seconds() const { return waited_seconds_; }

  // Of a sample that was taken on a shared core: whether it is one of the first
  // few of a race, and does not count. Sets `lost` with the last of them where
  // they rule out that the candidate wins.
  bool SetsAside(double seconds, bool* lost);

 private:
  const QuietCore core_;
  const double best_seconds_;
  const double patience_of_races_;
  double patience_;
  double waited_seconds_ = 0;
  uint32_t aside_ = 0;
  double least_ = 0;  // of those set aside
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_SOLITUDE_H_
