// The HTTP port of a tune-server: which thread answers what.
//
//   /healthz, /, /assets/   the port's own thread
//   /metrics, /readyz       a thread of their own, so that nothing delays them
//   /api/                   a few threads, because they read the database
//
// On loopback the pages for probes and Prometheus are open, as they need no
// certificates there. The API asks for what the gRPC port asks for.
#ifndef TILEFARM_SERVER_SERVICES_HTTP_PORT_H_
#define TILEFARM_SERVER_SERVICES_HTTP_PORT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/api/parts.h"
#include "server/services/http_pages.h"
#include "server/services/listen.h"

namespace tilefarm::services {

class HttpPort {
 public:
  // Serves when this returns. Errors of HttpServer::Start.
  static absl::StatusOr<std::unique_ptr<HttpPort>> Open(
      const std::string& listen, const ListenSecurity& security,
      PagesOptions pages, const api::Parts& parts);
  // Afterwards nothing that the arguments refer to is used any more.
  virtual ~HttpPort() = default;

  // HOST:PORT with the actual port.
  virtual const std::string& address() const = 0;
};

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_HTTP_PORT_H_
