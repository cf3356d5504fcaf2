// TLS of the HTTP port, on OpenSSL directly. Files and rules are those of the
// gRPC port (server/services/credentials.h).
#ifndef TILEFARM_SERVER_HTTP_TLS_H_
#define TILEFARM_SERVER_HTTP_TLS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tilefarm::http {

struct TlsFiles {
  std::string cert, key;
  std::string client_ca;  // empty: no client certificate is asked for
};

// TLS of one connection. Never blocks; `fd` must be non-blocking.
class TlsSession {
 public:
  enum class Step { kDone, kWantsRead, kWantsWrite, kFailed };

  virtual ~TlsSession() = default;
  virtual Step Handshake() = 0;
  // kDone: `size` bytes are in the buffer; 0 at the end of the stream.
  virtual Step Read(char* buffer, size_t capacity, size_t& size) = 0;
  virtual Step Write(const char* data, size_t length, size_t& size) = 0;
  virtual void SayGoodbye() = 0;
  // The client's, PEM; empty: none.
  virtual std::string PeerCertificate() const = 0;
  // Whether our certificate is valid for this host.
  virtual bool IsFor(const std::string& host) const = 0;
};

// Not thread-safe.
class TlsServer {
 public:
  virtual ~TlsServer() = default;
  // NotFound, InvalidArgument, PermissionDenied, FailedPrecondition: the files.
  static absl::StatusOr<std::unique_ptr<TlsServer>> Open(TlsFiles files);
  // Null: out of memory. Loads changed files first; if they are invalid, it
  // logs that and keeps those that it has.
  virtual std::unique_ptr<TlsSession> Accept(int fd) = 0;
};

}  // namespace tilefarm::http

#endif  // TILEFARM_SERVER_HTTP_TLS_H_
