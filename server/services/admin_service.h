// The gRPC service for tokens and revocation. Translates and delegates.
#ifndef TILEFARM_SERVER_SERVICES_ADMIN_SERVICE_H_
#define TILEFARM_SERVER_SERVICES_ADMIN_SERVICE_H_

#include "proto/tilefarm/v1/admin.grpc.pb.h"
#include "server/security/gate.h"

namespace tilefarm::services {

class AdminService : public v1::Admin::Service {
 public:
  explicit AdminService(security::Gate& gate) : gate_(gate) {}

  grpc::Status CreateToken(grpc::ServerContext* context,
                           const v1::CreateTokenRequest* request,
                           v1::CreateTokenResponse* response) override;
  grpc::Status ListTokens(grpc::ServerContext* context,
                          const v1::ListTokensRequest* request,
                          v1::ListTokensResponse* response) override;
  grpc::Status Revoke(grpc::ServerContext* context,
                      const v1::RevokeRequest* request,
                      v1::RevokeResponse* response) override;
  grpc::Status TokenLog(grpc::ServerContext* context,
                        const v1::TokenLogRequest* request,
                        v1::TokenLogResponse* response) override;

 private:
  security::Gate& gate_;
};

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_ADMIN_SERVICE_H_
