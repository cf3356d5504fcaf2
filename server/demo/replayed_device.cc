#include "server/demo/replayed_device.h"

#include <algorithm>
#include <deque>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "proto/tilefarm/v1/protocol_version.h"
#include "server/farm/random_id.h"

namespace tilefarm::demo {
namespace {

using farm::Phase;

constexpr int kBuilders = 2;
constexpr int kSlots = 4;
// A worker says what it holds at least this often.
constexpr absl::Duration kStatePeriod = absl::Seconds(5);
// Of work whose stages the recording does not have: baselines and finalists.
constexpr StageTimes kTypical = {.build = absl::Milliseconds(60),
                                 .run = absl::Milliseconds(300)};

farm::Measurement MeasurementOf(const database::Record& record) {
  farm::Measurement measured;
  measured.status = record.status;
  measured.error = record.error;
  measured.seconds = record.seconds;
  measured.median_seconds = record.median_seconds;
  measured.ci_low_seconds = record.ci_low_seconds;
  measured.ci_high_seconds = record.ci_high_seconds;
  measured.stopped_early = record.stopped_early;
  measured.verified = record.verified;
  measured.max_abs_error = record.max_abs_error;
  measured.max_rel_error = record.max_rel_error;
  measured.compile_seconds = record.compile_seconds;
  measured.isolation = record.isolation;
  measured.device_state = record.device_state;
  measured.code_digest = record.code_digest;
  measured.cold_cache = record.protocol.cold_cache;
  measured.cores = record.protocol.cores;
  measured.layout = record.protocol.layout;
  measured.emulated = record.emulated;
  measured.fingerprint = record.fingerprint;
  return measured;
}

bool WasBuilt(database::Status status) {
  return status != database::Status::kInvalidSchedule &&
         status != database::Status::kCompileError &&
         status != database::Status::kCompileTimeout;
}

// Gets leases from the farm, under the farm's lock.
class Inbox : public farm::WorkerLink {
 public:
  void SendLease(const farm::Lease& lease) override {
    MutexLock lock(mutex_);
    leases_.push_back(lease);
    changed_.NotifyAll();
  }
  void SendCancel(const std::string& lease_id) override {
    MutexLock lock(mutex_);
    cancelled_.push_back(lease_id);
    changed_.NotifyAll();
  }
  void SendAck(const std::string& /*lease_id*/, bool /*superseded*/) override {}
  void FlushAcks(absl::Duration /*waited*/) override {}
  void Close(const absl::Status& /*why*/) override { Stop(); }

  void Stop() {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  struct Mail {
    std::vector<farm::Lease> leases;
    std::vector<std::string> cancelled;
    bool stopping = false;
  };
  // What has come, after `patience` at most.
  Mail Wait(absl::Duration patience) {
    MutexLock lock(mutex_);
    if (leases_.empty() && cancelled_.empty() && !stopping_ &&
        patience > absl::ZeroDuration()) {
      changed_.WaitFor(mutex_, patience);
    }
    return {std::exchange(leases_, {}), std::exchange(cancelled_, {}),
            stopping_};
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<farm::Lease> leases_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> cancelled_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

class Replayed : public ReplayedDevice {
 public:
  Replayed(farm::Farm& farm, std::shared_ptr<const Recording> recording,
           double speed)
      : farm_(farm), recording_(std::move(recording)), speed_(speed) {}
  ~Replayed() override {
    inbox_->Stop();
    if (thread_.joinable()) thread_.join();
    farm_.Disconnect(session_);
  }

  absl::Status Connect(const std::string& name) {
    TF_ASSIGN_OR_RETURN(session_,
                        farm_.Connect({.protocol_version = v1::kProtocolVersion,
                                       .name = name,
                                       .boot_id = farm::RandomId(64),
                                       .fingerprint = recording_->fingerprint,
                                       .device = recording_->devices.at(name)},
                                      inbox_));
    thread_ = std::thread([this] { Main(); });
    return absl::OkStatus();
  }

 private:
  struct Held {
    farm::Lease lease;
    farm::Measurement measurement;
    StageTimes times;
    Phase phase = Phase::kGranted;
    absl::Duration ends;  // of building or running
  };

  void Main() {
    Tell();
    while (true) {
      Inbox::Mail mail = inbox_->Wait(Patience());
      if (mail.stopping) return;
      bool changed = false;
      for (farm::Lease& lease : mail.leases) changed |= Take(std::move(lease));
      for (const std::string& id : mail.cancelled) {
        changed |= std::erase_if(held_, [&](const Held& one) {
                     return one.lease.lease_id == id;
                   }) > 0;
      }
      changed |= Step(Clock::Real().Monotonic());
      if (changed || Clock::Real().Monotonic() >= told_at_ + kStatePeriod) {
        Tell();
      }
    }
  }

  absl::Duration Patience() const {
    const absl::Duration now = Clock::Real().Monotonic();
    absl::Duration patience = told_at_ + kStatePeriod - now;
    for (const Held& one : held_) {
      if (one.phase == Phase::kBuilding || one.phase == Phase::kRunning) {
        patience = std::min(patience, one.ends - now);
      }
    }
    return std::max(patience, absl::Milliseconds(1));
  }

  bool Take(farm::Lease lease) {
    const farm::WorkItem& item = lease.item;
    const std::string& id =
        item.recorded_as.empty() ? item.candidate_id : item.recorded_as;
    int& finalists = finalists_[id];
    auto measurement = RecordedMeasurement(*recording_, item, finalists);
    if (item.purpose == farm::Purpose::kFinalist) ++finalists;
    if (!measurement.ok()) {
      measurement = farm::Measurement();
      measurement->status = database::Status::kRunError;
      measurement->error = "the recording does not have this candidate";
      measurement->fingerprint = recording_->fingerprint;
    }
    const auto times = recording_->times.find(item.candidate_id);
    held_.push_back(
        {.lease = std::move(lease),
         .measurement = *std::move(measurement),
         .times = times == recording_->times.end() ? kTypical : times->second});
    return true;
  }

  // Takes every lease as far as it is at this time.
  bool Step(absl::Duration now) {
    bool changed = false;
    int building = 0;
    bool running = false;
    for (auto it = held_.begin(); it != held_.end();) {
      const bool over = now >= it->ends;
      const bool built = it->phase == Phase::kBuilding && over;
      const bool ran = it->phase == Phase::kRunning && over;
      changed |= built || ran;
      if (ran || (built && !WasBuilt(it->measurement.status))) {
        Report(*it);
        it = held_.erase(it);
        continue;
      }
      if (built) it->phase = Phase::kBuilt;
      building += it->phase == Phase::kBuilding;
      running |= it->phase == Phase::kRunning;
      ++it;
    }
    for (Held& one : held_) {
      if (one.phase == Phase::kGranted && building < kBuilders) {
        Enter(one, Phase::kBuilding, now + one.times.build / speed_);
        ++building;
        changed = true;
      } else if (one.phase == Phase::kBuilt && !running) {
        Enter(one, Phase::kRunning, now + one.times.run / speed_);
        running = changed = true;
      }
    }
    return changed;
  }

  static void Enter(Held& held, Phase phase, absl::Duration ends) {
    held.phase = phase;
    held.ends = ends;
  }

  void Report(const Held& held) {
    farm_.OnResult(session_, {.lease_id = held.lease.lease_id,
                              .attempt = held.lease.attempt,
                              .candidate_id = held.lease.item.candidate_id,
                              .measurement = held.measurement});
  }

  void Tell() {
    std::vector<farm::HeldLease> held;
    for (const Held& one : held_) {
      held.push_back({.lease_id = one.lease.lease_id,
                      .attempt = one.lease.attempt,
                      .phase = one.phase});
    }
    farm_.OnState(session_, held, /*draining=*/false, kSlots);
    told_at_ = Clock::Real().Monotonic();
  }

  farm::Farm& farm_;
  const std::shared_ptr<const Recording> recording_;
  const double speed_;
  const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  int64_t session_ = 0;
  // Used by the thread alone.
  std::deque<Held> held_;
  std::map<std::string, int> finalists_;  // by candidate id
  absl::Duration told_at_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<farm::Measurement> RecordedMeasurement(
    const Recording& recording, const farm::WorkItem& item, int finalists) {
  if (item.purpose == farm::Purpose::kBaseline) {
    const auto found = recording.baselines.find(item.task_id);
    if (found != recording.baselines.end()) return MeasurementOf(found->second);
    return absl::NotFoundError("no baseline");
  }
  const auto found = recording.records.find(
      item.recorded_as.empty() ? item.candidate_id : item.recorded_as);
  if (found == recording.records.end()) {
    return absl::NotFoundError("no such candidate");
  }
  const std::vector<database::Record>& again = found->second.remeasured;
  if (item.purpose != farm::Purpose::kFinalist || again.empty()) {
    return MeasurementOf(found->second);
  }
  const size_t round =
      std::min(static_cast<size_t>(finalists), again.size() - 1);
  return MeasurementOf(again[round]);
}

absl::StatusOr<std::unique_ptr<ReplayedDevice>> ReplayedDevice::Start(
    farm::Farm& farm, std::shared_ptr<const Recording> recording,
    const std::string& name, double speed) {
  auto device = std::make_unique<Replayed>(farm, std::move(recording), speed);
  TF_RETURN_IF_ERROR(device->Connect(name));
  return device;
}

}  // namespace tilefarm::demo
