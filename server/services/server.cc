#include "server/services/server.h"

#include <arpa/inet.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <chrono>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "database/store.h"
#include "server/farm/farm.h"
#include "server/jobs/jobs.h"
#include "server/services/farm_service.h"
#include "server/services/tune_service.h"

namespace tilefarm::services {
namespace {

// Programs and results are text of a few MiB at most.
constexpr int kMaxMessageBytes = 64 << 20;
constexpr int kMaxThreads = 64;
// A peer may ask for signs of life so many times as often as the server does.
constexpr int kPingsInInterval = 4;

struct HostAndPort {
  std::string host;
  int port = 0;
};

absl::StatusOr<HostAndPort> SplitAddress(std::string_view address) {
  const size_t colon = address.rfind(':');
  HostAndPort out;
  if (colon == std::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(absl::string_view(address.data() + colon + 1,
                                          address.size() - colon - 1),
                        &out.port) ||
      out.port < 0 || out.port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", std::string(address), "' is not HOST:PORT"));
  }
  out.host = std::string(address.substr(0, colon));
  if (out.host.size() > 2 && out.host.front() == '[' &&
      out.host.back() == ']') {
    out.host = out.host.substr(1, out.host.size() - 2);
  }
  return out;
}

bool IsLoopback(const std::string& host) {
  if (host == "localhost") return true;
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    return (ntohl(v4.s_addr) >> 24) == 127;
  }
  in6_addr v6;
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 &&
         IN6_IS_ADDR_LOOPBACK(&v6);
}

class GrpcServer : public Server {
 public:
  explicit GrpcServer(ServerOptions options) : options_(std::move(options)) {}

  ~GrpcServer() override {
    if (farm_ != nullptr) {
      farm_->CloseAll(absl::UnavailableError("the server shuts down"));
    }
    if (grpc_ != nullptr) {
      grpc_->Shutdown(
          std::chrono::system_clock::now() +
          absl::ToChronoMilliseconds(options_.timeouts.shutdown_grace));
    }
    // The services are destroyed after gRPC's threads, jobs before the farm.
    grpc_.reset();
  }

  absl::Status Open() {
    TF_RETURN_IF_ERROR(CheckListenAddress(options_.listen));
    TF_ASSIGN_OR_RETURN(
        store_, database::Store::Open(options_.database_path,
                                      database::Store::Mode::kReadWrite));
    farm_ = std::make_unique<farm::Farm>(
        farm::FarmOptions{.timeouts = options_.timeouts,
                          .health = options_.health,
                          .canary = options_.canary,
                          .fingerprint = options_.fingerprint});
    jobs_ = std::make_unique<jobs::Jobs>(
        *store_, *farm_,
        jobs::JobsOptions{.timeouts = options_.timeouts,
                          .fingerprint = options_.fingerprint,
                          .search_factory = options_.search_factory});
    TF_RETURN_IF_ERROR(jobs_->Recover());
    farm_service_ = std::make_unique<FarmService>(
        *farm_, FarmServiceOptions{.database_uuid = store_->uuid(),
                                   .release = options_.release,
                                   .timeouts = options_.timeouts});
    tune_service_ = std::make_unique<TuneService>(*store_, *farm_, *jobs_,
                                                  options_.fingerprint);
    TF_RETURN_IF_ERROR(Listen());
    jobs_->Start();
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }

 private:
  absl::Status Listen() {
    TF_ASSIGN_OR_RETURN(const HostAndPort at, SplitAddress(options_.listen));
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    // Otherwise a second server would share the port in silence.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    const auto milliseconds = [](absl::Duration duration) {
      return static_cast<int>(absl::ToInt64Milliseconds(duration));
    };
    const farm::Timeouts& timeouts = options_.timeouts;
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS,
                               milliseconds(timeouts.keepalive_interval));
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                               milliseconds(timeouts.keepalive_timeout));
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(
        GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
        milliseconds(timeouts.keepalive_interval / kPingsInInterval));
    builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
    builder.SetMaxSendMessageSize(kMaxMessageBytes);
    grpc::ResourceQuota quota("tune-server");
    quota.SetMaxThreads(kMaxThreads);
    builder.SetResourceQuota(quota);
    int port = 0;
    builder.AddListeningPort(options_.listen, grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(farm_service_.get());
    builder.RegisterService(tune_service_.get());
    grpc_ = builder.BuildAndStart();
    if (grpc_ == nullptr || port == 0) {
      return absl::UnavailableError(
          absl::StrCat("cannot listen on ", options_.listen,
                       ": the address is in use or not this machine's"));
    }
    const bool v6 = at.host.find(':') != std::string::npos;
    address_ = v6 ? absl::StrCat("[", at.host, "]:", port)
                  : absl::StrCat(at.host, ":", port);
    return absl::OkStatus();
  }

  const ServerOptions options_;
  std::string address_;
  std::unique_ptr<database::Store> store_;
  std::unique_ptr<farm::Farm> farm_;
  std::unique_ptr<jobs::Jobs> jobs_;
  std::unique_ptr<FarmService> farm_service_;
  std::unique_ptr<TuneService> tune_service_;
  std::unique_ptr<grpc::Server> grpc_;
};

}  // namespace

absl::Status CheckListenAddress(std::string_view address) {
  TF_ASSIGN_OR_RETURN(const HostAndPort at, SplitAddress(address));
  if (IsLoopback(at.host)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "'", at.host,
      "' is not a loopback address: until the farm has "
      "authentication and encryption the server listens on 127.0.0.1, ::1 or "
      "localhost only; reach it from elsewhere through a tunnel (ssh -L)"));
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options) {
  auto server = std::make_unique<GrpcServer>(std::move(options));
  TF_RETURN_IF_ERROR(server->Open());
  return server;
}

}  // namespace tilefarm::services
