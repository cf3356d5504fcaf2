// Sends an artifact part by part, as the worker reads them.
#include "server/services/get_artifact_call.h"

#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/status_macros.h"
#include "server/services/admit.h"
#include "server/services/long_call.h"
#include "server/services/rpc_status.h"

namespace tilefarm::services {
namespace {

class GetArtifactCall : public grpc::ServerWriteReactor<v1::ArtifactData>,
                        private LongCall {
 public:
  GetArtifactCall(Executor& executor, database::Store& store,
                  const farm::Farm& farm, security::Gate& gate,
                  const grpc::ServerContextBase& context,
                  const v1::GetArtifactRequest& request)
      : LongCall(executor), store_(store), sha256_(request.sha256()) {
    absl::Status entered = Enter(farm, gate, context, request);
    if (entered.ok() && !TryRun([this] { ReadNext(); })) {
      entered = TooManyCalls();
    }
    if (!entered.ok()) FinishOnce(entered);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return FinishOnce(absl::CancelledError("the worker went away"));
    if (sent_ == bytes_) return FinishOnce(absl::OkStatus());
    if (!TryRun([this] { ReadNext(); })) FinishOnce(TooManyCalls());
  }
  void OnCancel() override { FinishOnce(absl::CancelledError("cancelled")); }
  void OnDone() override { EndLater(); }

 private:
  absl::Status Enter(const farm::Farm& farm, security::Gate& gate,
                     const grpc::ServerContextBase& context,
                     const v1::GetArtifactRequest& request) {
    TF_ASSIGN_OR_RETURN(
        const security::Caller caller,
        Admit(gate, context, "/tilefarm.v1.Farm/GetArtifact", request));
    const std::string device =
        farm.HolderOfArtifact(request.lease_id(), sha256_);
    if (device.empty() || !gate.CheckWorkerName(caller, device).ok()) {
      return absl::NotFoundError(
          "no lease of the caller's devices names this artifact");
    }
    TF_ASSIGN_OR_RETURN(
        live_call_,
        gate.Enter(caller, security::CallKind::kTransfer,
                   [this](const absl::Status& why) { FinishOnce(why); }));
    return absl::OkStatus();
  }
  // Runs on the executor. One write is under way at a time, so the members are
  // used by one thread at a time.
  void ReadNext() {
    absl::Status read = absl::OkStatus();
    if (bytes_ < 0) {
      const auto row = store_.regression_tables().FindArtifact(sha256_);
      if (row.ok()) bytes_ = row->bytes;
      read = row.status();
    }
    if (read.ok()) {
      auto part = store_.regression_tables().ReadArtifactPart(sha256_, part_++);
      read = part.status();
      if (part.ok()) {
        sent_ += static_cast<int64_t>(part->size());
        data_.set_data(*std::move(part));
      }
    }
    if (!read.ok()) return FinishOnce(read);
    MutexLock lock(mutex_);
    if (!finished_) StartWrite(&data_);
  }
  void End() override { live_call_.reset(); }
  void FinishOnce(const absl::Status& status) {
    MutexLock lock(mutex_);
    if (finished_) return;
    finished_ = true;
    Finish(ToGrpc(status));
  }

  database::Store& store_;
  const std::string sha256_;
  std::unique_ptr<security::Gate::LiveCall> live_call_;
  v1::ArtifactData data_;
  int64_t bytes_ = -1;  // of the artifact; -1: not known yet
  int64_t sent_ = 0;
  int64_t part_ = 0;
  Mutex mutex_;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

grpc::ServerWriteReactor<v1::ArtifactData>* NewGetArtifactCall(
    Executor& executor, database::Store& store, const farm::Farm& farm,
    security::Gate& gate, const grpc::ServerContextBase& context,
    const v1::GetArtifactRequest& request) {
  return new GetArtifactCall(executor, store, farm, gate, context, request);
}

}  // namespace tilefarm::services
