#include "server/services/admin_service.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "server/services/admit.h"
#include "server/services/convert.h"
#include "server/services/rpc_status.h"

namespace tilefarm::services {
namespace {}  // namespace

grpc::Status AdminService::CreateToken(grpc::ServerContext* context,
                                       const v1::CreateTokenRequest* request,
                                       v1::CreateTokenResponse* response) {
  const auto caller =
      Admit(gate_, *context, "/tilefarm.v1.Admin/CreateToken", *request);
  if (!caller.ok()) return ToGrpc(caller.status());
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
                                           : absl::Seconds(request->seconds()),
                                       caller->NameOr(request->user()));
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

grpc::Status AdminService::TokenLog(grpc::ServerContext* /*context*/,
                                    const v1::TokenLogRequest* request,
                                    v1::TokenLogResponse* response) {
  const int64_t limit = LogEntries(request->limit());
  const auto entries = gate_.TokenLog(request->name(), limit);
  if (!entries.ok()) return ToGrpc(entries.status());
  for (const database::AuditEntry& entry : *entries) {
    *response->add_entries() = ToProto(entry);
  }
  return grpc::Status::OK;
}

grpc::Status AdminService::Revoke(grpc::ServerContext* context,
                                  const v1::RevokeRequest* request,
                                  v1::RevokeResponse* response) {
  const auto caller =
      Admit(gate_, *context, "/tilefarm.v1.Admin/Revoke", *request);
  if (!caller.ok()) return ToGrpc(caller.status());
  const auto tokens =
      gate_.Revoke(request->name(), caller->NameOr(request->user()));
  if (tokens.ok()) response->set_tokens(*tokens);
  return ToGrpc(tokens.status());
}

}  // namespace tilefarm::services
