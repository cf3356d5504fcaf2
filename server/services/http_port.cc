#include "server/services/http_port.h"

#include <utility>

#include "base/executor.h"
#include "base/status_macros.h"
#include "server/http/http_server.h"
#include "transport/endpoint.h"

namespace tilefarm::services {
namespace {

// Scrapes and probes that wait for their thread.
constexpr int kMostWaitingPages = 16;

class BoundPort : public HttpPort {
 public:
  explicit BoundPort(PagesOptions pages) : pages_(std::move(pages)) {}

  absl::Status Open(http::HttpOptions options) {
    TF_ASSIGN_OR_RETURN(server_,
                        http::HttpServer::Start(
                            std::move(options),
                            [this](std::unique_ptr<http::Exchange> exchange) {
                              Handle(std::move(exchange));
                            }));
    return absl::OkStatus();
  }

  const std::string& address() const override { return server_->address(); }

 private:
  void Handle(std::unique_ptr<http::Exchange> exchange) {
    if (exchange->request().path == "/healthz") {
      return exchange->Answer(pages_.Answer(exchange->request(), {}));
    }
    // A copyable task has shared what it needs.
    const std::shared_ptr<http::Exchange> shared = std::move(exchange);
    const bool taken = pages_thread_.TryRun([this, shared] {
      shared->Answer(pages_.Answer(shared->request(), shared->answers()));
    });
    if (!taken) shared->Answer(http::Refusal(503, "too many requests wait"));
  }

  Pages pages_;
  Executor pages_thread_{1, kMostWaitingPages};
  // Ends first, so that no more requests come.
  std::unique_ptr<http::HttpServer> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpPort>> HttpPort::Open(
    const std::string& listen, const ListenSecurity& security,
    security::Gate& gate, PagesOptions pages) {
  TF_ASSIGN_OR_RETURN(const transport::HostAndPort at,
                      transport::SplitAddress(listen));
  const bool secure = security.tls() && !transport::IsLoopback(at.host);
  http::HttpOptions options{.listen = listen};
  if (secure) {
    pages.gate = &gate;
    options.tls = http::TlsFiles{.cert = security.tls_cert,
                                 .key = security.tls_key,
                                 .client_ca = security.tls_client_ca};
  }
  auto port = std::make_unique<BoundPort>(std::move(pages));
  TF_RETURN_IF_ERROR(port->Open(std::move(options)));
  return port;
}

}  // namespace tilefarm::services
