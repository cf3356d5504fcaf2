#include "worker/runner/core_wait.h"

#include <algorithm>
#include <chrono>

namespace tilefarm::worker {

CoreWait::CoreWait(double alone_contention, double best_seconds,
                   double patience)
    : core_(alone_contention),
      best_seconds_(best_seconds),
      patience_of_races_(patience),
      patience_(best_seconds > 0 ? 0 : patience) {}

bool CoreWait::Await(double most, bool* waited) {
  if (core_.IsQuiet()) return true;
  most = std::min(most, patience_);
  if (!(most > 0)) return false;
  *waited = true;
  const auto start = std::chrono::steady_clock::now();
  const bool quiet = core_.Await(most);
  const std::chrono::duration<double> waited_now =
      std::chrono::steady_clock::now() - start;
  patience_ -= waited_now.count();
  waited_seconds_ += waited_now.count();
  return quiet;
}

bool CoreWait::SetsAside(double seconds, bool* lost) {
  if (best_seconds_ <= 0 || aside_ == kSharedSamples) return false;
  least_ = aside_ == 0 ? seconds : std::min(least_, seconds);
  if (++aside_ < kSharedSamples) return true;
  *lost = least_ > kSharedFactor * best_seconds_;
  if (!*lost) patience_ = patience_of_races_;
  return true;
}

}  // namespace tilefarm::worker
