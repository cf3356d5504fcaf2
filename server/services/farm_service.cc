#include "server/services/farm_service.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "server/security/rate_limiter.h"
#include "server/services/admit.h"
#include "server/services/convert.h"
#include "server/services/credentials.h"
#include "server/services/get_artifact_call.h"
#include "server/services/rpc_status.h"

namespace tilefarm::services {
namespace {

constexpr char kConnect[] = "/tilefarm.v1.Farm/Connect";

using Reactor = grpc::ServerBidiReactor<v1::WorkerMessage, v1::ServerMessage>;

// Each so many bytes of a message count as one more message.
constexpr double kBytesOfOneMessage = 16 << 10;

// So many acknowledgements are sent without waiting for another message.
constexpr int kMaxWaitingAcks = 64;

// The sending half of a stream. The farm may hold it after the stream has
// ended; it then drops what it is given. Each message costs the server a write
// and two wake-ups of threads. Acknowledgements, for which nobody waits, are
// therefore sent with the next message, which is usually the next lease.
//
// While a worker does not read what it is sent, nothing is read from it either,
// so that the queue of its messages is bounded.
class Link : public farm::WorkerLink {
 public:
  Link(Reactor* reactor, const security::Limits& limits)
      : reactor_(reactor), limits_(limits) {}

  // Sends the first message, then those that the farm has queued before it.
  void Start(v1::ServerMessage welcome) {
    MutexLock lock(mutex_);
    started_ = true;
    unsent_bytes_ += BytesOf(welcome);
    queue_.push_front(std::move(welcome));
    WriteNext();
  }

  void SendLease(const farm::Lease& lease) override {
    v1::ServerMessage message;
    *message.mutable_lease() = ToProto(lease);
    Send(std::move(message));
  }
  void SendCancel(const std::string& lease_id) override {
    v1::ServerMessage message;
    message.mutable_cancel()->set_lease_id(lease_id);
    Send(std::move(message));
  }
  void SendAck(const std::string& lease_id, bool superseded) override {
    MutexLock lock(mutex_);
    if (acks_.empty()) acks_since_ = Clock::Real().Monotonic();
    v1::Ack& ack = *acks_.Add();
    ack.set_lease_id(lease_id);
    ack.set_superseded(superseded);
    if (acks_.size() >= kMaxWaitingAcks) Enqueue({});
  }
  void FlushAcks(absl::Duration waited) override {
    MutexLock lock(mutex_);
    if (acks_.empty() || Clock::Real().Monotonic() - acks_since_ < waited) {
      return;
    }
    Enqueue({});
  }
  bool Clogged() override {
    MutexLock lock(mutex_);
    return IsClogged();
  }
  void Close(const absl::Status& why) override {
    MutexLock lock(mutex_);
    if (reactor_ == nullptr || finished_) return;
    finished_ = true;
    reactor_->Finish(ToGrpc(why));
  }

  void OnWriteDone(bool ok) {
    MutexLock lock(mutex_);
    writing_ = false;
    unsent_bytes_ -= BytesOf(queue_.front());
    queue_.pop_front();
    if (!ok) return;  // the stream is broken, and about to be cancelled
    WriteNext();
    if (reading_later_ != nullptr && !IsClogged()) {
      StartRead(std::exchange(reading_later_, nullptr));
    }
  }
  // Reads the next message, when the worker has read enough of its own
  // messages, unless the stream has ended.
  void Read(v1::WorkerMessage* message) {
    MutexLock lock(mutex_);
    if (IsClogged()) {
      reading_later_ = message;
    } else {
      StartRead(message);
    }
  }
  // The reactor is about to be destroyed.
  void Detach() {
    MutexLock lock(mutex_);
    reactor_ = nullptr;
  }

 private:
  void Send(v1::ServerMessage message) {
    MutexLock lock(mutex_);
    Enqueue(std::move(message));
  }
  void Enqueue(v1::ServerMessage message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (reactor_ == nullptr || finished_) return;
    message.mutable_acks()->Swap(&acks_);
    unsent_bytes_ += BytesOf(message);
    queue_.push_back(std::move(message));
    WriteNext();
  }
  static int64_t BytesOf(const v1::ServerMessage& message) {
    return static_cast<int64_t>(message.ByteSizeLong());
  }
  bool IsClogged() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return static_cast<int>(queue_.size()) >= limits_.unread_messages ||
           unsent_bytes_ >= limits_.unread_bytes;
  }
  void StartRead(v1::WorkerMessage* message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (reactor_ != nullptr && !finished_) reactor_->StartRead(message);
  }
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!started_ || writing_ || finished_ || queue_.empty() ||
        reactor_ == nullptr) {
      return;
    }
    writing_ = true;
    reactor_->StartWrite(&queue_.front());
  }

  Mutex mutex_;
  Reactor* reactor_ ABSL_GUARDED_BY(mutex_);
  const security::Limits limits_;
  // While writing_, the front is being written.
  std::deque<v1::ServerMessage> queue_ ABSL_GUARDED_BY(mutex_);
  int64_t unsent_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of the queue
  // The target of a read that waits for the worker; null: none waits.
  v1::WorkerMessage* reading_later_ ABSL_GUARDED_BY(mutex_) = nullptr;
  // Acknowledgements for the next message.
  google::protobuf::RepeatedPtrField<v1::Ack> acks_ ABSL_GUARDED_BY(mutex_);
  absl::Duration acks_since_ ABSL_GUARDED_BY(mutex_);  // time of the first one
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

class Stream : public Reactor {
 public:
  Stream(farm::Farm& farm, security::Gate& gate,
         const FarmServiceOptions& options,
         const security::Credentials& credentials)
      : farm_(farm),
        gate_(gate),
        options_(options),
        link_(std::make_shared<Link>(this, gate.limits())),
        rate_(gate.limits().stream_burst,
              gate.limits().stream_messages_per_second) {
    const absl::Status entered = Enter(credentials);
    if (!entered.ok()) {
      link_->Close(entered);
    } else {
      link_->Read(&message_);
    }
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      farm_.Disconnect(session_);
      link_->Close(absl::OkStatus());
      return;
    }
    const absl::Status status = Take();
    if (!status.ok()) {
      farm_.Disconnect(session_);
      link_->Close(status);
      return;
    }
    message_.Clear();
    link_->Read(&message_);
  }

  void OnWriteDone(bool ok) override { link_->OnWriteDone(ok); }

  void OnCancel() override {
    farm_.Disconnect(session_);
    link_->Close(absl::CancelledError("the stream was cancelled"));
  }

  void OnDone() override {
    farm_.Disconnect(session_);
    link_->Detach();
    delete this;
  }

 private:
  absl::Status Enter(const security::Credentials& credentials) {
    TF_ASSIGN_OR_RETURN(caller_, gate_.Identify(credentials));
    TF_ASSIGN_OR_RETURN(live_call_,
                        gate_.Enter(caller_, security::CallKind::kStream,
                                    [link = link_](const absl::Status& why) {
                                      link->Close(why);
                                    }));
    return absl::OkStatus();
  }

  absl::Status Take() {
    TF_RETURN_IF_ERROR(CheckMessage(gate_, kConnect, message_));
    const double cost = 1 + message_.ByteSizeLong() / kBytesOfOneMessage;
    if (rate_.Take("", Clock::Real().Monotonic(), cost) >
        absl::ZeroDuration()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("too many messages: a stream may bring ",
                       gate_.limits().stream_messages_per_second, " a second"));
    }
    // A message without known content is of a later protocol.
    if (message_.has_hello()) TF_RETURN_IF_ERROR(TakeHello());
    if (session_ == 0 && (message_.has_result() || message_.has_state())) {
      return absl::InvalidArgumentError("the first message must be a hello");
    }
    if (message_.has_result()) {
      TF_ASSIGN_OR_RETURN(farm::WorkerResult result,
                          FromProto(message_.result()));
      farm_.OnResult(session_, std::move(result));
    }
    if (message_.has_state()) {
      const v1::State& state = message_.state();
      farm_.OnState(session_, FromProto(state), state.draining(),
                    static_cast<int>(std::min(state.slots(), 1024u)));
    }
    return absl::OkStatus();
  }

  absl::Status TakeHello() {
    if (session_ != 0) return absl::InvalidArgumentError("a second hello");
    auto hello = FromProto(message_.hello());
    if (!hello.ok()) return hello.status();
    TF_RETURN_IF_ERROR(gate_.CheckWorkerName(caller_, hello->name));
    hello->owner = caller_.name;
    auto session = farm_.Connect(*hello, link_);
    if (!session.ok()) return session.status();
    session_ = *session;
    v1::ServerMessage message;
    v1::Welcome& welcome = *message.mutable_welcome();
    welcome.set_protocol_version(farm::kProtocolVersion);
    welcome.set_database_uuid(options_.database_uuid);
    welcome.set_server_version(options_.release);
    welcome.set_state_interval_ms(static_cast<uint32_t>(
        absl::ToInt64Milliseconds(options_.timeouts.state_interval)));
    link_->Start(std::move(message));
    return absl::OkStatus();
  }

  farm::Farm& farm_;
  security::Gate& gate_;
  const FarmServiceOptions& options_;
  const std::shared_ptr<Link> link_;
  security::Caller caller_;
  std::unique_ptr<security::Gate::LiveCall> live_call_;
  v1::WorkerMessage message_;
  security::RateLimiter rate_;
  // 0 before the hello. Written by the read of the hello. OnCancel may run at
  // the same time; OnDone, which follows every read, disconnects in any case.
  std::atomic<int64_t> session_{0};
};

}  // namespace

grpc::ServerWriteReactor<v1::ArtifactData>* FarmService::GetArtifact(
    grpc::CallbackServerContext* context,
    const v1::GetArtifactRequest* request) {
  return NewGetArtifactCall(executor_, store_, farm_, gate_, *context,
                            *request);
}

grpc::ServerBidiReactor<v1::WorkerMessage, v1::ServerMessage>*
FarmService::Connect(grpc::CallbackServerContext* context) {
  return new Stream(farm_, gate_, options_, CredentialsOf(*context));
}

}  // namespace tilefarm::services
