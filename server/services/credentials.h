// Connects gRPC's security with server/security.
#ifndef TILEFARM_SERVER_SERVICES_CREDENTIALS_H_
#define TILEFARM_SERVER_SERVICES_CREDENTIALS_H_

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_context.h>

#include <memory>

#include "absl/status/statusor.h"
#include "server/security/gate.h"
#include "server/services/listen.h"

namespace tilefarm::services {

// Plain text without TLS files. With them, every call passes the gate before
// its first message is read, and changed files are loaded automatically. The
// gate outlives the server. NotFound, InvalidArgument, PermissionDenied: the
// files are missing, invalid or not private.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const ListenSecurity& security, security::Gate& gate);

// The credentials of a call.
security::Credentials CredentialsOf(const grpc::ServerContextBase& context);

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_CREDENTIALS_H_
