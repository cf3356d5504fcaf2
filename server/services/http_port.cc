#include "server/services/http_port.h"

#include <functional>
#include <utility>

#include "base/executor.h"
#include "base/status_macros.h"
#include "server/api/api.h"
#include "server/api/feeds.h"
#include "server/http/http_server.h"
#include "server/web/assets.h"
#include "transport/endpoint.h"

namespace tilefarm::services {
namespace {

// Scrapes and probes that wait for their thread.
constexpr int kMostWaitingPages = 16;
// For answers of the API, and how many requests wait for one of them.
constexpr int kApiThreads = 3;
constexpr int kMostWaitingCalls = 128;

using Shared = std::shared_ptr<http::Exchange>;

http::Response AssetResponse(const web::Asset& asset,
                             const http::Request& request) {
  http::Response response{.content_type = std::string(asset.content_type),
                          .etag = std::string(asset.etag)};
  if (request.if_none_match == asset.etag) {
    response.status = 304;
  } else {
    response.body = std::string(asset.bytes);
  }
  return response;
}

class BoundPort : public HttpPort {
 public:
  BoundPort(PagesOptions pages, const api::Parts& parts)
      : parts_(parts), pages_(std::move(pages)), feeds_(parts_) {}

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
    const http::Request& request = exchange->request();
    if (api::IsApiPath(request.path)) return HandleApi(std::move(exchange));
    if (request.post) return exchange->Answer(http::Refusal(405, "GET it"));
    const web::Asset* const asset = web::FindAsset(request.path);
    if (asset != nullptr) {
      return exchange->Answer(AssetResponse(*asset, request));
    }
    if (request.path == "/healthz") {
      return exchange->Answer(pages_.Answer(request, {}));
    }
    Later(pages_thread_, std::move(exchange), [this](const Shared& shared) {
      shared->Answer(pages_.Answer(shared->request(), shared->answers()));
    });
  }

  void HandleApi(std::unique_ptr<http::Exchange> exchange) {
    auto admitted = api::Admit(parts_, exchange->request());
    if (!admitted.ok()) {
      return exchange->Answer(api::ErrorResponse(admitted.status()));
    }
    Later(api_threads_, std::move(exchange),
          [this, admitted = *std::move(admitted)](const Shared& shared) {
            if (admitted.match.route->handler == nullptr) {
              return feeds_.Serve(admitted, *shared);
            }
            shared->Answer(api::Answer(parts_, admitted, shared->request()));
          });
  }

  static void Later(Executor& executor, Shared exchange,
                    std::function<void(const Shared&)> answer) {
    const bool taken = executor.TryRun(
        [exchange, answer = std::move(answer)] { answer(exchange); });
    if (!taken) {
      exchange->Answer(http::Refusal(503, "too many requests wait; try again"));
    }
  }

  const api::Parts parts_;
  Pages pages_;
  api::Feeds feeds_;
  Executor pages_thread_{1, kMostWaitingPages};
  Executor api_threads_{kApiThreads, kMostWaitingCalls};
  // Ends first, so that no more requests come.
  std::unique_ptr<http::HttpServer> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpPort>> HttpPort::Open(
    const std::string& listen, const ListenSecurity& security,
    PagesOptions pages, const api::Parts& parts) {
  TF_ASSIGN_OR_RETURN(const transport::HostAndPort at,
                      transport::SplitAddress(listen));
  const bool secure = security.tls() && !transport::IsLoopback(at.host);
  http::HttpOptions options{.listen = listen};
  if (secure) {
    pages.gate = &parts.gate;
    options.tls = http::TlsFiles{.cert = security.tls_cert,
                                 .key = security.tls_key,
                                 .client_ca = security.tls_client_ca};
  }
  auto port = std::make_unique<BoundPort>(std::move(pages), parts);
  TF_RETURN_IF_ERROR(port->Open(std::move(options)));
  return port;
}

}  // namespace tilefarm::services
