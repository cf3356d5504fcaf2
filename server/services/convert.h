// Converts between wire messages and the types of farm and jobs. Lengths were
// checked before a message was parsed (proto/tilefarm/v1/message_limits.h);
// values from workers are checked here.
#ifndef TILEFARM_SERVER_SERVICES_CONVERT_H_
#define TILEFARM_SERVER_SERVICES_CONVERT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/tilefarm/v1/farm.pb.h"
#include "proto/tilefarm/v1/tune.pb.h"
#include "server/farm/farm.h"
#include "server/jobs/job.h"

namespace tilefarm::services {

// InvalidArgument: an impossible size, or a label without a name.
absl::StatusOr<farm::WorkerHello> FromProto(const v1::Hello& hello);
std::vector<farm::HeldLease> FromProto(const v1::State& state);
// An invalid measurement (unknown status, impossible times) becomes a run_error
// with the reason. InvalidArgument: the device state is not a flat JSON object.
absl::StatusOr<farm::WorkerResult> FromProto(const v1::Result& result);
jobs::JobSpec FromProto(const v1::SubmitRequest& request);

// The number with this key in a device's state, a JSON object; 0: none.
double NumberIn(const std::string& object, const char* key);

v1::Lease ToProto(const farm::Lease& lease);
v1::Device ToProto(const farm::DeviceStatus& device);
v1::AuditEntry ToProto(const database::AuditEntry& entry);
v1::Job ToProtoJob(const jobs::JobSnapshot& snapshot);
v1::JobUpdate ToProto(const jobs::JobSnapshot& snapshot,
                      const std::vector<farm::DeviceStatus>& devices);

// How many entries of a log an answer has: as many as the request asks for
// (<= 0: as many as possible), but no more than 1000.
int64_t LogEntries(int64_t wanted);

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_CONVERT_H_
