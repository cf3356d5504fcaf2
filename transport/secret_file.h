// Files of certificates, keys and tokens, checked where they are read: what is
// wrong with one is said at once and by name, not by a failing handshake.
#ifndef TILEFARM_TRANSPORT_SECRET_FILE_H_
#define TILEFARM_TRANSPORT_SECRET_FILE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tilefarm::transport {

// A file with at least one certificate. `flag` names it in errors. NotFound,
// InvalidArgument.
absl::StatusOr<std::string> ReadPem(const std::string& path,
                                    std::string_view flag);

// Certificate and private key that fit each other; nobody but the owner may
// read the key, and the certificate has not expired. NotFound,
// PermissionDenied, InvalidArgument, FailedPrecondition.
absl::Status CheckKeyPair(const std::string& cert, const std::string& key);

// One token, surrounding white space apart. PermissionDenied unless nobody but
// the owner may read the file.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path);

// InvalidArgument unless it can be one; `from` names its origin. The token is
// never part of the message.
absl::Status CheckToken(std::string_view token, std::string_view from);

}  // namespace tilefarm::transport

#endif  // TILEFARM_TRANSPORT_SECRET_FILE_H_
