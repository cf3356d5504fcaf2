// Token buckets, one for each identity.
#ifndef TILEFARM_SERVER_SECURITY_RATE_LIMITER_H_
#define TILEFARM_SERVER_SECURITY_RATE_LIMITER_H_

#include <map>
#include <string>

#include "absl/time/time.h"

namespace tilefarm::security {

// Not thread-safe.
class RateLimiter {
 public:
  RateLimiter(double burst, double per_second)
      : burst_(burst), per_second_(per_second) {}

  // Zero: `calls` more are permitted, and counted. Otherwise the time to wait
  // for them; nothing is counted then, so that retries do not prolong the wait.
  absl::Duration Take(const std::string& identity, absl::Duration now,
                      double calls = 1);
  // Forgets identities whose bucket is full.
  void Prune(absl::Duration now);
  size_t size() const { return buckets_.size(); }

 private:
  struct Bucket {
    double left;
    absl::Duration at;
  };
  double LeftAt(const Bucket& bucket, absl::Duration now) const;

  const double burst_;
  const double per_second_;
  std::map<std::string, Bucket> buckets_;
};

}  // namespace tilefarm::security

#endif  // TILEFARM_SERVER_SECURITY_RATE_LIMITER_H_
