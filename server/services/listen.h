// Where a server may listen, and under which conditions. The rule applies to
// every port that it opens.
#ifndef TILEFARM_SERVER_SERVICES_LISTEN_H_
#define TILEFARM_SERVER_SERVICES_LISTEN_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tilefarm::services {

// PEM files; empty: not given.
struct ListenSecurity {
  std::string tls_cert, tls_key;
  std::string tls_client_ca;  // demand client certificates that it signed
  // Beyond loopback, a token suffices instead of a client certificate.
  bool tokens_only = false;
  // Allows listening beyond loopback without TLS or authentication.
  bool insecure = false;

  bool tls() const { return !tls_cert.empty(); }
};

// InvalidArgument unless the address is HOST:PORT and either loopback
// (127.0.0.0/8, ::1, localhost), or encrypted and authenticated, or explicitly
// insecure. The message says which option is missing.
absl::Status CheckListenAddress(std::string_view address,
                                const ListenSecurity& security = {});

// Whether the address is this machine's and nobody listens there: so that a
// server that cannot start leaves no files behind. Unavailable.
absl::Status CheckAddressIsFree(std::string_view address);

// The effect of --insecure, for people; empty: it has none.
std::string InsecureWarning(std::string_view address,
                            const ListenSecurity& security);

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_LISTEN_H_
