#include "worker/artifact_fetcher.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "proto/tilefarm/v1/farm.grpc.pb.h"
#include "transport/channel.h"

namespace tilefarm::worker {
namespace {

constexpr int kMaxPartBytes = 4 << 20;
// The pause before another attempt, doubled each time.
constexpr absl::Duration kFirstPause = absl::Milliseconds(200);

absl::Duration Now() { return Clock::Real().Monotonic(); }

bool MayTryAgain(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsAborted(status) ||
         absl::IsResourceExhausted(status);
}

}  // namespace

absl::StatusOr<std::string> ArtifactFetcher::Fetch(
    const std::string& lease_id, const v1::ComparedArtifact& artifact,
    absl::Duration limit) {
  const absl::Duration end = Now() + limit;
  for (absl::Duration pause = kFirstPause;; pause *= 2) {
    absl::StatusOr<std::string> bytes =
        FetchOnce(lease_id, artifact, end - Now());
    if (bytes.ok() || !MayTryAgain(bytes.status()) || Now() + pause >= end) {
      return bytes;
    }
    MutexLock lock(mutex_);
    const absl::Duration until = Now() + pause;
    while (!ended_ && Now() < until) changed_.WaitFor(mutex_, until - Now());
    if (ended_) return absl::CancelledError("the worker ends");
  }
}

absl::StatusOr<std::string> ArtifactFetcher::FetchOnce(
    const std::string& lease_id, const v1::ComparedArtifact& artifact,
    absl::Duration limit) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxPartBytes);
  const auto channel = transport::OpenChannel(server_, arguments);
  if (!channel.ok()) return channel.status();
  const auto stub = v1::Farm::NewStub(*channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       absl::ToChronoMilliseconds(limit));
  {
    MutexLock lock(mutex_);
    if (ended_) return absl::CancelledError("the worker ends");
    calls_.insert(&context);
  }
  v1::GetArtifactRequest request;
  request.set_lease_id(lease_id);
  request.set_sha256(artifact.sha256());
  const auto reader = stub->GetArtifact(&context, request);
  std::string bytes;
  v1::ArtifactData data;
  bool too_many = false;
  while (!too_many && reader->Read(&data)) {
    too_many = data.data().size() > artifact.bytes() - bytes.size();
    if (!too_many) bytes.append(data.data());
  }
  if (too_many) context.TryCancel();
  const grpc::Status status = reader->Finish();
  {
    MutexLock lock(mutex_);
    calls_.erase(&context);
  }
  if (too_many) {
    return absl::DataLossError(absl::StrCat("the artifact has more than the ",
                                            artifact.bytes(),
                                            " bytes announced"));
  }
  if (!status.ok()) {
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                        status.error_message());
  }
  return bytes;
}

void ArtifactFetcher::Shutdown() {
  MutexLock lock(mutex_);
  ended_ = true;
  for (grpc::ClientContext* call : calls_) call->TryCancel();
  changed_.NotifyAll();
}

}  // namespace tilefarm::worker
