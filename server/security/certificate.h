// Name and role in a client's certificate, which the handshake has verified.
#ifndef TILEFARM_SERVER_SECURITY_CERTIFICATE_H_
#define TILEFARM_SERVER_SECURITY_CERTIFICATE_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/security/roles.h"

namespace tilefarm::security {

// The URI among the subject alternative names that holds the role:
// "tilefarm:role:worker".
inline constexpr std::string_view kRoleUri = "tilefarm:role:";

struct CertificateFacts {
  std::string name;  // the subject's common name
  Role role = Role::kUser;
  absl::Time not_before, not_after;
};

// Unauthenticated: it does not have exactly one common name and one role.
absl::StatusOr<CertificateFacts> ReadCertificate(std::string_view pem);

}  // namespace tilefarm::security

#endif  // TILEFARM_SERVER_SECURITY_CERTIFICATE_H_
