// What a caller may order, for the gRPC services and the JSON API alike.
#ifndef TILEFARM_SERVER_SERVICES_ORDERS_H_
#define TILEFARM_SERVER_SERVICES_ORDERS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "proto/tilefarm/v1/tune.pb.h"
#include "server/farm/farm.h"
#include "server/jobs/jobs.h"
#include "server/security/gate.h"

namespace tilefarm::services {

// The state afterwards. PermissionDenied: it is another user's job; errors of
// Jobs::Cancel.
absl::StatusOr<jobs::JobState> CancelJob(jobs::Jobs& jobs,
                                         const security::Caller& caller,
                                         const std::string& job_id);

// The device afterwards; nullopt: it is forgotten. PermissionDenied: not for
// this caller; InvalidArgument: the order is incomplete or unknown; errors of
// DeviceAdministration.
absl::StatusOr<std::optional<farm::DeviceStatus>> ChangeDevice(
    jobs::Jobs& jobs, farm::Farm& farm, const security::Caller& caller,
    const v1::ChangeDeviceRequest& request);

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_ORDERS_H_
