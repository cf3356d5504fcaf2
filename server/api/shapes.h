// The shapes of the API's answers (docs/openapi.yaml). What `tune --json` shows
// as well has the same shape here (server/cli/format.h).
#ifndef TILEFARM_SERVER_API_SHAPES_H_
#define TILEFARM_SERVER_API_SHAPES_H_

#include <span>
#include <string>
#include <vector>

#include "database/store.h"
#include "server/api/device_history.h"
#include "server/api/route.h"
#include "server/farm/device.h"
#include "server/jobs/job.h"

namespace tilefarm::api {

// The number, or null where it is not known: 0 or less.
Json NumberOrNull(double number);
// Milliseconds since 1970 of "2026-01-31T12:00:00.000Z"; null: no such text.
Json Milliseconds(const std::string& time);

// A row of the list of jobs.
Json JobRowJson(const jobs::JobSnapshot& snapshot,
                const database::Store::JobTimes& times);
// A job and its tasks.
Json JobJson(const jobs::JobSnapshot& snapshot,
             const database::Store::JobTimes& times);
Json DeviceJson(const farm::DeviceStatus& device);
Json AuditJson(std::span<const database::AuditEntry> entries);
// Columns: {at: [ms], state: [...], busy, trials_per_second, clock_mhz,
// temperature_c}.
Json HistoryJson(std::span<const DeviceSample> samples);

// Many candidates as columns, one number or short text for each: ten thousand
// of them are half a megabyte. Texts that repeat are indexes into lists:
//
//   {"count": N, "last": ID,
//    "tasks": [{"workload", "target"}], "devices": [...], "statuses": [...],
//    "sketches": [ID, ...], "record": [...], "task": [...], "status": [...],
//    "seconds": [...], ...}
Json CandidatesJson(std::span<const database::OutcomeRow> rows);

}  // namespace tilefarm::api

#endif  // TILEFARM_SERVER_API_SHAPES_H_
