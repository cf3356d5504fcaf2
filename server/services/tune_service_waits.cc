// The lasting calls: Watch and Measure.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "server/services/admit.h"
#include "server/services/convert.h"
#include "server/services/long_call.h"
#include "server/services/rpc_status.h"
#include "server/services/tune_service.h"

namespace tilefarm::services {
namespace {

// Writes the latest snapshot when the client has read the previous one, and
// skips those in between.
class WatchCall : public grpc::ServerWriteReactor<v1::JobUpdate>,
                  private LongCall {
 public:
  WatchCall(Executor& executor, jobs::Jobs& jobs, farm::Farm& farm,
            security::Gate& gate, const grpc::ServerContextBase& context,
            const v1::WatchRequest& request)
      : LongCall(executor),
        jobs_(jobs),
        farm_(farm),
        job_id_(request.job_id()) {
    absl::Status entered = Enter(gate, context, request);
    if (entered.ok() && !TryRun([this] { Begin(); })) entered = TooManyCalls();
    if (entered.ok()) return;
    MutexLock lock(mutex_);
    FinishOnce(entered);
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(mutex_);
    writing_ = false;
    if (!ok) {
      FinishOnce(absl::CancelledError("the client went away"));
    } else {
      WriteNext();
    }
  }
  void OnCancel() override {
    MutexLock lock(mutex_);
    FinishOnce(absl::CancelledError("cancelled"));
  }
  void OnDone() override { EndLater(); }

 private:
  absl::Status Enter(security::Gate& gate,
                     const grpc::ServerContextBase& context,
                     const v1::WatchRequest& request) {
    TF_ASSIGN_OR_RETURN(
        const security::Caller caller,
        Admit(gate, context, "/tilefarm.v1.Tune/Watch", request));
    TF_ASSIGN_OR_RETURN(live_call_,
                        gate.Enter(caller, security::CallKind::kStream,
                                   [this](const absl::Status& why) {
                                     MutexLock lock(mutex_);
                                     FinishOnce(why);
                                   }));
    return absl::OkStatus();
  }
  void Begin() {
    const auto subscription = jobs_.Watch(
        job_id_, [this](const jobs::JobSnapshot& snapshot) { Tell(snapshot); });
    MutexLock lock(mutex_);
    if (subscription.ok()) {
      subscription_ = *subscription;
    } else {
      FinishOnce(subscription.status());
    }
  }
  void End() override {
    // Not under the lock, because it waits for a running Tell.
    if (subscription_ != 0) jobs_.Unwatch(subscription_);
    live_call_.reset();  // so that the gate does not close it any more
  }
  void Tell(const jobs::JobSnapshot& snapshot) {
    v1::JobUpdate update = ToProto(snapshot, farm_.Devices());
    MutexLock lock(mutex_);
    if (finished_) return;
    next_ = std::move(update);
    last_ = jobs::Ended(snapshot.state);
    if (!writing_) WriteNext();
  }
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (finished_) return;
    if (next_.has_value()) {
      current_ = *std::move(next_);
      next_.reset();
      writing_ = true;
      StartWrite(&current_);
    } else if (last_) {
      FinishOnce(absl::OkStatus());
    }
  }
  void FinishOnce(const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (finished_) return;
    finished_ = true;
    Finish(ToGrpc(status));
  }

  jobs::Jobs& jobs_;
  farm::Farm& farm_;
  const std::string job_id_;
  Mutex mutex_;
  std::unique_ptr<security::Gate::LiveCall> live_call_;
  int64_t subscription_ = 0;
  std::optional<v1::JobUpdate> next_ ABSL_GUARDED_BY(mutex_);
  v1::JobUpdate current_ ABSL_GUARDED_BY(mutex_);
  bool last_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

class MeasureCall : public grpc::ServerUnaryReactor, private LongCall {
 public:
  MeasureCall(Executor& executor, jobs::Jobs& jobs, security::Gate& gate,
              const grpc::ServerContextBase& context,
              const v1::MeasureRequest& request, v1::MeasureResponse* response)
      : LongCall(executor),
        jobs_(jobs),
        response_(response),
        spec_({.program = request.program(),
               .trace = request.trace(),
               .target = request.target(),
               .device = request.device()}) {
    absl::Status entered = Enter(gate, context, request);
    if (entered.ok() && !TryRun([this] { Begin(); })) entered = TooManyCalls();
    if (entered.ok()) return;
    MutexLock lock(mutex_);
    FinishOnce(entered);
  }

  void OnCancel() override {
    MutexLock lock(mutex_);
    FinishOnce(absl::CancelledError("cancelled"));
  }
  void OnDone() override { EndLater(); }

 private:
  absl::Status Enter(security::Gate& gate,
                     const grpc::ServerContextBase& context,
                     const v1::MeasureRequest& request) {
    TF_ASSIGN_OR_RETURN(
        const security::Caller caller,
        Admit(gate, context, "/tilefarm.v1.Tune/Measure", request));
    spec_.user = caller.NameOr(request.user());
    TF_ASSIGN_OR_RETURN(live_call_,
                        gate.Enter(caller, security::CallKind::kStream,
                                   [this](const absl::Status& why) {
                                     MutexLock lock(mutex_);
                                     FinishOnce(why);
                                   }));
    return absl::OkStatus();
  }
  void Begin() {
    {
      MutexLock lock(mutex_);
      if (finished_) return;
    }
    auto ticket = jobs_.Measure(
        spec_, [this](const database::Record& record) { Take(record); });
    MutexLock lock(mutex_);
    if (ticket.ok()) {
      ticket_ = *std::move(ticket);
    } else {
      FinishOnce(ticket.status());
    }
  }
  void End() override {
    if (!ticket_.empty()) jobs_.AbandonMeasure(ticket_);
    live_call_.reset();
  }
  void Take(const database::Record& record) {
    MutexLock lock(mutex_);
    if (finished_) return;
    response_->set_record_json(database::RecordToJson(record));
    FinishOnce(absl::OkStatus());
  }
  void FinishOnce(const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (finished_) return;
    finished_ = true;
    Finish(ToGrpc(status));
  }

  jobs::Jobs& jobs_;
  v1::MeasureResponse* const response_;
  jobs::MeasureSpec spec_;
  std::string ticket_;
  Mutex mutex_;
  std::unique_ptr<security::Gate::LiveCall> live_call_;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

grpc::ServerWriteReactor<v1::JobUpdate>* TuneService::Watch(
    grpc::CallbackServerContext* context, const v1::WatchRequest* request) {
  return new WatchCall(executor_, jobs_, farm_, gate_, *context, *request);
}

grpc::ServerUnaryReactor* TuneService::Measure(
    grpc::CallbackServerContext* context, const v1::MeasureRequest* request,
    v1::MeasureResponse* response) {
  return new MeasureCall(executor_, jobs_, gate_, *context, *request, response);
}

}  // namespace tilefarm::services
