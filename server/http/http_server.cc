#include "server/http/http_server.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/http/connection_internal.h"
#include "server/http/tls_internal.h"
#include "transport/endpoint.h"

namespace tilefarm::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Error = boost::system::error_code;

constexpr int kBacklog = 128;
// How long to wait where the rest of the process holds all descriptors.
constexpr std::chrono::milliseconds kNoDescriptors(50);

class BeastServer : public HttpServer {
 public:
  BeastServer(HttpOptions options, Handler handler)
      : options_(std::move(options)),
        shared_(std::make_shared<Shared>(options_.limits)),
        acceptor_(shared_->io),
        pause_(shared_->io),
        heartbeat_(shared_->io) {
    shared_->handler = std::move(handler);
  }
  ~BeastServer() override {
    if (!thread_.joinable()) return;
    asio::post(shared_->io, [this] { Stop(); });
    thread_.join();  // nothing is pending any more
  }

  absl::Status Open() {
    TF_ASSIGN_OR_RETURN(const transport::HostAndPort at,
                        transport::SplitAddress(options_.listen));
    shared_->own_host = at.host;
    if (options_.tls.has_value()) {
      TF_ASSIGN_OR_RETURN(tls_, TlsContext::Open(*options_.tls));
    }
    TF_RETURN_IF_ERROR(Listen(at));
    const bool v6 = at.host.find(':') != std::string::npos;
    address_ = absl::StrCat(v6 ? "[" : "", at.host, v6 ? "]:" : ":",
                            acceptor_.local_endpoint().port());
    Accept();
    BeatLater();
    thread_ = std::thread([this] { shared_->io.run(); });
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }

 private:
  absl::Status Listen(const transport::HostAndPort& at) {
    Error error;
    tcp::resolver resolver(shared_->io);
    const auto found = resolver.resolve(
        at.host, absl::StrCat(at.port),
        tcp::resolver::passive | tcp::resolver::numeric_service, error);
    if (error) {
      return absl::UnavailableError(
          absl::StrCat(at.host, ": ", error.message()));
    }
    const tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor_.open(endpoint.protocol(), error);
    if (!error) {
      acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    }
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(kBacklog, error);
    if (error) {
      return absl::UnavailableError(absl::StrCat(
          "cannot listen on ", at.host, ":", at.port, ": ", error.message()));
    }
    return absl::OkStatus();
  }

  void Accept() {
    acceptor_.async_accept([this](const Error& error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (!error) Take(std::move(socket));
      const bool no_descriptors =
          error == asio::error::no_descriptors ||
          error == boost::system::errc::too_many_files_open_in_system;
      if (no_descriptors && !CloseOldest()) {
        pause_.expires_after(kNoDescriptors);
        pause_.async_wait([this](const Error& stopped) {
          if (!stopped) Accept();
        });
        return;
      }
      Accept();
    });
  }

  void Take(tcp::socket socket) {
    if (static_cast<int>(shared_->connections.size()) >=
            options_.limits.connections &&
        !CloseOldest()) {
      return;  // all are streams
    }
    auto connection =
        MakeConnection(shared_, std::move(socket),
                       tls_ == nullptr ? nullptr : tls_->Current());
    shared_->connections.push_back(connection);
    connection->Start();
  }

  // False: all connections are streams.
  bool CloseOldest() {
    for (const auto& connection : shared_->connections) {
      if (connection->streams()) continue;
      const auto oldest = connection;
      oldest->Abort();
      return true;
    }
    return false;
  }

  void BeatLater() {
    heartbeat_.expires_after(
        absl::ToChronoMilliseconds(options_.limits.heartbeat));
    heartbeat_.async_wait([this](const Error& stopped) {
      if (stopped) return;
      for (const auto& connection : shared_->connections) connection->Beat();
      BeatLater();
    });
  }

  void Stop() {
    Error ignored;
    acceptor_.close(ignored);
    pause_.cancel();
    heartbeat_.cancel();
    while (!shared_->connections.empty()) {
      const auto connection = shared_->connections.front();
      connection->Abort();
    }
  }

  const HttpOptions options_;
  const std::shared_ptr<Shared> shared_;
  std::unique_ptr<TlsContext> tls_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_, heartbeat_;
  std::string address_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    HttpOptions options, Handler handler) {
  auto server =
      std::make_unique<BeastServer>(std::move(options), std::move(handler));
  TF_RETURN_IF_ERROR(server->Open());
  return server;
}

}  // namespace tilefarm::http
