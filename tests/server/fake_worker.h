// Workers without a connection, for tests of farm and jobs.
#ifndef TILEFARM_TESTS_SERVER_FAKE_WORKER_H_
#define TILEFARM_TESTS_SERVER_FAKE_WORKER_H_

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "server/farm/farm.h"

namespace tilefarm::testing {

inline constexpr char kFingerprint[] = "llvm-19.1.7+tf1";

inline target::Target TestTarget(int cores = 4) {
  return *target::Parse("x86-64:znver4,cores=" + std::to_string(cores));
}

inline farm::WorkerHello TestHello(const std::string& name,
                                   const std::string& boot_id = "boot-1") {
  farm::WorkerHello hello;
  hello.protocol_version = farm::kProtocolVersion;
  hello.name = name;
  hello.boot_id = boot_id;
  hello.fingerprint = kFingerprint;
  hello.device.target = TestTarget().Key();
  hello.device.cpu = "znver4";
  hello.device.brand = "Test Processor";
  hello.device.cores = 4;
  hello.device.l1_bytes = 48 << 10;
  hello.device.l2_bytes = 2 << 20;
  hello.device.l3_bytes = 96 << 20;
  return hello;
}

// Records the messages that the farm sends.
class FakeLink : public farm::WorkerLink {
 public:
  void SendLease(const farm::Lease& lease) override {
    MutexLock lock(mutex_);
    leases_.push_back(lease);
    changed_.NotifyAll();
  }
  void SendCancel(const std::string& lease_id) override {
    MutexLock lock(mutex_);
    cancelled_.push_back(lease_id);
  }
  void SendAck(const std::string& lease_id, bool superseded) override {
    MutexLock lock(mutex_);
    acks_.emplace_back(lease_id, superseded);
  }
  void FlushAcks(absl::Duration waited) override {
    MutexLock lock(mutex_);
    flushes_.push_back(waited);
  }
  bool Clogged() override {
    MutexLock lock(mutex_);
    return clogged_;
  }
  void SetClogged(bool clogged) {
    MutexLock lock(mutex_);
    clogged_ = clogged;
  }
  void Close(const absl::Status& why) override {
    MutexLock lock(mutex_);
    closed_ = why;
    changed_.NotifyAll();
  }

  std::vector<farm::Lease> leases() {
    MutexLock lock(mutex_);
    return {leases_.begin(), leases_.end()};
  }
  std::vector<std::string> cancelled() {
    MutexLock lock(mutex_);
    return cancelled_;
  }
  std::vector<std::pair<std::string, bool>> acks() {
    MutexLock lock(mutex_);
    return acks_;
  }
  // The arguments of all calls of FlushAcks.
  std::vector<absl::Duration> flushes() {
    MutexLock lock(mutex_);
    return flushes_;
  }
  std::optional<absl::Status> closed() {
    MutexLock lock(mutex_);
    return closed_;
  }
  // Each lease once, in order; nullopt once `stop` is set.
  std::optional<farm::Lease> Take(const std::atomic<bool>& stop) {
    MutexLock lock(mutex_);
    while (next_ == leases_.size()) {
      if (stop || closed_.has_value()) return std::nullopt;
      changed_.WaitFor(mutex_, absl::Milliseconds(20));
    }
    return leases_[next_++];
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::deque<farm::Lease> leases_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> cancelled_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<std::string, bool>> acks_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::Duration> flushes_ ABSL_GUARDED_BY(mutex_);
  bool clogged_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> closed_ ABSL_GUARDED_BY(mutex_);
};

inline farm::Measurement Measured(double seconds) {
  farm::Measurement measured;
  measured.status = database::Status::kOk;
  measured.seconds = {seconds, seconds, seconds};
  measured.median_seconds = seconds;
  measured.verified = true;
  measured.fingerprint = kFingerprint;
  return measured;
}

// Measures every lease at once, in a thread of its own.
class FakeWorker {
 public:
  using Measure =
      std::function<std::optional<farm::Measurement>(const farm::Lease& lease)>;

  // `measure` returns nullopt to send no result.
  FakeWorker(farm::Farm& farm, const std::string& name, Measure measure,
             int slots = 2)
      : FakeWorker(farm, TestHello(name), std::move(measure), slots) {}
  FakeWorker(farm::Farm& farm, const farm::WorkerHello& hello, Measure measure,
             int slots = 2)
      : farm_(farm), link_(std::make_shared<FakeLink>()) {
    session_ = *farm_.Connect(hello, link_);
    farm_.OnState(session_, {}, /*draining=*/false, slots);
    thread_ = std::thread([this, measure = std::move(measure)] {
      while (auto lease = link_->Take(stop_)) {
        auto measured = measure(*lease);
        if (!measured.has_value()) continue;
        farm_.OnResult(session_, {.lease_id = lease->lease_id,
                                  .attempt = lease->attempt,
                                  .candidate_id = lease->item.candidate_id,
                                  .measurement = *std::move(measured)});
      }
    });
  }
  ~FakeWorker() {
    stop_ = true;
    thread_.join();
    farm_.Disconnect(session_);
  }
  FakeLink& link() { return *link_; }

 private:
  farm::Farm& farm_;
  std::shared_ptr<FakeLink> link_;
  int64_t session_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_SERVER_FAKE_WORKER_H_
