// How much of the server one user may use: jobs that have not ended, device
// time of the past days, and a part of the database. Pure logic.
#ifndef TILEFARM_SERVER_JOBS_QUOTAS_H_
#define TILEFARM_SERVER_JOBS_QUOTAS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tilefarm::jobs {

// 0: no bound.
struct Quota {
  int64_t jobs = 0;  // that have not ended
  double device_hours = 0;
  int64_t storage_bytes = 0;
};

struct Quotas {
  Quota all;  // of each user without an own
  // By user. What is 0 here is that of `all`.
  std::map<std::string, Quota> users;
  // Device time of so many days counts, today included.
  int days = 30;

  // "KEY=VALUE" for all users, or "USER:KEY=VALUE" for one: jobs=50,
  // device_hours=100, storage=2GiB; days=7 for all. InvalidArgument.
  absl::Status Set(std::string_view text);
  Quota Of(const std::string& user) const;
  // Whether anybody's device time is bounded.
  bool BoundDeviceTime() const;
  bool BoundStorage() const;
};

// Device time by user and day (UTC). A value type.
class DeviceTime {
 public:
  void Add(const std::string& user, absl::Time at, absl::Duration used);
  // Of the last `days` days, that of `now` included.
  absl::Duration Used(const std::string& user, absl::Time now, int days) const;
  // Forgets days before them.
  void Forget(absl::Time now, int days);

  // JSON: {user: {"2026-01-31": seconds}}. DataLoss: not such a text.
  std::string Print() const;
  static absl::StatusOr<DeviceTime> Parse(std::string_view text);

 private:
  std::map<std::string, std::map<std::string, double>> days_;
};

// OK, or ResourceExhausted with what was used, what there is, and what to do.
absl::Status CheckDeviceTime(const Quotas& quotas, const std::string& user,
                             absl::Duration used);
absl::Status CheckStorage(const Quotas& quotas, const std::string& user,
                          int64_t bytes);

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_QUOTAS_H_
