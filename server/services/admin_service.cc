#include "server/services/admin_service.h"

#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "server/services/rpc_status.h"

namespace tilefarm::services {

grpc::Status AdminService::CreateToken(grpc::ServerContext* /*context*/,
                                       const v1::CreateTokenRequest* request,
                                       v1::CreateTokenResponse* response) {
  const std::optional<security::Role> role =
      security::ParseRole(request->role());
  if (!role.has_value()) {
    return ToGrpc(absl::InvalidArgumentError(absl::StrCat(
        "'", request->role(), "' is no role: worker, user or admin")));
  }
  if (std::isnan(request->seconds()) || request->seconds() < 0) {
    return ToGrpc(absl::InvalidArgumentError("a negative lifetime"));
  }
  const auto token = gate_.CreateToken(request->name(), *role,
                                       request->seconds() == 0
                                           ? absl::InfiniteDuration()
                                           : absl::Seconds(request->seconds()));
  if (token.ok()) response->set_token(*token);
  return ToGrpc(token.status());
}

grpc::Status AdminService::ListTokens(grpc::ServerContext* /*context*/,
                                      const v1::ListTokensRequest* /*request*/,
                                      v1::ListTokensResponse* response) {
  const auto tokens = gate_.ListTokens();
  if (!tokens.ok()) return ToGrpc(tokens.status());
  for (const database::TokenRow& row : *tokens) {
    v1::Token& token = *response->add_tokens();
    token.set_name(row.name);
    token.set_role(row.role);
    token.set_created(row.created_at);
    token.set_expires(row.expires_at);
    token.set_revoked(row.revoked_at);
  }
  return grpc::Status::OK;
}

grpc::Status AdminService::Revoke(grpc::ServerContext* /*context*/,
                                  const v1::RevokeRequest* request,
                                  v1::RevokeResponse* response) {
  const auto tokens = gate_.Revoke(request->name());
  if (tokens.ok()) response->set_tokens(*tokens);
  return ToGrpc(tokens.status());
}

}  // namespace tilefarm::services
