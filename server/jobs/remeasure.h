// Work items of schedules that have a record.
#ifndef TILEFARM_SERVER_JOBS_REMEASURE_H_
#define TILEFARM_SERVER_JOBS_REMEASURE_H_

#include <string>

#include "absl/status/statusor.h"
#include "database/record.h"
#include "server/farm/work.h"

namespace tilefarm::jobs {

// The hash of the program that the record's trace makes.
absl::StatusOr<std::string> ScheduledHash(const database::Record& record);

// What measures the record's schedule once more and in full: a kRemeasure with
// a candidate id of its own. The caller sets queue and device. An error where
// the stored text does not parse or replay any more.
absl::StatusOr<farm::WorkItem> ItemFromRecord(const database::Record& record);

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_REMEASURE_H_
