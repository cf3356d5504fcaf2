// The answers of the API, one function for each route; route.cc has the table.
// docs/openapi.yaml describes them.
#ifndef TILEFARM_SERVER_API_HANDLERS_H_
#define TILEFARM_SERVER_API_HANDLERS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "server/api/route.h"

namespace tilefarm::api {

// Of one answer.
inline constexpr int64_t kMostCandidates = 50'000;

// --- server_handlers.cc ---
absl::StatusOr<Json> GetServer(const Parts& parts, const Call& call);
absl::StatusOr<Json> GetCaller(const Parts& parts, const Call& call);

// --- job_handlers.cc ---
absl::StatusOr<Json> ListJobs(const Parts& parts, const Call& call);
absl::StatusOr<Json> GetJob(const Parts& parts, const Call& call);
absl::StatusOr<Json> GetJobProgram(const Parts& parts, const Call& call);
absl::StatusOr<Json> GetJobCandidates(const Parts& parts, const Call& call);
absl::StatusOr<Json> GetJobTimeline(const Parts& parts, const Call& call);
absl::StatusOr<Json> SubmitJob(const Parts& parts, const Call& call);
absl::StatusOr<Json> CancelJob(const Parts& parts, const Call& call);

// --- device_handlers.cc ---
absl::StatusOr<Json> ListDevices(const Parts& parts, const Call& call);
absl::StatusOr<Json> GetDevice(const Parts& parts, const Call& call);
absl::StatusOr<Json> ListHistory(const Parts& parts, const Call& call);
absl::StatusOr<Json> ChangeDevice(const Parts& parts, const Call& call);

// --- record_handlers.cc ---
absl::StatusOr<Json> GetDatabase(const Parts& parts, const Call& call);
absl::StatusOr<Json> ListRecords(const Parts& parts, const Call& call);
absl::StatusOr<Json> GetRecord(const Parts& parts, const Call& call);
absl::StatusOr<Json> GetSchedule(const Parts& parts, const Call& call);
absl::StatusOr<Json> GetAssembly(const Parts& parts, const Call& call);

// --- workload_handlers.cc ---
absl::StatusOr<Json> ListWorkloads(const Parts& parts, const Call& call);
absl::StatusOr<Json> GetWorkload(const Parts& parts, const Call& call);
absl::StatusOr<Json> GetWorkloadCandidates(const Parts& parts,
                                           const Call& call);
absl::StatusOr<Json> GetDecisions(const Parts& parts, const Call& call);

// --- benchmark_handlers.cc ---
absl::StatusOr<Json> ListBenchmarks(const Parts& parts, const Call& call);
absl::StatusOr<Json> GetBenchmark(const Parts& parts, const Call& call);

}  // namespace tilefarm::api

#endif  // TILEFARM_SERVER_API_HANDLERS_H_
