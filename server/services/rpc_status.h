// Converts between absl::Status and grpc::Status, whose codes are the same
// numbers.
#ifndef TILEFARM_SERVER_SERVICES_RPC_STATUS_H_
#define TILEFARM_SERVER_SERVICES_RPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace tilefarm::services {

// Long messages are cut, because gRPC drops a status above its metadata limit.
grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_RPC_STATUS_H_
