#include "server/services/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <span>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "database/store.h"
#include "server/farm/farm.h"
#include "server/farm/random_id.h"
#include "server/jobs/jobs.h"
#include "server/security/gate.h"
#include "server/services/admin_service.h"
#include "server/services/convert.h"
#include "server/services/credentials.h"
#include "server/services/device_clock.h"
#include "server/services/farm_service.h"
#include "server/services/http_port.h"
#include "server/services/metrics.h"
#include "server/services/regression_service.h"
#include "server/services/tune_service.h"
#include "transport/endpoint.h"

namespace tilefarm::services {
namespace {

// Size limit of messages that the server sends: records and schedules.
constexpr int kMaxSendBytes = 64 << 20;
// Bytes that a peer may send on a stream before they are read.
constexpr int kStreamWindowBytes = 256 << 10;
// A peer may send keepalive pings so many times as often as the server.
constexpr int kPingsInInterval = 4;

constexpr double kMega = 1e6;

// The server must be restarted if a loop has made no progress for so long.
constexpr absl::Duration kUnhealthy = absl::Seconds(60);
// Key of a blob that is written to test whether the database accepts writes.
constexpr char kReadyKey[] = "ready";
// Key of the blob with the key of lease ids (server/farm/lease_id.h).
constexpr char kLeaseKey[] = "lease_key";

int64_t BytesOf(const std::string& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(bytes);
}

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

class GrpcServer : public Server {
 public:
  explicit GrpcServer(ServerOptions options) : options_(std::move(options)) {}

  ~GrpcServer() override {
    // The HTTP server stops before the parts that its pages use.
    http_.reset();
    attached_.reset();
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
    TF_RETURN_IF_ERROR(CheckListenAddress(options_.listen, options_.security));
    TF_RETURN_IF_ERROR(CheckAddressIsFree(options_.listen));
    if (!options_.http.empty()) {
      TF_RETURN_IF_ERROR(CheckListenAddress(options_.http, options_.security));
      TF_RETURN_IF_ERROR(CheckAddressIsFree(options_.http));
    }
    TF_RETURN_IF_ERROR(ApplyRetention(options_.database_path,
                                      options_.retention, Clock::Real()));
    TF_ASSIGN_OR_RETURN(
        store_, database::Store::Open(options_.database_path,
                                      database::Store::Mode::kReadWrite));
    gate_ = std::make_unique<security::Gate>(
        *store_,
        options_.security.tls() ? security::Gate::Mode::kAuthenticated
                                : security::Gate::Mode::kOpen,
        options_.limits);
    TF_RETURN_IF_ERROR(gate_->Start());
    TF_ASSIGN_OR_RETURN(const std::string lease_key, LeaseKey());
    const security::Limits& limits = options_.limits;
    farm_ = std::make_unique<farm::Farm>(
        farm::FarmOptions{.timeouts = options_.timeouts,
                          .health = options_.health,
                          .canary = options_.canary,
                          .fingerprint = options_.fingerprint,
                          .lease_key = lease_key,
                          .most_devices_of_owner = limits.worker_devices,
                          .most_devices = limits.devices});
    if (!options_.spans.url.empty()) {
      TF_ASSIGN_OR_RETURN(
          spans_, spans::SpanExporter::Start(options_.spans,
                                             {.release = options_.release,
                                              .instance = store_->uuid()}));
    }
    jobs_ = std::make_unique<jobs::Jobs>(
        *store_, *farm_,
        jobs::JobsOptions{
            .timeouts = options_.timeouts,
            .fingerprint = options_.fingerprint,
            .search_factory = options_.search_factory,
            .comparisons = options_.artifacts,
            .lives = LivesTaker(),
            .user_jobs = {limits.user_jobs, limits.user_jobs_bytes},
            .all_jobs = {limits.jobs, limits.jobs_bytes},
            .quotas = options_.quotas});
    TF_RETURN_IF_ERROR(jobs_->Recover());
    farm_service_ = std::make_unique<FarmService>(
        *store_, *farm_, *gate_,
        FarmServiceOptions{.database_uuid = store_->uuid(),
                           .release = options_.release,
                           .timeouts = options_.timeouts});
    parts_ = std::make_unique<api::Parts>(
        api::Parts{.store = *store_,
                   .farm = *farm_,
                   .jobs = *jobs_,
                   .gate = *gate_,
                   .history = history_,
                   .fingerprint = options_.fingerprint,
                   .release = options_.release,
                   .demo = options_.demo});
    tune_service_ = std::make_unique<TuneService>(*parts_);
    regression_service_ = std::make_unique<RegressionService>(
        *store_, *farm_, jobs_->comparisons(), *gate_,
        options_.artifact_retention);
    admin_service_ = std::make_unique<AdminService>(*gate_);
    TF_RETURN_IF_ERROR(Listen());
    jobs_->Start();
    if (!options_.http.empty()) TF_RETURN_IF_ERROR(OpenHttp());
    if (options_.attach != nullptr) attached_ = options_.attach(*farm_);
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }
  std::string http_address() const override {
    return http_ == nullptr ? "" : http_->address();
  }
  std::string Stuck(absl::Duration limit) const override {
    return jobs_->Stuck(limit);
  }

 private:
  // Made with the first start on a database.
  absl::StatusOr<std::string> LeaseKey() {
    auto key = store_->GetBlob(kLeaseKey);
    if (!absl::IsNotFound(key.status())) return key;
    const std::string made = farm::RandomId(256);
    TF_RETURN_IF_ERROR(store_->PutBlob(kLeaseKey, made));
    return made;
  }

  jobs::LivesObserver LivesTaker() {
    if (spans_ == nullptr) return nullptr;
    return [this](const std::string& job_id,
                  std::span<const jobs::LoggedLife> lives) {
      spans_->Add(job_id, lives);
    };
  }

  absl::Status OpenHttp() {
    PagesOptions pages{
        .figures = [this] { return Figures(); },
        .stuck = [this] { return Stuck(kUnhealthy); },
        .write = [this] { return store_->PutBlob(kReadyKey, "yes"); }};
    TF_ASSIGN_OR_RETURN(http_, HttpPort::Open(options_.http, options_.security,
                                              std::move(pages), *parts_));
    return absl::OkStatus();
  }

  ServerFigures Figures() {
    ServerFigures figures;
    figures.release = options_.release;
    figures.fingerprint = options_.fingerprint;
    figures.jobs = jobs_->CountByState();
    for (const farm::DeviceState state : farm::kDeviceStates) {
      figures.devices[std::string(farm::DeviceStateName(state))] = 0;
    }
    for (const farm::DeviceStatus& device : farm_->Devices()) {
      ++figures.devices[std::string(farm::DeviceStateName(device.state))];
      figures.each_device.push_back(
          {.name = device.name,
           .busy_seconds = device.busy_seconds,
           .clock_hertz =
               ClockOf(device.target, device.device_state).mhz * kMega,
           .temperature_celsius =
               NumberIn(device.device_state, "temperature_c")});
    }
    figures.farm = farm_->Figures();
    figures.writer = jobs_->writer_figures();
    const jobs::ResultCounts results = jobs_->result_counts();
    for (size_t i = 0; i < results.stored.size(); ++i) {
      const auto status = static_cast<database::Status>(i);
      figures.results[std::string(database::StatusName(status))] =
          results.stored[i];
    }
    figures.results_not_stored = results.not_stored;
    figures.gate = gate_->figures();
    figures.database_bytes = BytesOf(options_.database_path);
    figures.wal_bytes = BytesOf(options_.database_path + "-wal");
    if (spans_ != nullptr) figures.spans = spans_->figures();
    figures.process = ReadProcessFigures();
    return figures;
  }

  absl::Status Listen() {
    TF_ASSIGN_OR_RETURN(const transport::HostAndPort at,
                        transport::SplitAddress(options_.listen));
    TF_ASSIGN_OR_RETURN(const auto credentials,
                        MakeServerCredentials(options_.security, *gate_));
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    // Otherwise a second server would share the port without an error.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    SetLimits(builder);
    int port = 0;
    builder.AddListeningPort(options_.listen, credentials, &port);
    builder.RegisterService(farm_service_.get());
    builder.RegisterService(tune_service_.get());
    builder.RegisterService(regression_service_.get());
    builder.RegisterService(admin_service_.get());
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

  // See server/security/limits.h.
  void SetLimits(grpc::ServerBuilder& builder) const {
    const security::Limits& limits = options_.limits;
    const auto set = [&](const char* name, absl::Duration duration) {
      builder.AddChannelArgument(name, Milliseconds(duration));
    };
    const farm::Timeouts& timeouts = options_.timeouts;
    set(GRPC_ARG_KEEPALIVE_TIME_MS, timeouts.keepalive_interval);
    set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, timeouts.keepalive_timeout);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    // Probing the bandwidth costs a ping and its answer for nearly every small
    // message. Without it, imports over slow networks need a larger window than
    // the default.
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES,
                               kStreamWindowBytes);
    set(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
        timeouts.keepalive_interval / kPingsInInterval);
    set(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, limits.handshake);
    set(GRPC_ARG_MAX_CONNECTION_IDLE_MS, limits.connection_idle);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                               limits.connection_streams);
    // The largest limit of all methods; each method checks its own.
    int64_t most = 0;
    for (const security::Method& method : security::Methods()) {
      most = std::max(most, security::MaxBytes(method.size, limits));
    }
    builder.SetMaxReceiveMessageSize(static_cast<int>(most));
    builder.SetMaxSendMessageSize(kMaxSendBytes);
    grpc::ResourceQuota quota("tune-server");
    quota.SetMaxThreads(limits.threads);
    builder.SetResourceQuota(quota);
  }

  const ServerOptions options_;
  std::string address_;
  std::unique_ptr<database::Store> store_;
  std::unique_ptr<security::Gate> gate_;
  std::unique_ptr<farm::Farm> farm_;
  std::unique_ptr<spans::SpanExporter> spans_;
  std::unique_ptr<jobs::Jobs> jobs_;
  api::DeviceHistory history_;
  std::unique_ptr<api::Parts> parts_;
  std::unique_ptr<FarmService> farm_service_;
  std::unique_ptr<TuneService> tune_service_;
  std::unique_ptr<RegressionService> regression_service_;
  std::unique_ptr<AdminService> admin_service_;
  std::unique_ptr<grpc::Server> grpc_;
  std::unique_ptr<HttpPort> http_;
  std::shared_ptr<void> attached_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options) {
  auto server = std::make_unique<GrpcServer>(std::move(options));
  TF_RETURN_IF_ERROR(server->Open());
  return server;
}

}  // namespace tilefarm::services
