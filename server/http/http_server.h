// The HTTP port: Boost.Beast on one thread, with bounds on everything that a
// client can make it keep.
//
//   accept -> [TLS handshake] -> head -> body -> handler -> answer -.
//                                 ^---------------------------------'
//                                             or -> stream of events
//
// The thread never waits for one client. A request has `lifetime` from its
// first byte to its last, and so has its answer; a connection without a request
// ends after `idle`. If there are too many, the oldest one without a stream is
// closed. Slow clients, silent ones and floods therefore cost at most
// `connections` times `head_bytes`, plus bodies, whose number is bounded too;
// other clients are served meanwhile.
#ifndef TILEFARM_SERVER_HTTP_HTTP_SERVER_H_
#define TILEFARM_SERVER_HTTP_HTTP_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http/exchange.h"
#include "server/http/tls.h"

namespace tilefarm::http {

struct HttpLimits {
  // A page of the dashboard holds up to six connections while it loads.
  int connections = 256;
  // Of these, streams of events; the next one gets 503.
  int streams = 128;
  size_t head_bytes = 8192;
  // Of a body, and how many clients may send one at the same time; the next one
  // gets 503.
  int64_t body_bytes = 8 << 20;
  int bodies = 8;
  // One second is added for each `slowest` bytes of a body or an answer.
  absl::Duration lifetime = absl::Seconds(5);
  int64_t slowest = 64 << 10;
  absl::Duration idle = absl::Seconds(30);
  // Of a stream, in the process. A client that reads slower is closed.
  size_t unread_bytes = 1 << 20;
  // A comment is sent on a stream this often, which finds clients that are
  // gone.
  absl::Duration heartbeat = absl::Seconds(15);
};

struct HttpOptions {
  std::string listen;           // HOST:PORT; port 0: any free one
  std::optional<TlsFiles> tls;  // none: plain text
  HttpLimits limits;
};

class HttpServer {
 public:
  // Called on the server's thread with a well-formed request for this host; it
  // must not block.
  using Handler = std::function<void(std::unique_ptr<Exchange>)>;

  // The server serves when this returns. InvalidArgument: not an address;
  // Unavailable: in use, or not this machine's; errors of OpenTls.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(HttpOptions options,
                                                           Handler handler);
  // Closes all connections. The handler is not running afterwards.
  virtual ~HttpServer() = default;

  // HOST:PORT with the actual port.
  virtual const std::string& address() const = 0;
};

}  // namespace tilefarm::http

#endif  // TILEFARM_SERVER_HTTP_HTTP_SERVER_H_
