// The HTTP port of a tune-server: which thread answers what.
//
//   /healthz            the port's own thread
//   /metrics, /readyz   a thread of their own, so that nothing else delays them
#ifndef TILEFARM_SERVER_SERVICES_HTTP_PORT_H_
#define TILEFARM_SERVER_SERVICES_HTTP_PORT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/services/http_pages.h"
#include "server/services/listen.h"

namespace tilefarm::services {

class HttpPort {
 public:
  // Serves when this returns. `gate` is asked where the port is secure: on
  // loopback it has no TLS and needs no credentials, so that probes need no
  // certificates. Errors of HttpServer::Start.
  static absl::StatusOr<std::unique_ptr<HttpPort>> Open(
      const std::string& listen, const ListenSecurity& security,
      security::Gate& gate, PagesOptions pages);
  // Afterwards nothing that the options refer to is used any more.
  virtual ~HttpPort() = default;

  // HOST:PORT with the actual port.
  virtual const std::string& address() const = 0;
};

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_HTTP_PORT_H_
