#include "server/security/rate_limiter.h"

#include <algorithm>

namespace tilefarm::security {

double RateLimiter::LeftAt(const Bucket& bucket, absl::Duration now) const {
  return std::min(burst_, bucket.left + absl::ToDoubleSeconds(now - bucket.at) *
                                            per_second_);
}

absl::Duration RateLimiter::Take(const std::string& identity,
                                 absl::Duration now, double calls) {
  Bucket& bucket =
      buckets_.try_emplace(identity, Bucket{burst_, now}).first->second;
  bucket.left = LeftAt(bucket, now);
  bucket.at = now;
  if (bucket.left < calls) {
    return absl::Seconds((calls - bucket.left) / per_second_);
  }
  bucket.left -= calls;
  return absl::ZeroDuration();
}

void RateLimiter::Prune(absl::Duration now) {
  for (auto it = buckets_.begin(); it != buckets_.end();) {
    it = LeftAt(it->second, now) >= burst_ ? buckets_.erase(it) : std::next(it);
  }
}

}  // namespace tilefarm::security
