// TLS of the HTTP port. Files and rules are those of the gRPC port
// (server/services/credentials.h).
#ifndef TILEFARM_SERVER_HTTP_TLS_H_
#define TILEFARM_SERVER_HTTP_TLS_H_

#include <string>

namespace tilefarm::http {

struct TlsFiles {
  std::string cert, key;
  std::string client_ca;  // empty: no client certificate is asked for
};

}  // namespace tilefarm::http

#endif  // TILEFARM_SERVER_HTTP_TLS_H_
