// The farm's protocol on gRPC: one stream per worker. Translates and delegates.
#ifndef TILEFARM_SERVER_SERVICES_FARM_SERVICE_H_
#define TILEFARM_SERVER_SERVICES_FARM_SERVICE_H_

#include <string>

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
  FarmService(farm::Farm& farm, security::Gate& gate,
              FarmServiceOptions options)
      : farm_(farm), gate_(gate), options_(std::move(options)) {}

  grpc::ServerBidiReactor<v1::WorkerMessage, v1::ServerMessage>* Connect(
      grpc::CallbackServerContext* context) override;

 private:
  farm::Farm& farm_;
  security::Gate& gate_;
  const FarmServiceOptions options_;
};

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_FARM_SERVICE_H_
