// Reads and checks files of certificates, keys and tokens. An error names the
// file and what is wrong with it, instead of a handshake that fails later.
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

// A certificate and the private key that belongs to it. Only the owner may read
// the key, and the certificate has not expired. NotFound,
// PermissionDenied, InvalidArgument, FailedPrecondition.
absl::Status CheckKeyPair(const std::string& cert, const std::string& key);

// One token, without surrounding white space. PermissionDenied unless only the
// owner may read the file.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path);

// InvalidArgument unless the text has the form of a token; `from` names its
// origin. The message never contains the token.
absl::Status CheckToken(std::string_view token, std::string_view from);

}  // namespace tilefarm::transport

#endif  // TILEFARM_TRANSPORT_SECRET_FILE_H_
