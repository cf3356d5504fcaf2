// The lives of a job's candidates as a trace for Chrome (chrome://tracing,
// Perfetto): the Trace Event Format, in JSON.
#ifndef TILEFARM_SERVER_SPANS_CHROME_TRACE_H_
#define TILEFARM_SERVER_SPANS_CHROME_TRACE_H_

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "server/jobs/job_log.h"

namespace tilefarm::spans {

// {"traceEvents": [...]}. Each device is a process with a lane for what it runs
// and as many lanes as it had builds at the same time; a process before them
// has the whole life of each candidate, from its proposal to its record, with
// the time in which it waited for a device. Times are microseconds since 1970.
nlohmann::ordered_json ChromeTrace(const std::string& job_id,
                                   std::span<const jobs::LoggedLife> lives);

}  // namespace tilefarm::spans

#endif  // TILEFARM_SERVER_SPANS_CHROME_TRACE_H_
