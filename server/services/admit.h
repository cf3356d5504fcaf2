// Checks that a handler makes at the gate before it does anything.
#ifndef TILEFARM_SERVER_SERVICES_ADMIT_H_
#define TILEFARM_SERVER_SERVICES_ADMIT_H_

#include <google/protobuf/message.h>
#include <grpcpp/server_context.h>

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "proto/tilefarm/v1/message_limits.h"
#include "server/security/gate.h"
#include "server/services/credentials.h"

namespace tilefarm::services {

// InvalidArgument or ResourceExhausted: the message was refused when it was
// read (proto/tilefarm/v1/message_limits.h), or is too large for the method.
inline absl::Status CheckMessage(const security::Gate& gate,
                                 std::string_view path,
                                 const google::protobuf::Message& message) {
  const auto refusal = v1::RefusalOf(message);
  if (refusal.has_value()) {
    return refusal->kind == v1::Refusal::Kind::kTooMuch
               ? absl::ResourceExhaustedError(refusal->why)
               : absl::InvalidArgumentError(refusal->why);
  }
  return gate.CheckSize(path, static_cast<int64_t>(message.ByteSizeLong()));
}

// The caller, after CheckMessage has accepted the request.
inline absl::StatusOr<security::Caller> Admit(
    security::Gate& gate, const grpc::ServerContextBase& context,
    std::string_view path, const google::protobuf::Message& request) {
  TF_RETURN_IF_ERROR(CheckMessage(gate, path, request));
  return gate.Identify(CredentialsOf(context));
}

// For an import or export, which occupies a thread: the call is cancelled when
// the caller's credential is revoked or expires. The context outlives the
// returned object.
inline absl::StatusOr<std::unique_ptr<security::Gate::LiveCall>> EnterTransfer(
    security::Gate& gate, grpc::ServerContext& context) {
  TF_ASSIGN_OR_RETURN(const security::Caller caller,
                      gate.Identify(CredentialsOf(context)));
  return gate.Enter(
      caller, security::CallKind::kTransfer,
      [&context](const absl::Status& /*why*/) { context.TryCancel(); });
}

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_ADMIT_H_
