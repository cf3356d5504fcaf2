// Work items that measure schedules of existing records again.
#ifndef TILEFARM_SERVER_JOBS_REMEASURE_H_
#define TILEFARM_SERVER_JOBS_REMEASURE_H_

#include <string>

#include "absl/status/statusor.h"
#include "database/record.h"
#include "server/farm/work.h"

namespace tilefarm::jobs {

// The hash of the program that the record's trace produces.
absl::StatusOr<std::string> ScheduledHash(const database::Record& record);

// A work item that measures the record's schedule again in full: a kRemeasure
// with a new candidate id. The caller sets queue and device. Error: the stored
// text no longer parses or replays.
absl::StatusOr<farm::WorkItem> ItemFromRecord(const database::Record& record);

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_REMEASURE_H_
