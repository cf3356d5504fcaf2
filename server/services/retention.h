// Which records the server drops when it starts.
#ifndef TILEFARM_SERVER_SERVICES_RETENTION_H_
#define TILEFARM_SERVER_SERVICES_RETENTION_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/clock.h"

namespace tilefarm::services {

// Nothing is dropped by default.
struct Retention {
  int64_t keep = 0;         // of good records, so many of a group; 0: all
  int64_t failed_days = 0;  // failed records for so many days; 0: for ever

  bool drops() const { return keep > 0 || failed_days > 0; }
  // "keep=20", "failed_days=90". InvalidArgument.
  absl::Status Set(std::string_view text);
};

// By database::Prune, which says what it never drops. To be called before the
// store is opened. OK where there is no such file.
absl::Status ApplyRetention(const std::string& database_path,
                            const Retention& retention, Clock& clock);

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_RETENTION_H_
