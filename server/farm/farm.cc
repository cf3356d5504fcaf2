#include "server/farm/farm.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace tilefarm::farm {
namespace {

// More leases than any device needs at once.
constexpr int kMostSlots = 1024;

// Turns a success into a failure where no such device can be that fast, or
// where the code is not that of this server's compiler.
void CheckBelievable(const WorkItem& work, const std::string& fingerprint,
                     Measurement& measured) {
  if (measured.status != database::Status::kOk) return;
  double least = measured.median_seconds;
  for (const double seconds : measured.seconds) {
    least = std::min(least, seconds);
  }
  std::string why;
  if (measured.compared.has_value()) {
    for (const double seconds : measured.compared->baseline_seconds) {
      least = std::min(least, seconds);
    }
  }
  if (work.comparison.has_value() != measured.compared.has_value()) {
    why = "something else than was asked";
  } else if (measured.fingerprint != fingerprint) {
    why = absl::StrCat("code of ", measured.fingerprint, " for a lease of ",
                       fingerprint);
  } else if (least < work.least_seconds) {
    why = absl::StrCat(least, " s, where ", work.target.Key(),
                       " needs more than ", work.least_seconds, " s");
  } else {
    return;
  }
  measured.status = database::Status::kRunError;
  measured.error = absl::StrCat("the worker reported ", why);
  measured.verified = false;
}

DeviceRegistry::Options RegistryOptions(const FarmOptions& options) {
  DeviceRegistry::Options registry{
      .timeouts = options.timeouts,
      .health = options.health,
      .fingerprint = options.fingerprint,
      .most_devices_of_owner = options.most_devices_of_owner,
      .most_devices = options.most_devices,
      .clock = options.clock,
  };
  if (options.canary != nullptr) {
    registry.has_canary = [canary =
                               options.canary](const target::Target& device) {
      return canary(device).has_value();
    };
  }
  return registry;
}

}  // namespace

Farm::Farm(FarmOptions options)
    : options_(std::move(options)),
      clock_(*options_.clock),
      registry_(RegistryOptions(options_)),
      leases_({.timeouts = options_.timeouts,
               .lease_key = options_.lease_key,
               .new_lease_id = options_.new_lease_id,
               .clock = options_.clock}),
      scheduler_(options_.timeouts.priority_aging, clock_) {}

Farm::~Farm() = default;

void Farm::SetSink(ResultSink* sink) {
  MutexLock lock(mutex_);
  sink_ = sink;
}

void Farm::SetListener(DeviceListener* listener) {
  MutexLock lock(mutex_);
  registry_.SetListener(listener);
}

// --- Workers -----------------------------------------------------------------

absl::StatusOr<int64_t> Farm::Connect(const WorkerHello& hello,
                                      std::shared_ptr<WorkerLink> link) {
  TF_ASSIGN_OR_RETURN(const target::Target target,
                      DeviceRegistry::CheckHello(hello));
  MutexLock lock(mutex_);
  TF_RETURN_IF_ERROR(registry_.CheckRoom(hello));
  if (registry_.IsRestart(hello)) {
    for (const std::string& id : leases_.LeasesOf(hello.name)) {
      Lose(id, Loss::kWorkerGone);
    }
  }
  const Device& device = registry_.Connect(hello, target, std::move(link));
  // If its stream was replaced, no Disconnect has settled them.
  SettleDoubts(device, /*trusted=*/false);
  Classify(hello.name);
  Refresh(hello.name);
  return device.session;
}

void Farm::OnState(int64_t session, std::span<const HeldLease> held,
                   bool draining, int slots) {
  MutexLock lock(mutex_);
  const Device* const device = registry_.FindSession(session);
  if (device == nullptr) return;
  const std::string& name = device->name();
  const LeaseTable::Holder holder{.name = name,
                                  .device_id = device->device_id,
                                  .capacity = std::clamp(slots, 0, kMostSlots)};
  bool has_unknown_leases = false;
  for (const HeldLease& one : held) {
    const bool known = leases_.Renew(one, holder);
    has_unknown_leases |= !known && !one.reported;
  }
  registry_.OnState(name, draining, holder.capacity, has_unknown_leases);
  Refresh(name);
  if (draining) {
    // A worker that drains takes nothing new: what it does not hold it has
    // dropped, or will drop when it arrives. Results come before the state that
    // omits their leases.
    std::set<std::string> untaken;
    for (const std::string& id : leases_.LeasesOf(name)) untaken.insert(id);
    for (const HeldLease& one : held) untaken.erase(one.lease_id);
    for (const std::string& id : untaken) Lose(id, Loss::kUntaken);
    // The worker waits for its acknowledgements before it ends.
    device->link->FlushAcks(absl::ZeroDuration());
  }
  GrantAll();
}

void Farm::OnResult(int64_t session, WorkerResult result) {
  MutexLock lock(mutex_);
  const Device* const device = registry_.FindSession(session);
  if (device == nullptr) return;
  const std::string& name = device->name();
  registry_.Seen(name);
  const LeaseTable::Holder from = HolderOf(*device);
  switch (leases_.Judge(result, from)) {
    case LeaseTable::Verdict::kAccepted:
      break;
    case LeaseTable::Verdict::kRepeated:
      return;
    case LeaseTable::Verdict::kNotGranted:
      Log(LogLevel::kWarning, "farm",
          absl::StrCat("device ", name, " has a result of ",
                       result.candidate_id.substr(0, 12),
                       " under a lease that it was not granted"),
          {{"device", name}, {"lease", result.lease_id}});
      [[fallthrough]];
    case LeaseTable::Verdict::kSuperseded:
      device->link->SendAck(result.lease_id, /*superseded=*/true);
      return;
  }
  const Candidate& candidate = *leases_.Find(result.candidate_id);
  CheckBelievable(candidate.work, options_.fingerprint, result.measurement);
  // It is ready if its lease was lost.
  scheduler_.Remove(candidate.work);
  const auto ended = leases_.Accept(result, from);
  if (ended.has_value()) {
    if (ended->lease_id != result.lease_id) {
      const Device& holder = *registry_.Find(ended->device);
      if (holder.connected()) holder.link->SendCancel(ended->lease_id);
    }
    Settle(*ended);
  }
  registry_.OnReport(name, result.measurement.device_state,
                     candidate.stages.running);
  if (candidate.work.purpose == Purpose::kCanary) {
    TakeCanary(candidate, *device, std::move(result.measurement));
  } else {
    TakeResult(candidate, *device, std::move(result.measurement));
  }
  Refresh(name);
  GrantAll();
}

void Farm::Deliver(const Candidate& candidate, const Device& device,
                   Measurement measurement) {
  if (sink_ == nullptr) return;
  sink_->OnResult(Completion{
      .item = candidate.work,
      .measurement = std::move(measurement),
      .stages = candidate.stages,
      .device_id = device.device_id,
      .device_model = device.device_model,
      .unsteady = device.health.state() == DeviceHealth::State::kUnsteady,
      .trusted = device.health.state() == DeviceHealth::State::kSteady,
  });
}

void Farm::Disconnect(int64_t session) {
  MutexLock lock(mutex_);
  const Device* const device = registry_.FindSession(session);
  if (device == nullptr) return;
  registry_.Disconnect(session);
  Refresh(device->name());
  SettleDoubts(*device, /*trusted=*/false);
}

void Farm::CloseAll(const absl::Status& why) {
  MutexLock lock(mutex_);
  registry_.CloseAll(why);
  for (const auto& [name, device] : registry_.devices()) Refresh(name);
}

// --- Work --------------------------------------------------------------------

absl::Status Farm::Add(WorkItem work, Where where) {
  MutexLock lock(mutex_);
  if (leases_.Contains(work.candidate_id)) {
    return absl::AlreadyExistsError(
        absl::StrCat("candidate ", work.candidate_id, " is in the farm"));
  }
  if (where == Where::kHeldFromFormerProcess) {
    leases_.Add(std::move(work), LeaseTable::State::kHeld);
  } else {
    const Candidate& candidate =
        leases_.Add(std::move(work), LeaseTable::State::kReady);
    scheduler_.Push(candidate.work, where == Where::kFront);
  }
  GrantAll();
  return absl::OkStatus();
}

void Farm::OpenQueue(const std::string& queue, const QueueTerms& terms) {
  MutexLock lock(mutex_);
  scheduler_.OpenQueue(queue, terms);
}

void Farm::SetUrgent(const std::string& queue) {
  MutexLock lock(mutex_);
  scheduler_.SetUrgent(queue);
}

void Farm::RemoveQueue(const std::string& queue) {
  MutexLock lock(mutex_);
  for (const std::string& id : leases_.CandidatesOf(queue)) {
    const Candidate& candidate = *leases_.Find(id);
    if (candidate.state == LeaseTable::State::kCommitting) continue;
    const std::string lease_id = candidate.lease_id;
    std::string holder;
    if (candidate.state == LeaseTable::State::kLeased) {
      holder = leases_.FindLease(lease_id)->device;
      const Device& device = *registry_.Find(holder);
      if (device.connected()) device.link->SendCancel(lease_id);
    } else if (candidate.state == LeaseTable::State::kDoubted) {
      const Device* const device = registry_.Find(candidate.reported_by);
      if (device != nullptr && device->connected()) {
        device->link->SendAck(lease_id, /*superseded=*/true);
      }
    }
    leases_.Erase(id);
    if (!holder.empty()) Refresh(holder);
  }
  scheduler_.RemoveQueue(queue);
  GrantAll();
}

void Farm::Committed(std::span<const Commit> commits) {
  MutexLock lock(mutex_);
  const bool was_behind =
      leases_.committing() >= options_.timeouts.commit_backlog;
  for (const Commit& commit : commits) {
    const Candidate* const candidate = leases_.Find(commit.candidate_id);
    if (candidate == nullptr) continue;
    const Device* const device = registry_.Find(candidate->reported_by);
    if (device != nullptr && device->connected()) {
      device->link->SendAck(candidate->lease_id, commit.superseded);
      if (device->draining) device->link->FlushAcks(absl::ZeroDuration());
    }
    leases_.Erase(commit.candidate_id);
  }
  if (was_behind) GrantAll();
}

void Farm::NoteTime(const std::string& race, const std::string& device_id,
                    double seconds) {
  MutexLock lock(mutex_);
  best_[race].Note(device_id, seconds);
}

QueueCounts Farm::Counts(const std::string& queue) const {
  MutexLock lock(mutex_);
  return leases_.Counts(queue);
}

std::string Farm::HolderOfArtifact(const std::string& lease_id,
                                   const std::string& sha256) const {
  MutexLock lock(mutex_);
  const LeaseTable::ActiveLease* const lease = leases_.FindLease(lease_id);
  if (lease == nullptr) return "";
  const Candidate& candidate = *leases_.Find(lease->candidate_id);
  const auto& comparison = candidate.work.comparison;
  const bool names =
      comparison.has_value() && (comparison->baseline.sha256 == sha256 ||
                                 comparison->candidate.sha256 == sha256);
  return names ? lease->device : "";
}

// --- Leases ------------------------------------------------------------------

void Farm::Grant(const Scheduler::Grant& grant) {
  const Device& device = *registry_.Find(grant.device);
  Lease lease =
      leases_.Grant(grant.candidate_id, HolderOf(device), grant.charged);
  Refresh(grant.device);
  if (lease.item.purpose == Purpose::kTrial) {
    const auto best = best_.find(lease.item.race);
    if (best != best_.end()) {
      lease.best_seconds = best->second.For(device.device_id);
    }
  }
  device.link->SendLease(lease);
  if (device.link->Clogged()) {
    registry_.SetClogged(grant.device, true);
    Refresh(grant.device);
  }
}

void Farm::GrantAll() {
  const std::set<std::string> resting = registry_.resting();
  for (const std::string& name : resting) Refresh(name);
  for (const std::string& name : registry_.DueCanaries()) GrantCanary(name);
  // Results come in as fast as leases go out; what the disk cannot keep up with
  // would fill the memory.
  if (leases_.committing() >= options_.timeouts.commit_backlog) return;
  Scheduler::Rounds rounds;
  while (const auto grant = scheduler_.Next(rounds)) Grant(*grant);
}

void Farm::MakeReady(const std::string& candidate_id) {
  scheduler_.Push(leases_.Find(candidate_id)->work, /*front=*/true);
}

std::map<std::string, absl::Duration> Farm::TakeDeviceTime() {
  MutexLock lock(mutex_);
  return std::exchange(device_time_, {});
}

void Farm::Settle(const LeaseTable::ActiveLease& ended) {
  // A device does one thing at a time: the time until its last report belongs
  // to what it reported then.
  const absl::Duration from =
      std::max(ended.granted_at, registry_.Find(ended.device)->last_report);
  const absl::Duration used =
      std::max(clock_.Monotonic() - from, absl::ZeroDuration());
  const std::string user = scheduler_.Settle(
      leases_.Find(ended.candidate_id)->work.queue, ended.charged, used);
  if (!user.empty()) device_time_[user] += used;
  Refresh(ended.device);
}

void Farm::Lose(const std::string& lease_id, Loss loss) {
  const LeaseTable::Loss lost =
      leases_.Lose(lease_id, /*counts=*/loss != Loss::kUntaken);
  Settle(lost.lease);
  const Candidate& candidate = *leases_.Find(lost.lease.candidate_id);
  const Device& device = *registry_.Find(lost.lease.device);
  if (candidate.work.purpose == Purpose::kCanary) {
    LoseCanary(lost.lease.candidate_id, lost.lease.device, loss);
    return;
  }
  Log(LogLevel::kInfo, "farm",
      absl::StrCat("lease of ", lost.lease.candidate_id.substr(0, 12), " on ",
                   device.name(), " lost (attempt ", candidate.attempts, ", ",
                   candidate.running_losses, " while running)"),
      {{"device", device.name()},
       {"lease", lease_id},
       {"job", candidate.work.queue}});
  if (!lost.given_up) {
    MakeReady(lost.lease.candidate_id);
    return;
  }
  Measurement measurement;
  measurement.status = database::Status::kDeviceLost;
  measurement.error = lost.error;
  measurement.isolation = device.properties.isolation;
  measurement.emulated = device.properties.emulated;
  measurement.cores = candidate.work.target.cores;
  measurement.fingerprint = options_.fingerprint;
  Deliver(candidate, device, std::move(measurement));
}

void Farm::ExpireLeases() {
  const absl::Duration now = clock_.Monotonic();
  for (const std::string& id : leases_.Expired()) {
    const LeaseTable::ActiveLease& lease = *leases_.FindLease(id);
    const Device& device = *registry_.Find(lease.device);
    if (device.connected()) device.link->SendCancel(id);
    const bool hung = device.connected() && now < lease.expires;
    Lose(id, hung ? Loss::kHung : Loss::kWorkerGone);
  }
}

void Farm::ReleaseHeld() {
  const absl::Duration hold = registry_.AnyUnknownLeases()
                                  ? options_.timeouts.former_hold_max
                                  : options_.timeouts.former_hold;
  for (const std::string& id : leases_.HeldFor(hold)) {
    leases_.Release(id);
    MakeReady(id);
  }
}

void Farm::Tick() {
  MutexLock lock(mutex_);
  ExpireLeases();
  ReleaseHeld();
  for (const std::string& name : registry_.ExpireReservations()) Classify(name);
  for (const auto& [name, device] : registry_.devices()) {
    if (!device.clogged || !device.connected() || device.link->Clogged()) {
      continue;
    }
    registry_.SetClogged(name, false);
    Refresh(name);
  }
  GrantAll();
  for (const auto& [name, device] : registry_.devices()) {
    if (device.connected()) {
      device.link->FlushAcks(options_.timeouts.ack_delay);
    }
  }
}

}  // namespace tilefarm::farm
