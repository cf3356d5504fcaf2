// A client compares two artifacts.
#ifndef TILEFARM_SERVER_SERVICES_COMPARE_CALL_H_
#define TILEFARM_SERVER_SERVICES_COMPARE_CALL_H_

#include <grpcpp/grpcpp.h>

#include "base/executor.h"
#include "proto/tilefarm/v1/regression.grpc.pb.h"
#include "server/jobs/comparisons.h"
#include "server/security/gate.h"

namespace tilefarm::services {

// Owns itself. The context and the request live until it is done, the others
// longer.
grpc::ServerWriteReactor<v1::CompareUpdate>* NewCompareCall(
    Executor& executor, jobs::Comparisons& comparisons, security::Gate& gate,
    const grpc::ServerContextBase& context, const v1::CompareRequest& request);

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_COMPARE_CALL_H_
