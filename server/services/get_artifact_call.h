// A worker fetches an artifact of a lease.
#ifndef TILEFARM_SERVER_SERVICES_GET_ARTIFACT_CALL_H_
#define TILEFARM_SERVER_SERVICES_GET_ARTIFACT_CALL_H_

#include <grpcpp/grpcpp.h>

#include "base/executor.h"
#include "database/store.h"
#include "proto/tilefarm/v1/farm.grpc.pb.h"
#include "server/farm/farm.h"
#include "server/security/gate.h"

namespace tilefarm::services {

// Owns itself. The context outlives it, the others outlive the service.
grpc::ServerWriteReactor<v1::ArtifactData>* NewGetArtifactCall(
    Executor& executor, database::Store& store, const farm::Farm& farm,
    security::Gate& gate, const grpc::ServerContextBase& context,
    const v1::GetArtifactRequest& request);

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_GET_ARTIFACT_CALL_H_
