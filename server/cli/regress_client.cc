#include "server/cli/regress_client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "server/cli/call_limits_internal.h"
#include "server/cli/commands.h"
#include "server/services/rpc_status.h"
#include "transport/channel.h"
#include "transport/diagnose.h"

namespace tilefarm::cli {
namespace {

constexpr absl::Duration kTransferTimeout = absl::Minutes(10);
// A call that lasted so long was served.
constexpr absl::Duration kServed = absl::Seconds(10);
// How long a server is waited for before it has answered once, and afterwards.
constexpr absl::Duration kFirstPatience = absl::Seconds(8);
constexpr absl::Duration kPatience = absl::Minutes(2);
constexpr size_t kPartBytes = 512 << 10;

// Whether a later call may succeed.
bool MayTryAgain(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE ||
         status.error_code() == grpc::StatusCode::ABORTED;
}

// Cancels a call where nothing has come for a while.
class Watchdog {
 public:
  Watchdog(grpc::ClientContext& context, absl::Duration silence)
      : silence_(silence), thread_([this, &context] {
          MutexLock lock(mutex_);
          while (!ended_) {
            const absl::Duration left =
                heard_ + silence_ - Clock::Real().Monotonic();
            if (left <= absl::ZeroDuration()) {
              barked_ = true;
              context.TryCancel();
              return;
            }
            changed_.WaitFor(mutex_, left);
          }
        }) {}
  ~Watchdog() {
    {
      MutexLock lock(mutex_);
      ended_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
  }
  void Hear() {
    MutexLock lock(mutex_);
    heard_ = Clock::Real().Monotonic();
  }
  bool barked() {
    MutexLock lock(mutex_);
    return barked_;
  }

 private:
  const absl::Duration silence_;
  Mutex mutex_;
  CondVar changed_;
  absl::Duration heard_ ABSL_GUARDED_BY(mutex_) = Clock::Real().Monotonic();
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool barked_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace

RegressClient::RegressClient(const transport::Endpoint& endpoint,
                             std::function<void(const std::string&)> say)
    : endpoint_(endpoint), say_(std::move(say)), patience_(kFirstPatience) {
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
  if (channel.ok()) stub_ = v1::Regression::NewStub(*channel);
}

absl::Status RegressClient::Explain(const grpc::Status& status) const {
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the server at ", endpoint_.address,
        " is older than this tune and knows no regression tracking"));
  }
  if (!MayTryAgain(status)) return services::FromGrpc(status);
  const absl::Status found = transport::Diagnose(endpoint_);
  if (!found.ok()) return found;
  return absl::UnavailableError(absl::StrCat("cannot reach the server at ",
                                             endpoint_.address, ": ",
                                             status.error_message()));
}

absl::Status RegressClient::Patiently(
    const std::function<grpc::Status()>& call) {
  if (!opened_.ok()) return opened_;
  std::optional<absl::Duration> away_since;
  while (true) {
    const absl::Duration began = Clock::Real().Monotonic();
    const grpc::Status status = call();
    if (status.ok()) {
      patience_ = kPatience;
      return absl::OkStatus();
    }
    if (!MayTryAgain(status)) return Explain(status);
    const absl::Duration now = Clock::Real().Monotonic();
    // The server was there meanwhile.
    if (now - began > kServed) away_since.reset();
    if (!away_since.has_value()) {
      // Waiting does not mend credentials.
      TF_RETURN_IF_ERROR(transport::Diagnose(endpoint_));
      away_since = now;
      say_(absl::StrCat("the server at ", endpoint_.address,
                        " is away; waiting for it"));
    }
    if (now - *away_since >= patience_) {
      patience_ = absl::ZeroDuration();
      return Explain(status);
    }
    absl::SleepFor(kRetryDelay);
  }
}

absl::Status RegressClient::PutArtifact(
    const std::string& bytes, const std::string& sha256,
    const std::string& target, const std::vector<std::string>& symbols) {
  return Patiently([&] {
    grpc::ClientContext context;
    SetDeadline(context, kTransferTimeout);
    v1::PutArtifactResponse response;
    const auto writer = stub_->PutArtifact(&context, &response);
    v1::ArtifactPart part;
    v1::ArtifactHeader& header = *part.mutable_header();
    header.set_sha256(sha256);
    header.set_bytes(bytes.size());
    header.set_target(target);
    for (const std::string& symbol : symbols) header.add_symbols(symbol);
    header.set_user(UserName());
    // A write fails where the server has answered already.
    bool writes = writer->Write(part);
    for (size_t at = 0; writes && at < bytes.size(); at += kPartBytes) {
      part.Clear();
      part.set_data(bytes.substr(at, kPartBytes));
      writes = writer->Write(part);
    }
    writer->WritesDone();
    return writer->Finish();
  });
}

absl::StatusOr<v1::FindDevicesResponse> RegressClient::FindDevices(
    const v1::FindDevicesRequest& request) {
  v1::FindDevicesResponse response;
  TF_RETURN_IF_ERROR(Patiently([&] {
    response.Clear();
    grpc::ClientContext context;
    SetDeadline(context, kCallTimeout);
    return stub_->FindDevices(&context, request, &response);
  }));
  return response;
}

absl::Status RegressClient::Compare(
    const v1::CompareRequest& request, absl::Duration silence,
    const std::function<void(const v1::CompareUpdate&)>& take) {
  std::set<int> missing;
  for (int i = 0; i < request.candidate_first_size(); ++i) missing.insert(i);
  bool silent = false;
  const absl::Status status = Patiently([&] {
    v1::CompareRequest rest = request;
    rest.clear_candidate_first();
    std::vector<int> asked(missing.begin(), missing.end());
    for (const int index : asked) {
      rest.add_candidate_first(request.candidate_first(index));
    }
    grpc::ClientContext context;
    const auto reader = stub_->Compare(&context, rest);
    grpc::Status ended;
    {
      Watchdog watchdog(context, silence);
      v1::CompareUpdate update;
      while (reader->Read(&update)) {
        watchdog.Hear();
        if (update.cluster() >= asked.size()) continue;
        const int index = asked[update.cluster()];
        if (missing.erase(index) == 0) continue;
        update.set_cluster(static_cast<uint32_t>(index));
        take(update);
      }
      ended = reader->Finish();
      silent = watchdog.barked();
    }
    if (silent || missing.empty()) return grpc::Status::OK;
    if (ended.ok()) {
      return grpc::Status(grpc::StatusCode::INTERNAL,
                          "the server left out some clusters");
    }
    // A server that stops cancels its calls.
    if (ended.error_code() == grpc::StatusCode::CANCELLED) {
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, ended.error_message());
    }
    return ended;
  });
  if (!status.ok()) return status;
  if (!silent || missing.empty()) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat("device ", request.device(), " did not answer for ",
                   absl::FormatDuration(silence)));
}

absl::Status RegressClient::AppendPoints(v1::AppendPointsRequest request) {
  request.set_user(UserName());
  return Patiently([&] {
    grpc::ClientContext context;
    SetDeadline(context, kCallTimeout);
    v1::AppendPointsResponse response;
    return stub_->AppendPoints(&context, request, &response);
  });
}

absl::StatusOr<History> RegressClient::ReadHistory(
    const v1::ReadHistoryRequest& request) {
  History history;
  TF_RETURN_IF_ERROR(Patiently([&] {
    history = {};
    grpc::ClientContext context;
    SetDeadline(context, kTransferTimeout);
    const auto reader = stub_->ReadHistory(&context, request);
    v1::HistoryEntry entry;
    while (reader->Read(&entry)) {
      if (entry.has_point()) {
        history.points.push_back(std::move(*entry.mutable_point()));
      } else if (entry.has_acknowledgement()) {
        history.acknowledgements.push_back(
            std::move(*entry.mutable_acknowledgement()));
      }
    }
    return reader->Finish();
  }));
  return history;
}

absl::Status RegressClient::Acknowledge(const v1::AcknowledgeRequest& request) {
  return Patiently([&] {
    grpc::ClientContext context;
    SetDeadline(context, kCallTimeout);
    v1::AcknowledgeResponse response;
    return stub_->Acknowledge(&context, request, &response);
  });
}

}  // namespace tilefarm::cli
