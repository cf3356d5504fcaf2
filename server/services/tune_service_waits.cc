// The calls that wait: Watch and Measure.
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "server/services/admit.h"
#include "server/services/convert.h"
#include "server/services/rpc_status.h"
#include "server/services/tune_service.h"

namespace tilefarm::services {
namespace {

// Writes the latest snapshot whenever the client has taken the one before;
// what changed in between is skipped.
class WatchCall : public grpc::ServerWriteReactor<v1::JobUpdate> {
 public:
  WatchCall(jobs::Jobs& jobs, farm::Farm& farm, security::Gate& gate,
            const grpc::ServerContextBase& context,
            const v1::WatchRequest& request)
      : jobs_(jobs), farm_(farm) {
    const absl::Status entered = Enter(gate, context, request);
    if (!entered.ok()) {
      MutexLock lock(mutex_);
      FinishOnce(entered);
      return;
    }
    const std::string& job_id = request.job_id();
    const auto subscription = jobs_.Watch(
        job_id, [this](const jobs::JobSnapshot& snapshot) { Tell(snapshot); });
    MutexLock lock(mutex_);
    if (subscription.ok()) {
      subscription_ = *subscription;
    } else {
      FinishOnce(subscription.status());
    }
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
  void OnDone() override {
    // Not under the lock: it waits for a running Tell.
    if (subscription_ != 0) jobs_.Unwatch(subscription_);
    stay_.reset();  // nobody closes what is being destroyed
    delete this;
  }

 private:
  absl::Status Enter(security::Gate& gate,
                     const grpc::ServerContextBase& context,
                     const v1::WatchRequest& request) {
    TF_ASSIGN_OR_RETURN(
        const security::Caller caller,
        Admit(gate, context, "/tilefarm.v1.Tune/Watch", request));
    TF_ASSIGN_OR_RETURN(stay_, gate.Enter(caller, security::CallKind::kStream,
                                          [this](const absl::Status& why) {
                                            MutexLock lock(mutex_);
                                            FinishOnce(why);
                                          }));
    return absl::OkStatus();
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
  Mutex mutex_;
  std::unique_ptr<security::Gate::Stay> stay_;
  int64_t subscription_ = 0;
  std::optional<v1::JobUpdate> next_ ABSL_GUARDED_BY(mutex_);
  v1::JobUpdate current_ ABSL_GUARDED_BY(mutex_);
  bool last_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

class MeasureCall : public grpc::ServerUnaryReactor {
 public:
  MeasureCall(jobs::Jobs& jobs, security::Gate& gate,
              const grpc::ServerContextBase& context,
              const v1::MeasureRequest& request, v1::MeasureResponse* response)
      : jobs_(jobs), response_(response) {
    const absl::Status entered = Enter(gate, context, request);
    if (!entered.ok()) {
      MutexLock lock(mutex_);
      FinishOnce(entered);
      return;
    }
    auto ticket =
        jobs_.Measure({.program = request.program(),
                       .trace = request.trace(),
                       .target = request.target(),
                       .device = request.device(),
                       .user = user_},
                      [this](const database::Record& record) { Take(record); });
    MutexLock lock(mutex_);
    if (ticket.ok()) {
      ticket_ = *std::move(ticket);
    } else {
      FinishOnce(ticket.status());
    }
  }

  void OnCancel() override {
    MutexLock lock(mutex_);
    FinishOnce(absl::CancelledError("cancelled"));
  }
  void OnDone() override {
    if (!ticket_.empty()) jobs_.AbandonMeasure(ticket_);
    stay_.reset();
    delete this;
  }

 private:
  absl::Status Enter(security::Gate& gate,
                     const grpc::ServerContextBase& context,
                     const v1::MeasureRequest& request) {
    TF_ASSIGN_OR_RETURN(
        const security::Caller caller,
        Admit(gate, context, "/tilefarm.v1.Tune/Measure", request));
    user_ = caller.NameOr(request.user());
    TF_ASSIGN_OR_RETURN(stay_, gate.Enter(caller, security::CallKind::kStream,
                                          [this](const absl::Status& why) {
                                            MutexLock lock(mutex_);
                                            FinishOnce(why);
                                          }));
    return absl::OkStatus();
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
  std::string user_;
  std::string ticket_;
  Mutex mutex_;
  std::unique_ptr<security::Gate::Stay> stay_;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

grpc::ServerWriteReactor<v1::JobUpdate>* TuneService::Watch(
    grpc::CallbackServerContext* context, const v1::WatchRequest* request) {
  return new WatchCall(jobs_, farm_, gate_, *context, *request);
}

grpc::ServerUnaryReactor* TuneService::Measure(
    grpc::CallbackServerContext* context, const v1::MeasureRequest* request,
    v1::MeasureResponse* response) {
  return new MeasureCall(jobs_, gate_, *context, *request, response);
}

}  // namespace tilefarm::services
