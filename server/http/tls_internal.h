// The TLS context of new connections, made anew when its files change.
#ifndef TILEFARM_SERVER_HTTP_TLS_INTERNAL_H_
#define TILEFARM_SERVER_HTTP_TLS_INTERNAL_H_

#include <openssl/ssl.h>

#include <boost/asio/ssl/context.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/http/tls.h"

namespace tilefarm::http {

// Not thread-safe.
class TlsContext {
 public:
  // NotFound, InvalidArgument, PermissionDenied, FailedPrecondition: the files.
  static absl::StatusOr<std::unique_ptr<TlsContext>> Open(TlsFiles files);

  // For one more connection, which keeps it. Loads changed files first; if they
  // are invalid, it logs that and keeps those that it has.
  std::shared_ptr<boost::asio::ssl::context> Current();

 private:
  TlsContext() = default;
  TlsFiles files_;
  std::vector<int64_t> stamp_;  // of the files that are loaded
  std::shared_ptr<boost::asio::ssl::context> context_;
};

// The client's, PEM; empty: none.
std::string PeerCertificate(SSL* ssl);
// Whether our certificate is valid for this host.
bool IsCertifiedFor(SSL* ssl, const std::string& host);

}  // namespace tilefarm::http

#endif  // TILEFARM_SERVER_HTTP_TLS_INTERNAL_H_
