// A client brings an artifact.
#ifndef TILEFARM_SERVER_SERVICES_PUT_ARTIFACT_CALL_H_
#define TILEFARM_SERVER_SERVICES_PUT_ARTIFACT_CALL_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>

#include "base/executor.h"
#include "database/store.h"
#include "proto/tilefarm/v1/regression.grpc.pb.h"
#include "server/jobs/comparisons.h"
#include "server/security/gate.h"

namespace tilefarm::services {

// What all such calls have in common.
struct PutArtifactContext {
  Executor& executor;
  database::Store& store;
  const jobs::Comparisons& comparisons;
  security::Gate& gate;
  const database::ArtifactRetention& retention;
  // Bytes of artifacts that are being brought now.
  std::atomic<int64_t>& incoming_bytes;
};

// Owns itself. No thread waits for the client; one that stops is given up after
// Limits::artifact_transfer. Everything in the context outlives it.
grpc::ServerReadReactor<v1::ArtifactPart>* NewPutArtifactCall(
    const PutArtifactContext& service, const grpc::ServerContextBase& context,
    v1::PutArtifactResponse* response);

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_PUT_ARTIFACT_CALL_H_
