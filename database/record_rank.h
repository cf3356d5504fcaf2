// Where a stored record stands among those of its series, its re-measurements
// included. Private to database/.
#ifndef TILEFARM_DATABASE_RECORD_RANK_H_
#define TILEFARM_DATABASE_RECORD_RANK_H_

#include <cstdint>
#include <map>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "database/race.h"
#include "database/sqlite.h"

namespace tilefarm::database {

// The combined re-measurements of a record.
struct Remeasured {
  bool failed = false;
  int64_t measurement_id = 0;  // the latest full one; 0: none
  Rounds rounds;
};

// Of the records of a workload that have re-measurements, by their ids.
absl::StatusOr<std::map<int64_t, Remeasured>> RemeasuredOfWorkload(
    Connection& db, int64_t workload_id);
absl::StatusOr<Remeasured> RemeasuredOfRecord(Connection& db,
                                              int64_t record_id);

// What a record's own measurement says.
struct FirstMeasurement {
  bool verified = false;  // and `ok`
  bool stopped_early = false;
  double median = 0, low = 0, high = 0;  // seconds
};

// nullopt: the record is never the best: it failed, was not verified, or was
// never measured in full. `instructions` is not set.
std::optional<Standing> StandingOf(const FirstMeasurement& first,
                                   const Remeasured* remeasured);

// Sets the columns rank_seconds and confirmed of a record (schema 4).
absl::Status UpdateRank(Connection& db, int64_t record_id);

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_RECORD_RANK_H_
