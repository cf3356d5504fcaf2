// A small HTTP server for scrapers and probes: GET and HEAD, one request a
// connection, one thread for all of them.
//
//   accept -> [TLS handshake] -> head -> handler -> answer -> closed
//
// Nothing waits for a client: sockets do not block, and from its first byte to
// its last a connection has `lifetime`. Where there are too many, the one that
// has had the longest goes. So slow clients, silent ones and floods cost at
// most `connections` times `head_bytes`, and others are served meanwhile.
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

// How many there were so far, by status.
using Answers = std::map<int, int64_t>;

class HttpServer {
 public:
  // Called on the server's thread, with a request that is well-formed and meant
  // for us; others wait for it.
  using Handler = std::function<Response(const Request&, const Answers&)>;

  // Serves when it returns. InvalidArgument: no address; Unavailable: in use,
  // or not this machine's; errors of TlsServer::Open.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(HttpOptions options,
                                                           Handler handler);
  // Cuts what is there.
  virtual ~HttpServer() = default;

  // HOST:PORT with the real port.
  virtual const std::string& address() const = 0;
};

}  // namespace tilefarm::http

#endif  // TILEFARM_SERVER_HTTP_HTTP_SERVER_H_
