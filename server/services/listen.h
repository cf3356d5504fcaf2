// Where a server may listen, and on which conditions. The same rule for every
// port that it opens.
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
  // Beyond loopback a token is enough, no client certificate.
  bool tokens_only = false;
  // Beyond loopback without TLS or authentication.
  bool insecure = false;

  bool tls() const { return !tls_cert.empty(); }
};

// InvalidArgument unless the address is HOST:PORT and either loopback
// (127.0.0.0/8, ::1, localhost), or encrypted and authenticated, or knowingly
// neither. The message says which option is missing.
absl::Status CheckListenAddress(std::string_view address,
                                const ListenSecurity& security = {});

// What --insecure means, for people; empty where it changes nothing.
std::string InsecureWarning(std::string_view address,
                            const ListenSecurity& security);

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_LISTEN_H_
