// A farm for tests, on a real port: sends messages as instructed and records
// those it receives.
#ifndef TILEFARM_TESTS_WORKER_FAKE_FARM_H_
#define TILEFARM_TESTS_WORKER_FAKE_FARM_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "proto/tilefarm/v1/farm.grpc.pb.h"
#include "proto/tilefarm/v1/protocol_version.h"
#include "tests/support/until.h"

namespace tilefarm::worker {

class FakeFarm : public v1::Farm::Service {
 public:
  ~FakeFarm() override { Stop(); }

  // Listens on `address`, by default a free port of the loopback interface.
  void Start(const std::string& address = "127.0.0.1:0") {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    if (address_.empty()) address_ = "127.0.0.1:" + std::to_string(port);
  }
  // Breaks the streams.
  void Stop() {
    if (server_ == nullptr) return;
    server_->Shutdown(absl::ToChronoTime(absl::Now()));
    server_ = nullptr;
  }
  void Restart() {
    Stop();
    Start(address_);
  }
  const std::string& address() const { return address_; }

  void set_acknowledges(bool value) {
    MutexLock lock(mutex_);
    acknowledges_ = value;
  }
  void set_database_uuid(const std::string& uuid) {
    MutexLock lock(mutex_);
    database_uuid_ = uuid;
  }

  bool Send(const v1::ServerMessage& message) {
    MutexLock lock(mutex_);
    return stream_ != nullptr && stream_->Write(message);
  }
  void SendLease(const v1::Lease& lease) {
    v1::ServerMessage message;
    *message.mutable_lease() = lease;
    Send(message);
  }
  void SendAck(const std::string& lease_id) {
    v1::ServerMessage message;
    message.add_acks()->set_lease_id(lease_id);
    Send(message);
  }

  // False if the condition does not become true within 20 s.
  bool Await(const std::function<bool()>& condition) {
    return Until(condition, absl::Seconds(20));
  }
  bool AwaitHellos(size_t count) {
    return Await([=, this] { return hellos().size() >= count; });
  }
  bool AwaitResult(const std::string& lease_id, int times = 1) {
    return Await([=, this] {
      MutexLock lock(mutex_);
      return times_[lease_id] >= times;
    });
  }

  std::vector<v1::Hello> hellos() {
    MutexLock lock(mutex_);
    return hellos_;
  }
  v1::State last_state() {
    MutexLock lock(mutex_);
    return last_state_;
  }
  v1::Result result(const std::string& lease_id) {
    MutexLock lock(mutex_);
    return results_[lease_id];
  }
  size_t results() {
    MutexLock lock(mutex_);
    return results_.size();
  }
  // The phase of the lease in the worker's last state; UNSPECIFIED if the state
  // does not have the lease.
  v1::LeasePhase phase(const std::string& lease_id) {
    MutexLock lock(mutex_);
    for (const v1::State::Held& held : last_state_.held()) {
      if (held.lease_id() == lease_id) return held.phase();
    }
    return v1::LEASE_PHASE_UNSPECIFIED;
  }

 private:
  using Stream = grpc::ServerReaderWriter<v1::ServerMessage, v1::WorkerMessage>;

  grpc::Status Connect(grpc::ServerContext*, Stream* stream) override {
    v1::WorkerMessage message;
    if (!stream->Read(&message) || !message.has_hello()) {
      return grpc::Status::CANCELLED;
    }
    {
      MutexLock lock(mutex_);
      hellos_.push_back(message.hello());
      v1::ServerMessage welcome;
      welcome.mutable_welcome()->set_protocol_version(v1::kProtocolVersion);
      welcome.mutable_welcome()->set_database_uuid(database_uuid_);
      welcome.mutable_welcome()->set_state_interval_ms(100);
      stream->Write(welcome);
      stream_ = stream;
    }
    while (stream->Read(&message)) Take(message, stream);
    MutexLock lock(mutex_);
    if (stream_ == stream) stream_ = nullptr;
    return grpc::Status::OK;
  }

  void Take(const v1::WorkerMessage& message, Stream* stream) {
    MutexLock lock(mutex_);
    if (message.has_state()) last_state_ = message.state();
    if (!message.has_result()) return;
    const std::string& lease_id = message.result().lease_id();
    results_[lease_id] = message.result();
    ++times_[lease_id];
    if (!acknowledges_) return;
    v1::ServerMessage ack;
    ack.add_acks()->set_lease_id(lease_id);
    stream->Write(ack);
  }

  Mutex mutex_;
  Stream* stream_ = nullptr;
  bool acknowledges_ = true;
  std::string database_uuid_ = "11111111-aaaa";
  std::vector<v1::Hello> hellos_;
  v1::State last_state_;
  std::map<std::string, v1::Result> results_;
  std::map<std::string, int> times_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_TESTS_WORKER_FAKE_FARM_H_
