#include "server/cli/client.h"

#include <grpcpp/grpcpp.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "server/services/rpc_status.h"

namespace tilefarm::cli {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(60);
constexpr absl::Duration kMeasureTimeout = absl::Minutes(30);
constexpr int kSubmitTries = 5;
constexpr absl::Duration kRetryDelay = absl::Milliseconds(500);
constexpr int kMaxMessageBytes = 64 << 20;

void SetDeadline(grpc::ClientContext& context, absl::Duration timeout) {
  context.set_deadline(std::chrono::system_clock::now() +
                       absl::ToChronoMilliseconds(timeout));
}

// The server went away or is going; a later call may find it again.
bool MayReconnect(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE ||
         status.error_code() == grpc::StatusCode::CANCELLED ||
         status.error_code() == grpc::StatusCode::ABORTED;
}

}  // namespace

Client::Client(const std::string& address) : address_(address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  // A server that comes back is found soon.
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  stub_ = v1::Tune::NewStub(grpc::CreateCustomChannel(
      address, grpc::InsecureChannelCredentials(), arguments));
}

absl::Status Client::Explain(const grpc::Status& status) const {
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE) {
    return services::FromGrpc(status);
  }
  const std::string& message = status.error_message();
  // Of the channel, not of the server.
  if (message.find("connect") == std::string::npos &&
      message.find("ocket") == std::string::npos &&
      message.find("resolution") == std::string::npos) {
    return services::FromGrpc(status);
  }
  return absl::UnavailableError(absl::StrCat(
      "cannot reach the server at ", address_,
      " (start one with: tune-server --db tune.db; or name it with --server "
      "or TUNE_SERVER): ",
      message));
}

#define TF_SIMPLE_CALL(Name, Request, timeout)                           \
  v1::Name##Response response;                                           \
  grpc::ClientContext context;                                           \
  SetDeadline(context, timeout);                                         \
  const grpc::Status status = stub_->Name(&context, Request, &response); \
  if (!status.ok()) return Explain(status);                              \
  return response

absl::StatusOr<v1::ListJobsResponse> Client::ListJobs() {
  TF_SIMPLE_CALL(ListJobs, v1::ListJobsRequest(), kCallTimeout);
}
absl::StatusOr<v1::ListDevicesResponse> Client::ListDevices() {
  TF_SIMPLE_CALL(ListDevices, v1::ListDevicesRequest(), kCallTimeout);
}
absl::StatusOr<v1::ChangeDeviceResponse> Client::ChangeDevice(
    const v1::ChangeDeviceRequest& request) {
  TF_SIMPLE_CALL(ChangeDevice, request, kCallTimeout);
}
absl::StatusOr<v1::DeviceLogResponse> Client::DeviceLog(
    const v1::DeviceLogRequest& request) {
  TF_SIMPLE_CALL(DeviceLog, request, kCallTimeout);
}
absl::StatusOr<v1::CancelResponse> Client::Cancel(
    const v1::CancelRequest& request) {
  TF_SIMPLE_CALL(Cancel, request, kCallTimeout);
}
absl::StatusOr<v1::BestResponse> Client::Best(const v1::BestRequest& request) {
  TF_SIMPLE_CALL(Best, request, kCallTimeout);
}
absl::StatusOr<v1::DbStatsResponse> Client::DbStats() {
  TF_SIMPLE_CALL(DbStats, v1::DbStatsRequest(), kCallTimeout);
}
absl::StatusOr<v1::MeasureResponse> Client::Measure(
    const v1::MeasureRequest& request) {
  TF_SIMPLE_CALL(Measure, request, kMeasureTimeout);
}
#undef TF_SIMPLE_CALL

absl::StatusOr<std::string> Client::Submit(const v1::SubmitRequest& request) {
  for (int attempt = 1;; ++attempt) {
    v1::SubmitResponse response;
    grpc::ClientContext context;
    SetDeadline(context, kCallTimeout);
    const grpc::Status status = stub_->Submit(&context, request, &response);
    if (status.ok()) return response.job_id();
    if (!MayReconnect(status) || attempt == kSubmitTries) {
      return Explain(status);
    }
    absl::SleepFor(kRetryDelay);
  }
}

absl::StatusOr<v1::JobUpdate> Client::Watch(
    const std::string& job_id,
    const std::function<void(const v1::JobUpdate&)>& take,
    const std::function<void(const std::string&)>& say,
    absl::Duration patience) {
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
      away_since = now;
      say(absl::StrCat("the server at ", address_,
                       " is away; waiting for it to come back"));
    }
    if (now - away_since > patience) return Explain(status);
    absl::SleepFor(kRetryDelay);
  }
}

absl::Status Client::Export(
    const std::function<bool(const std::string&)>& take) {
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
