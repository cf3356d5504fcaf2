// The lives of candidates in OTLP, the protocol of OpenTelemetry: what a
// collector takes at /v1/traces, in the protocol's JSON.
#ifndef TILEFARM_SERVER_SPANS_OTLP_H_
#define TILEFARM_SERVER_SPANS_OTLP_H_

#include <span>
#include <string>

#include "server/jobs/job_log.h"

namespace tilefarm::spans {

struct JobLife {
  std::string job_id;
  jobs::LoggedLife life;
};

// Who sends.
struct Sender {
  std::string release;
  std::string instance;  // of the database; the same after a restart
};

// An ExportTraceServiceRequest. Each life is a trace of its own, because a job
// has more candidates than a trace may have spans: its root is "candidate", the
// stages are its children. Ids follow from sender, job and life, so that one
// sent twice is stored once.
std::string ExportRequest(const Sender& sender, std::span<const JobLife> lives);

}  // namespace tilefarm::spans

#endif  // TILEFARM_SERVER_SPANS_OTLP_H_
