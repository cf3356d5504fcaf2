#include "server/cli/client.h"

#include <grpcpp/grpcpp.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "server/cli/call_limits_internal.h"
#include "server/services/rpc_status.h"
#include "transport/channel.h"
#include "transport/diagnose.h"

namespace tilefarm::cli {
namespace {

constexpr absl::Duration kMeasureTimeout = absl::Minutes(30);
// Long enough for a server that restarts, short enough if there is none.
constexpr absl::Duration kSubmitPatience = absl::Seconds(8);

// Whether a later call may succeed: the server is not there, or is stopping.
bool MayReconnect(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE ||
         status.error_code() == grpc::StatusCode::CANCELLED ||
         status.error_code() == grpc::StatusCode::ABORTED;
}

}  // namespace

Client::Client(const transport::Endpoint& endpoint) : endpoint_(endpoint) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  // Finds a restarted server soon.
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  const auto channel = transport::OpenChannel(endpoint, arguments);
  opened_ = channel.status();
  if (!channel.ok()) return;
  stub_ = v1::Tune::NewStub(*channel);
  admin_ = v1::Admin::NewStub(*channel);
}

absl::Status Client::Explain(const grpc::Status& status) const {
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE) {
    return services::FromGrpc(status);
  }
  const absl::Status found = transport::Diagnose(endpoint_);
  if (!found.ok()) return found;
  const std::string& message = status.error_message();
  // The error is the channel's, not the server's.
  if (message.find("connect") == std::string::npos &&
      message.find("ocket") == std::string::npos &&
      message.find("resolution") == std::string::npos) {
    return services::FromGrpc(status);
  }
  return absl::UnavailableError(absl::StrCat(
      "cannot reach the server at ", endpoint_.address,
      " (start one with: tune-server --db tune.db; or name it with --server "
      "or TUNE_SERVER): ",
      message));
}

#define TF_SIMPLE_CALL(stub, Name, Request, timeout)                    \
  if (!opened_.ok()) return opened_;                                    \
  v1::Name##Response response;                                          \
  grpc::ClientContext context;                                          \
  SetDeadline(context, timeout);                                        \
  const grpc::Status status = stub->Name(&context, Request, &response); \
  if (!status.ok()) return Explain(status);                             \
  return response

absl::StatusOr<v1::ListJobsResponse> Client::ListJobs(
    const v1::ListJobsRequest& request) {
  TF_SIMPLE_CALL(stub_, ListJobs, request, kCallTimeout);
}
absl::StatusOr<v1::ListDevicesResponse> Client::ListDevices() {
  TF_SIMPLE_CALL(stub_, ListDevices, v1::ListDevicesRequest(), kCallTimeout);
}
absl::StatusOr<v1::ChangeDeviceResponse> Client::ChangeDevice(
    const v1::ChangeDeviceRequest& request) {
  TF_SIMPLE_CALL(stub_, ChangeDevice, request, kCallTimeout);
}
absl::StatusOr<v1::DeviceLogResponse> Client::DeviceLog(
    const v1::DeviceLogRequest& request) {
  TF_SIMPLE_CALL(stub_, DeviceLog, request, kCallTimeout);
}
absl::StatusOr<v1::CancelResponse> Client::Cancel(
    const v1::CancelRequest& request) {
  TF_SIMPLE_CALL(stub_, Cancel, request, kCallTimeout);
}
absl::StatusOr<v1::BestResponse> Client::Best(const v1::BestRequest& request) {
  TF_SIMPLE_CALL(stub_, Best, request, kCallTimeout);
}
absl::StatusOr<v1::DbStatsResponse> Client::DbStats() {
  TF_SIMPLE_CALL(stub_, DbStats, v1::DbStatsRequest(), kCallTimeout);
}
absl::StatusOr<std::string> Client::Read(const std::string& path,
                                         const std::string& query) {
  if (!opened_.ok()) return opened_;
  v1::ReadRequest request;
  request.set_path(path);
  request.set_query(query);
  v1::ReadResponse response;
  grpc::ClientContext context;
  SetDeadline(context, kCallTimeout);
  const grpc::Status status = stub_->Read(&context, request, &response);
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return absl::FailedPreconditionError(
        absl::StrCat("the server at ", endpoint_.address,
                     " is of an earlier release and cannot answer this"));
  }
  if (!status.ok()) return Explain(status);
  return std::move(*response.mutable_json());
}
absl::StatusOr<v1::MeasureResponse> Client::Measure(
    const v1::MeasureRequest& request) {
  TF_SIMPLE_CALL(stub_, Measure, request, kMeasureTimeout);
}
absl::StatusOr<v1::CreateTokenResponse> Client::CreateToken(
    const v1::CreateTokenRequest& request) {
  TF_SIMPLE_CALL(admin_, CreateToken, request, kCallTimeout);
}
absl::StatusOr<v1::ListTokensResponse> Client::ListTokens() {
  TF_SIMPLE_CALL(admin_, ListTokens, v1::ListTokensRequest(), kCallTimeout);
}
absl::StatusOr<v1::RevokeResponse> Client::Revoke(
    const v1::RevokeRequest& request) {
  TF_SIMPLE_CALL(admin_, Revoke, request, kCallTimeout);
}

absl::StatusOr<v1::TokenLogResponse> Client::TokenLog(
    const v1::TokenLogRequest& request) {
  TF_SIMPLE_CALL(admin_, TokenLog, request, kCallTimeout);
}
#undef TF_SIMPLE_CALL

absl::StatusOr<std::string> Client::Submit(const v1::SubmitRequest& request) {
  if (!opened_.ok()) return opened_;
  Clock& clock = Clock::Real();
  const absl::Duration until = clock.Monotonic() + kSubmitPatience;
  while (true) {
    v1::SubmitResponse response;
    grpc::ClientContext context;
    SetDeadline(context, kCallTimeout);
    const grpc::Status status = stub_->Submit(&context, request, &response);
    if (status.ok()) return response.job_id();
    if (!MayReconnect(status) || clock.Monotonic() > until) {
      return Explain(status);
    }
    // Waiting does not mend credentials.
    TF_RETURN_IF_ERROR(transport::Diagnose(endpoint_));
    absl::SleepFor(kRetryDelay);
  }
}

absl::StatusOr<v1::JobUpdate> Client::Watch(
    const std::string& job_id,
    const std::function<void(const v1::JobUpdate&)>& take,
    const std::function<void(const std::string&)>& say,
    absl::Duration patience) {
  if (!opened_.ok()) return opened_;
  v1::WatchRequest request;
  request.set_job_id(job_id);
  absl::Duration away_since = absl::InfiniteDuration();
  while (true) {
    grpc::ClientContext context;
    auto reader = stub_->Watch(&context, request);
    v1::JobUpdate update, last;
    bool any = false;
    while (reader->Read(&update)) {
      any = true;
      take(update);
      last.Swap(&update);
    }
    const grpc::Status status = reader->Finish();
    if (status.ok() && any) return last;
    if (!status.ok() && !MayReconnect(status)) return Explain(status);
    const absl::Duration now = Clock::Real().Monotonic();
    if (any) away_since = absl::InfiniteDuration();
    if (away_since == absl::InfiniteDuration()) {
      // Waiting does not mend credentials.
      TF_RETURN_IF_ERROR(transport::Diagnose(endpoint_));
      away_since = now;
      say(absl::StrCat("the server at ", endpoint_.address,
                       " is away; waiting for it to come back"));
    }
    if (now - away_since > patience) return Explain(status);
    absl::SleepFor(kRetryDelay);
  }
}

absl::Status Client::Export(
    const std::function<bool(const std::string&)>& take) {
  if (!opened_.ok()) return opened_;
  grpc::ClientContext context;
  auto reader = stub_->DbExport(&context, v1::DbExportRequest());
  v1::DbLine line;
  bool wanted = true;
  while (wanted && reader->Read(&line)) wanted = take(line.json());
  if (!wanted) context.TryCancel();
  const grpc::Status status = reader->Finish();
  if (!wanted) return absl::UnavailableError("the output could not be written");
  return status.ok() ? absl::OkStatus() : Explain(status);
}

absl::StatusOr<v1::DbImportResponse> Client::Import(
    const std::function<bool(std::string*)>& next) {
  if (!opened_.ok()) return opened_;
  grpc::ClientContext context;
  v1::DbImportResponse response;
  auto writer = stub_->DbImport(&context, &response);
  v1::DbLine line;
  while (next(line.mutable_json()) && writer->Write(line)) {
  }
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  if (!status.ok()) return Explain(status);
  return response;
}

}  // namespace tilefarm::cli
