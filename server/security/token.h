// Bearer tokens: secrets that stand for a name and a role. The server stores
// only their SHA-256.
#ifndef TILEFARM_SERVER_SECURITY_TOKEN_H_
#define TILEFARM_SERVER_SECURITY_TOKEN_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "database/store.h"
#include "server/security/roles.h"

namespace tilefarm::security {

// "tilefarm_" and 256 random bits in hexadecimal; the prefix lets scanners for
// leaked secrets find one.
std::string NewToken();
// The hash that is stored, in hexadecimal.
std::string TokenHash(std::string_view token);
// Compares in constant time.
bool SameHash(std::string_view a, std::string_view b);

// InvalidArgument unless it is a valid name of a credential: 1 to 64 letters,
// digits, '.', '-', '_', '@'.
absl::Status CheckName(std::string_view name);

// A row to store, and the token, which the row does not contain. `lifetime` may
// be infinite. InvalidArgument: bad name or lifetime.
struct NewTokenRow {
  database::TokenRow row;
  std::string token;
};
absl::StatusOr<NewTokenRow> MakeToken(const std::string& name, Role role,
                                      absl::Duration lifetime, absl::Time now);

// Times in the database: RFC 3339 in UTC; "" means never.
std::string TimeText(absl::Time time);
absl::Time TimeOfText(const std::string& text, absl::Time when_empty);

}  // namespace tilefarm::security

#endif  // TILEFARM_SERVER_SECURITY_TOKEN_H_
