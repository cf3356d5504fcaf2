// absl::Status on one side of an RPC, grpc::Status on the other. The codes are
// the same numbers.
#ifndef TILEFARM_SERVER_SERVICES_RPC_STATUS_H_
#define TILEFARM_SERVER_SERVICES_RPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace tilefarm::services {

// Messages are cut where gRPC's limit on metadata would drop the whole status.
grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_RPC_STATUS_H_
