// A small HTTP server for scrapers and probes: GET and HEAD, one request per
// connection, one thread for all connections.
//
//   accept -> [TLS handshake] -> head -> handler -> answer -> closed
//
// The thread never waits for one client: sockets do not block, and a connection
// lasts `lifetime` at most. If there are too many, the oldest one is closed.
// Slow clients, silent ones and floods therefore cost at most `connections`
// times `head_bytes`, and other clients are served meanwhile.
#ifndef TILEFARM_SERVER_HTTP_HTTP_SERVER_H_
#define TILEFARM_SERVER_HTTP_HTTP_SERVER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http/http_request.h"
#include "server/http/tls.h"

namespace tilefarm::http {

struct HttpLimits {
  int connections = 64;
  size_t head_bytes = 8192;
  absl::Duration lifetime = absl::Seconds(5);
};

struct HttpOptions {
  std::string listen;           // HOST:PORT; port 0: any free one
  std::optional<TlsFiles> tls;  // none: plain text
  HttpLimits limits;
};

// Numbers of answers so far, by status.
using Answers = std::map<int, int64_t>;

class HttpServer {
 public:
  // Called on the server's thread with a well-formed request for this host; all
  // other connections wait for it.
  using Handler = std::function<Response(const Request&, const Answers&)>;

  // The server serves when this returns. InvalidArgument: not an address;
  // Unavailable: in use, or not this machine's; errors of TlsServer::Open.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(HttpOptions options,
                                                           Handler handler);
  // Closes all connections.
  virtual ~HttpServer() = default;

  // HOST:PORT with the actual port.
  virtual const std::string& address() const = 0;
};

}  // namespace tilefarm::http

#endif  // TILEFARM_SERVER_HTTP_HTTP_SERVER_H_
