#include "tests/perf/farm_load/fleet.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <queue>
#include <sstream>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mutex.h"
#include "base/rng.h"
#include "proto/tilefarm/v1/farm.grpc.pb.h"
#include "proto/tilefarm/v1/protocol_version.h"

namespace tilefarm::load {
namespace {

// The time of canaries and candidates: plausible and without drift.
constexpr double kSeconds = 1e-3;
// As in the real worker.
constexpr absl::Duration kStateDelay = absl::Milliseconds(250);

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

absl::Duration Now() { return Clock::Real().Monotonic(); }

// Candidate ids of jobs, and of the unscheduled program, are digests; only the
// former are requested several times here. Ids of canaries have another form.
bool IsCanary(const std::string& candidate_id) {
  return candidate_id.rfind("canary-", 0) == 0;
}

void FillMeasurement(const std::string& candidate_id,
                     const std::string& fingerprint, v1::Measurement& out) {
  out.set_status("ok");
  // Some spread, so that records differ and few are the best so far.
  const double seconds =
      IsCanary(candidate_id)
          ? kSeconds
          : kSeconds *
                (1 +
                 static_cast<double>(Sha256Prefix(candidate_id) % 4096) / 4096);
  for (int i = 0; i < 5; ++i) out.add_seconds(seconds * (1 + 0.01 * i));
  out.set_median_seconds(seconds * 1.02);
  out.set_ci_low_seconds(seconds);
  out.set_ci_high_seconds(seconds * 1.04);
  out.set_verified(true);
  out.set_max_abs_error(1e-6);
  out.set_max_rel_error(2e-6);
  out.set_compile_seconds(0.04);
  out.set_isolation("seccomp");
  out.set_device_state(
      "{\"clock_mhz\":3700,\"temperature_c\":51.5,\"involuntary_switches\":0}");
  out.set_code_digest(Sha256Hex(candidate_id));
  out.set_cores(1);
  out.set_fingerprint(fingerprint);
  out.set_layout("as_stated");
}

}  // namespace

struct Fleet::Shared {
  std::atomic<bool> window = false;
  std::atomic<bool> stopped = false;  // no more results
  std::atomic<bool> closing = false;
  std::atomic<int64_t> welcomed = 0, results = 0, acks = 0, ended = 0;
  std::atomic<int64_t> window_acks = 0;
  Mutex mutex;
  std::string why ABSL_GUARDED_BY(mutex);
};

// Wakes workers at set times.
class Fleet::Timer {
 public:
  using Wake = std::function<void()>;

  Timer() : thread_([this] { Main(); }) {}
  ~Timer() {
    {
      MutexLock lock(mutex_);
      ending_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
  }
  void At(absl::Duration time, Wake wake) {
    MutexLock lock(mutex_);
    const bool first = queue_.empty() || time < queue_.top().time;
    queue_.push({time, next_++, std::move(wake)});
    if (first) changed_.NotifyAll();
  }

 private:
  struct Entry {
    absl::Duration time;
    int64_t order;
    Wake wake;
    bool operator<(const Entry& other) const {
      return std::pair(time, order) > std::pair(other.time, other.order);
    }
  };

  void Main() {
    while (true) {
      Wake wake;
      {
        MutexLock lock(mutex_);
        while (true) {
          if (ending_) return;
          if (queue_.empty()) {
            changed_.Wait(mutex_);
            continue;
          }
          const absl::Duration left = queue_.top().time - Now();
          if (left <= absl::ZeroDuration()) break;
          changed_.WaitFor(mutex_, left);
        }
        wake = queue_.top().wake;
        queue_.pop();
      }
      wake();
    }
  }

  Mutex mutex_;
  CondVar changed_;
  std::priority_queue<Entry> queue_ ABSL_GUARDED_BY(mutex_);
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

class Fleet::Worker
    : public grpc::ClientBidiReactor<v1::WorkerMessage, v1::ServerMessage> {
 public:
  Worker(const FleetOptions& options, Shared& shared, Timer& timer, int index,
         const std::shared_ptr<grpc::ChannelCredentials>& credentials)
      : options_(options),
        shared_(shared),
        timer_(timer),
        rng_(static_cast<uint64_t>(index)) {
    name_ = absl::StrFormat("%s.%04d", options.name, index);
    grpc::ChannelArguments arguments;
    // Otherwise channels to one address would share a connection.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    channel_ =
        grpc::CreateCustomChannel(options.server, credentials, arguments);
    stub_ = v1::Farm::NewStub(channel_);
  }

  void Dial() {
    stub_->async()->Connect(&context_, this);
    {
      MutexLock lock(mutex_);
      v1::Hello& hello = *out_.emplace_back().mutable_hello();
      hello.set_protocol_version(v1::kProtocolVersion);
      hello.set_name(name_);
      hello.set_boot_id(Sha256Hex(name_).substr(0, 32));
      hello.set_fingerprint(options_.fingerprint);
      v1::DeviceProperties& device = *hello.mutable_device();
      device.set_target("x86-64:znver4,cores=1");
      device.set_triple("x86_64-unknown-linux-gnu");
      device.set_cpu("znver4");
      device.set_brand("Simulated Processor");
      device.set_cores(1);
      device.set_l1_bytes(48 << 10);
      device.set_l2_bytes(1 << 20);
      device.set_l3_bytes(32 << 20);
      device.set_memory_bytes(int64_t{16} << 30);
      device.set_isolation("seccomp");
      WriteNext();
    }
    // Timers write, too: the reactor lives until RemoveHold.
    AddHold();
    StartRead(&in_);
    StartCall();
  }

  void Go(int slots) {
    MutexLock lock(mutex_);
    slots_ = slots;
    QueueState();
    WriteNext();
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      if (!shared_.closing) ++shared_.ended;
      return;
    }
    Take();
    in_.Clear();
    StartRead(&in_);
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(mutex_);
    writing_ = false;
    out_.pop_front();
    if (ok) WriteNext();
  }

  void OnDone(const grpc::Status& status) override {
    if (status.error_code() != grpc::StatusCode::CANCELLED) {
      MutexLock lock(shared_.mutex);
      if (shared_.why.empty()) {
        shared_.why = absl::StrCat(name_, ": ", status.error_message());
      }
    }
    MutexLock lock(mutex_);
    done_ = true;
    changed_.NotifyAll();
  }

  void Cancel() {
    context_.TryCancel();
    RemoveHold();
  }
  void WaitDone() {
    MutexLock lock(mutex_);
    while (!done_) changed_.Wait(mutex_);
  }

  void TakeLatencies(std::vector<float>& into) {
    MutexLock lock(mutex_);
    into.insert(into.end(), latencies_.begin(), latencies_.end());
    latencies_.clear();
  }
  void AddTo(Totals& totals) {
    MutexLock lock(mutex_);
    totals.leases += leases_;
    totals.leases_of_worker.push_back(leases_);
    totals.superseded += superseded_;
    totals.cancelled += cancelled_;
    totals.acknowledged.insert(totals.acknowledged.end(), acknowledged_.begin(),
                               acknowledged_.end());
  }

 private:
  struct Held {
    uint32_t attempt = 0;
    std::string candidate;
    v1::LeasePhase phase = v1::LEASE_PHASE_BUILDING;
    bool reported = false;  // but not acknowledged
    bool trial = false;
  };

  void Take() {
    for (const v1::Ack& ack : in_.acks()) TakeAck(ack);
    switch (in_.message_case()) {
      case v1::ServerMessage::kWelcome:
        ++shared_.welcomed;
        return;
      case v1::ServerMessage::kLease:
        TakeLease(in_.lease());
        return;
      case v1::ServerMessage::kCancel: {
        MutexLock lock(mutex_);
        ++cancelled_;
        held_.erase(in_.cancel().lease_id());
        return;
      }
      default:
        return;
    }
  }

  void TakeAck(const v1::Ack& ack) {
    ++shared_.acks;
    if (shared_.window) ++shared_.window_acks;
    MutexLock lock(mutex_);
    const auto found = held_.find(ack.lease_id());
    if (ack.superseded()) ++superseded_;
    if (found == held_.end()) return;
    if (found->second.trial && !ack.superseded()) {
      acknowledged_.push_back(found->second.candidate);
    }
    held_.erase(found);
  }

  void TakeLease(const v1::Lease& lease) {
    const absl::Duration now = Now();
    MutexLock lock(mutex_);
    ++leases_;
    if (!freed_.empty()) {
      if (shared_.window) {
        latencies_.push_back(static_cast<float>(
            absl::ToDoubleMilliseconds(now - freed_.front())));
      }
      freed_.pop_front();
    }
    const bool trial =
        !lease.trace().empty() && !IsCanary(lease.candidate_id());
    held_[lease.lease_id()] = {.attempt = lease.attempt(),
                               .candidate = lease.candidate_id(),
                               .trial = trial};
    // Reports building with the next message, as a real worker does.
    if (!lazy_) {
      lazy_ = true;
      timer_.At(now + kStateDelay, [this] { Tell(); });
    }
    // Kernels differ; otherwise workers would run in lockstep.
    const absl::Duration service = options_.service * (0.5 + rng_.Uniform());
    const absl::Duration start = std::max(now + service / 2, runner_free_);
    runner_free_ = start + service;
    timer_.At(start, [this, id = lease.lease_id()] { Run(id); });
    timer_.At(runner_free_, [this, id = lease.lease_id()] { Finish(id); });
  }

  void Tell() {
    MutexLock lock(mutex_);
    if (!lazy_ || shared_.stopped) return;
    QueueState();
    WriteNext();
  }

  void Run(const std::string& lease_id) {
    MutexLock lock(mutex_);
    const auto found = held_.find(lease_id);
    if (found == held_.end() || shared_.stopped) return;
    found->second.phase = v1::LEASE_PHASE_RUNNING;
    QueueState();
    WriteNext();
  }

  void Finish(const std::string& lease_id) {
    MutexLock lock(mutex_);
    const auto found = held_.find(lease_id);
    if (found == held_.end() || shared_.stopped || done_) return;
    found->second.reported = true;
    found->second.phase = v1::LEASE_PHASE_REPORTED;
    ++shared_.results;
    if (!Unwritten() || out_.back().has_result()) out_.emplace_back();
    v1::Result& result = *out_.back().mutable_result();
    result.set_lease_id(lease_id);
    result.set_attempt(found->second.attempt);
    result.set_candidate_id(found->second.candidate);
    FillMeasurement(found->second.candidate, options_.fingerprint,
                    *result.mutable_measurement());
    QueueState();
    freed_.push_back(Now());
    WriteNext();
  }

  // Every change of a lease sends the leases held, as a real worker does.
  void QueueState() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    // Use a message that is not written yet, if there is one.
    if (!Unwritten()) out_.emplace_back();
    lazy_ = false;
    v1::State& state = *out_.back().mutable_state();
    state.Clear();
    int busy = 0;
    for (const auto& [id, held] : held_) {
      v1::State::Held& one = *state.add_held();
      one.set_lease_id(id);
      one.set_attempt(held.attempt);
      one.set_phase(held.phase);
      if (!held.reported) ++busy;
    }
    state.set_slots(static_cast<uint32_t>(slots_));
    state.set_free_slots(static_cast<uint32_t>(std::max(0, slots_ - busy)));
  }

  // Whether the last message of the queue can still be changed.
  bool Unwritten() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return out_.size() > (writing_ ? 1u : 0u);
  }

  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || out_.empty() || done_) return;
    writing_ = true;
    grpc::WriteOptions options;
    // Send it together with the next one.
    if (out_.size() > 1) options.set_buffer_hint();
    StartWrite(&out_.front(), options);
  }

  const FleetOptions& options_;
  Shared& shared_;
  Timer& timer_;
  std::string name_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Farm::Stub> stub_;
  grpc::ClientContext context_;
  v1::ServerMessage in_;

  Mutex mutex_;
  CondVar changed_;
  // While writing_, the front is being written.
  std::deque<v1::WorkerMessage> out_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool lazy_ ABSL_GUARDED_BY(mutex_) = false;  // a state that can wait is due
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  int slots_ ABSL_GUARDED_BY(mutex_) = 0;
  Rng rng_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Held> held_ ABSL_GUARDED_BY(mutex_);  // by lease id
  absl::Duration runner_free_ ABSL_GUARDED_BY(mutex_);
  std::deque<absl::Duration> freed_ ABSL_GUARDED_BY(mutex_);
  std::vector<float> latencies_ ABSL_GUARDED_BY(mutex_);
  int64_t leases_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t superseded_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t cancelled_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> acknowledged_ ABSL_GUARDED_BY(mutex_);
};

Fleet::Fleet(FleetOptions options)
    : options_(std::move(options)),
      shared_(std::make_unique<Shared>()),
      timer_(std::make_unique<Timer>()) {
  grpc::SslCredentialsOptions files;
  files.pem_root_certs = ReadAll(options_.ca);
  files.pem_cert_chain = ReadAll(options_.cert);
  files.pem_private_key = ReadAll(options_.key);
  const auto credentials = grpc::SslCredentials(files);
  for (int i = 1; i <= options_.workers; ++i) {
    workers_.push_back(
        std::make_unique<Worker>(options_, *shared_, *timer_, i, credentials));
  }
}

Fleet::~Fleet() = default;

absl::Status Fleet::Connect(absl::Duration timeout) {
  for (auto& worker : workers_) worker->Dial();
  const absl::Duration end = Now() + timeout;
  while (shared_->welcomed < options_.workers) {
    if (shared_->ended > 0) {
      return absl::UnavailableError("a stream ended before its welcome");
    }
    if (Now() > end) {
      return absl::DeadlineExceededError(
          absl::StrCat(shared_->welcomed.load(), " of ", options_.workers,
                       " workers were welcomed"));
    }
    absl::SleepFor(absl::Milliseconds(10));
  }
  return absl::OkStatus();
}

void Fleet::Go(int slots) {
  // Spread over one service time, as in a steady state.
  const absl::Duration gap = options_.service / options_.workers;
  absl::Duration at = Now();
  for (auto& worker : workers_) {
    timer_->At(at, [&worker, slots] { worker->Go(slots); });
    at += gap;
  }
}

void Fleet::StartWindow() {
  shared_->window_acks = 0;
  shared_->window = true;
}

Seen Fleet::EndWindow() {
  shared_->window = false;
  Seen seen;
  seen.acknowledged = shared_->window_acks;
  for (auto& worker : workers_) worker->TakeLatencies(seen.lease_milliseconds);
  return seen;
}

absl::Status Fleet::Settle(absl::Duration timeout) {
  shared_->stopped = true;
  const absl::Duration end = Now() + timeout;
  while (shared_->acks < shared_->results) {
    if (Now() > end) {
      return absl::DeadlineExceededError(
          absl::StrCat(shared_->acks.load(), " of ", shared_->results.load(),
                       " results were acknowledged"));
    }
    absl::SleepFor(absl::Milliseconds(10));
  }
  return absl::OkStatus();
}

void Fleet::Close() {
  shared_->stopped = true;
  shared_->closing = true;
  timer_.reset();
  for (auto& worker : workers_) worker->Cancel();
  for (auto& worker : workers_) worker->WaitDone();
}

Totals Fleet::totals() const {
  Totals totals;
  totals.results = shared_->results;
  totals.ended = shared_->ended;
  {
    MutexLock lock(shared_->mutex);
    totals.why = shared_->why;
  }
  for (const auto& worker : workers_) worker->AddTo(totals);
  return totals;
}

}  // namespace tilefarm::load
