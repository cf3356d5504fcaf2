#include "server/services/compare_call.h"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status_macros.h"
#include "server/services/admit.h"
#include "server/services/long_call.h"
#include "server/services/rpc_status.h"

namespace tilefarm::services {
namespace {

jobs::CompareSpec CompareSpecOf(const v1::CompareRequest& request) {
  const auto side = [](const v1::CompareRequest::Side& in) {
    return jobs::CompareSpec::Side{
        .sha256 = in.sha256(), .symbol = in.symbol(), .spread = in.spread()};
  };
  std::optional<farm::ModelSignature> model;
  if (request.has_model()) {
    model.emplace();
    const auto take = [](const auto& from,
                         std::vector<farm::ModelSignature::Tensor>& to) {
      for (const v1::ModelSignature::Tensor& tensor : from) {
        // Beyond 2^62 it becomes negative, and is refused.
        to.push_back({.dtype = tensor.dtype(),
                      .elements = static_cast<int64_t>(tensor.elements())});
      }
    };
    take(request.model().inputs(), model->inputs);
    take(request.model().outputs(), model->outputs);
  }
  return {.program = request.program(),
          .model = std::move(model),
          .target = request.target(),
          .baseline = side(request.baseline()),
          .candidate = side(request.candidate()),
          .device = request.device(),
          .requirements = {request.requirements().begin(),
                           request.requirements().end()},
          .user = request.user(),
          .candidate_first = {request.candidate_first().begin(),
                              request.candidate_first().end()},
          .sample = absl::Microseconds(request.sample_us()),
          .cluster = absl::Milliseconds(request.cluster_ms()),
          .fewest_rounds = static_cast<int>(request.fewest_rounds()),
          .most_rounds = static_cast<int>(request.most_rounds()),
          .flush_cache = request.flush_cache()};
}

v1::CompareUpdate CompareUpdateOf(jobs::ClusterResult result) {
  v1::CompareUpdate update;
  const farm::Measurement& measured = result.measurement;
  update.set_cluster(static_cast<uint32_t>(result.cluster));
  update.set_device(result.device);
  update.set_status(std::string(database::StatusName(measured.status)));
  update.set_error(measured.error);
  update.set_unsteady(result.unsteady);
  update.set_isolation(measured.isolation);
  update.set_device_state(measured.device_state);
  if (!measured.compared.has_value()) return update;
  const farm::ComparedPairs& pairs = *measured.compared;
  update.set_failed_side(pairs.failed_side);
  update.mutable_baseline_seconds()->Add(pairs.baseline_seconds.begin(),
                                         pairs.baseline_seconds.end());
  update.mutable_candidate_seconds()->Add(pairs.candidate_seconds.begin(),
                                          pairs.candidate_seconds.end());
  update.set_canary_seconds(pairs.canary_seconds);
  update.set_device_seconds(pairs.device_seconds);
  return update;
}

class CompareCall : public grpc::ServerWriteReactor<v1::CompareUpdate>,
                    private LongCall {
 public:
  CompareCall(Executor& executor, jobs::Comparisons& comparisons,
              security::Gate& gate, const grpc::ServerContextBase& context,
              const v1::CompareRequest& request)
      : LongCall(executor),
        comparisons_(comparisons),
        spec_(CompareSpecOf(request)),
        left_(spec_.candidate_first.size()) {
    absl::Status entered = Enter(gate, context, request);
    if (entered.ok() && !TryRun([this] { Begin(); })) entered = TooManyCalls();
    if (!entered.ok()) FinishOnce(entered);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return FinishOnce(absl::CancelledError("the client went away"));
    MutexLock lock(mutex_);
    writing_ = false;
    WriteNext();
  }
  void OnCancel() override { FinishOnce(absl::CancelledError("cancelled")); }
  void OnDone() override { EndLater(); }

 private:
  absl::Status Enter(security::Gate& gate,
                     const grpc::ServerContextBase& context,
                     const v1::CompareRequest& request) {
    TF_ASSIGN_OR_RETURN(
        const security::Caller caller,
        Admit(gate, context, "/tilefarm.v1.Regression/Compare", request));
    spec_.user = caller.NameOr(request.user());
    TF_ASSIGN_OR_RETURN(
        live_call_,
        gate.Enter(caller, security::CallKind::kStream,
                   [this](const absl::Status& why) { FinishOnce(why); }));
    return absl::OkStatus();
  }
  void Begin() {
    auto ticket = comparisons_.Start(spec_, [this](jobs::ClusterResult result) {
      Take(CompareUpdateOf(std::move(result)));
    });
    if (!ticket.ok()) return FinishOnce(ticket.status());
    MutexLock lock(mutex_);
    ticket_ = *std::move(ticket);
  }
  void Take(v1::CompareUpdate update) {
    MutexLock lock(mutex_);
    if (finished_) return;
    updates_.push_back(std::move(update));
    if (!writing_) WriteNext();
  }
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (finished_) return;
    if (left_ == 0) {
      finished_ = true;
      Finish(grpc::Status::OK);
    } else if (!updates_.empty()) {
      current_ = std::move(updates_.front());
      updates_.pop_front();
      --left_;
      writing_ = true;
      StartWrite(&current_);
    }
  }
  void End() override {
    std::string ticket;
    {
      MutexLock lock(mutex_);
      ticket = ticket_;
    }
    // Not under the lock, because it waits for a running Take.
    if (!ticket.empty()) comparisons_.Abandon(ticket);
    live_call_.reset();
  }
  void FinishOnce(const absl::Status& status) {
    MutexLock lock(mutex_);
    if (finished_) return;
    finished_ = true;
    Finish(ToGrpc(status));
  }

  jobs::Comparisons& comparisons_;
  jobs::CompareSpec spec_;
  std::unique_ptr<security::Gate::LiveCall> live_call_;
  Mutex mutex_;
  std::string ticket_ ABSL_GUARDED_BY(mutex_);
  std::deque<v1::CompareUpdate> updates_ ABSL_GUARDED_BY(mutex_);
  v1::CompareUpdate current_ ABSL_GUARDED_BY(mutex_);
  size_t left_ ABSL_GUARDED_BY(mutex_);  // updates that are not written yet
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

grpc::ServerWriteReactor<v1::CompareUpdate>* NewCompareCall(
    Executor& executor, jobs::Comparisons& comparisons, security::Gate& gate,
    const grpc::ServerContextBase& context, const v1::CompareRequest& request) {
  return new CompareCall(executor, comparisons, gate, context, request);
}

}  // namespace tilefarm::services
