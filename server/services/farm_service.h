// The farm's protocol on gRPC: one stream per worker, and a call for each
// artifact that it fetches. Translates and delegates.
#ifndef TILEFARM_SERVER_SERVICES_FARM_SERVICE_H_
#define TILEFARM_SERVER_SERVICES_FARM_SERVICE_H_

#include <string>

#include "base/executor.h"
#include "database/store.h"
#include "proto/tilefarm/v1/farm.grpc.pb.h"
#include "server/farm/farm.h"
#include "server/security/gate.h"

namespace tilefarm::services {

struct FarmServiceOptions {
  std::string database_uuid;
  std::string release;
  farm::Timeouts timeouts;
};

class FarmService : public v1::Farm::CallbackService {
 public:
  FarmService(database::Store& store, farm::Farm& farm, security::Gate& gate,
              FarmServiceOptions options)
      : store_(store),
        farm_(farm),
        gate_(gate),
        options_(std::move(options)),
        executor_(kExecutorThreads, kMostWaitingCalls) {}

  grpc::ServerBidiReactor<v1::WorkerMessage, v1::ServerMessage>* Connect(
      grpc::CallbackServerContext* context) override;
  grpc::ServerWriteReactor<v1::ArtifactData>* GetArtifact(
      grpc::CallbackServerContext* context,
      const v1::GetArtifactRequest* request) override;

 private:
  // For reading artifacts from the database.
  static constexpr int kExecutorThreads = 2;
  static constexpr int kMostWaitingCalls = 256;

  database::Store& store_;
  farm::Farm& farm_;
  security::Gate& gate_;
  const FarmServiceOptions options_;
  Executor executor_;
};

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_FARM_SERVICE_H_
