// The lives of a job's candidates as a trace for Chrome (chrome://tracing,
// Perfetto): the Trace Event Format, in JSON.
#ifndef TILEFARM_SERVER_API_TIMELINE_H_
#define TILEFARM_SERVER_API_TIMELINE_H_

#include <span>
#include <string>

#include "server/api/route.h"
#include "server/jobs/job_log.h"

namespace tilefarm::api {

// {"traceEvents": [...]}. Each device is a process with a lane for what it runs
// and as many lanes as it had builds at the same time; a process before them
// has the whole life of each candidate, from its proposal to its record, with
// the time in which it waited for a device. Times are microseconds since 1970.
Json ChromeTrace(const std::string& job_id,
                 std::span<const jobs::LoggedLife> lives);

}  // namespace tilefarm::api

#endif  // TILEFARM_SERVER_API_TIMELINE_H_
