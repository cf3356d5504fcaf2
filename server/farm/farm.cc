#include "server/farm/farm.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "server/farm/farm_state.h"
#include "server/farm/lease_id.h"

namespace tilefarm::farm {
namespace {

void LogInfo(const std::string& text, std::initializer_list<LogField> fields) {
  Log(LogLevel::kInfo, "farm", text, fields);
}

// A success that no such device can have had, or that other code than this
// server's compiler makes had, is none.
void CheckBelievable(const WorkItem& work, const std::string& fingerprint,
                     Measurement& measured) {
  if (measured.status != database::Status::kOk) return;
  double least = measured.median_seconds;
  for (const double seconds : measured.seconds) {
    least = std::min(least, seconds);
  }
  std::string why;
  if (measured.fingerprint != fingerprint) {
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

}  // namespace

Farm::Farm(FarmOptions options)
    : options_(std::move(options)),
      clock_(*options_.clock),
      shares_(options_.timeouts.priority_aging) {}

Farm::~Farm() = default;

void Farm::SetSink(ResultSink* sink) {
  MutexLock lock(mutex_);
  sink_ = sink;
}

void Farm::SetListener(DeviceListener* listener) {
  MutexLock lock(mutex_);
  listener_ = listener;
}

std::string Farm::NewLeaseId(const Item& item, const Worker& worker) const {
  if (options_.new_lease_id) return options_.new_lease_id();
  return MakeLeaseId(options_.lease_key,
                     {.candidate_id = item.work.candidate_id,
                      .attempt = item.attempts,
                      .device_id = worker.device_id});
}

// --- Workers ---------------------------------------------------------------

Farm::Worker* Farm::FindSession(int64_t session) {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : found->second;
}

absl::Status Farm::CheckDeviceCount(const WorkerHello& hello) const {
  if (workers_.contains(hello.name)) return absl::OkStatus();
  if (static_cast<int>(workers_.size()) >= options_.most_devices) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the server knows ", workers_.size(),
        " devices, as many as it may; `tune devices forget` makes room"));
  }
  if (hello.owner.empty()) return absl::OkStatus();
  int count = static_cast<int>(workers_.count(hello.owner));
  const std::string prefix = absl::StrCat(hello.owner, ".");
  for (auto it = workers_.lower_bound(prefix);
       it != workers_.end() && it->first.rfind(prefix, 0) == 0; ++it) {
    ++count;
  }
  if (count < options_.most_devices_of_owner) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the credential of ", hello.owner, " has ", count,
      " devices, as many as one may; `tune devices forget` makes room"));
}

absl::StatusOr<int64_t> Farm::Connect(const WorkerHello& hello,
                                      std::shared_ptr<WorkerLink> link) {
  if (hello.protocol_version != kProtocolVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "this server speaks protocol ", kProtocolVersion, ", the worker ",
        hello.protocol_version, "; use the same release on both sides"));
  }
  if (hello.name.empty() || hello.boot_id.empty()) {
    return absl::InvalidArgumentError("a worker needs a name and a boot id");
  }
  auto device_target = target::ParseKey(hello.device.target);
  if (!device_target.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the worker's target '", hello.device.target,
                     "' is not valid: ", device_target.status().message()));
  }

  MutexLock lock(mutex_);
  TF_RETURN_IF_ERROR(CheckDeviceCount(hello));
  std::unique_ptr<Worker>& slot = workers_[hello.name];
  if (slot == nullptr) slot = std::make_unique<Worker>();
  Worker& worker = *slot;
  if (worker.session != 0) {
    worker.link->Close(absl::AbortedError(
        absl::StrCat("replaced by another connection of '", hello.name, "'")));
    sessions_.erase(worker.session);
  }
  // Another device under the name holds nothing of what this one held.
  const bool restarted = worker.boot_id != hello.boot_id ||
                         worker.device_id != DeviceId(hello.name, hello.device);
  if (!worker.boot_id.empty() && restarted) {
    // Restarted: what it held died with it.
    const std::set<std::string> held = worker.leases;
    for (const std::string& lease_id : held) Lose(lease_id);
  }
  // Until it says so: results that waited come before its state, and what they
  // are of must not be granted once more between them.
  worker.capacity = 0;
  worker.name = hello.name;
  worker.boot_id = hello.boot_id;
  worker.properties = hello.device;
  worker.target = *std::move(device_target);
  worker.incompatible.clear();
  if (hello.fingerprint != options_.fingerprint) {
    worker.incompatible = absl::StrCat("its compiler is ", hello.fingerprint,
                                       ", the server's ", options_.fingerprint);
  }
  worker.session = next_session_++;
  sessions_[worker.session] = &worker;
  worker.link = std::move(link);
  worker.draining = false;
  worker.clogged = false;
  worker.has_unknown_leases = false;
  worker.last_seen = clock_.Now();
  worker.offline_reason.clear();
  HealthOnConnect(worker, restarted);
  // Its digest and its model have taken them in; nothing else asks for them,
  // and a worker may announce many.
  worker.properties.features = std::vector<std::string>();
  Classify(worker);
  Refresh(worker);
  LogInfo(absl::StrCat("device ", worker.name,
                       " connected: ", worker.properties.target,
                       worker.incompatible.empty() ? "" : "; no leases: ",
                       worker.incompatible),
          {{"device", worker.name}});
  return worker.session;
}

void Farm::OnState(int64_t session, std::span<const HeldLease> held,
                   bool draining, int slots) {
  MutexLock lock(mutex_);
  Worker* worker = FindSession(session);
  if (worker == nullptr) return;
  const absl::Duration now = clock_.Monotonic();
  worker->last_seen = clock_.Now();
  worker->draining = draining;
  worker->capacity = std::clamp(slots, 0, 1024);
  worker->has_unknown_leases = false;
  for (const HeldLease& one : held) {
    auto it = leases_.find(one.lease_id);
    if (it == leases_.end()) {
      worker->has_unknown_leases |= !one.reported;
      continue;
    }
    ActiveLease& lease = it->second;
    if (lease.worker != worker->name) continue;
    lease.expires = now + options_.timeouts.lease_duration;
    // Phases only go forward: a limit does not start anew.
    if (lease.phase < one.phase) EnterPhase(lease, one.phase);
  }
  Refresh(*worker);
  if (draining) {
    LoseUntaken(*worker, held);
    worker->link->FlushAcks(absl::ZeroDuration());  // it waits for them
  }
  Grant();
}

// A worker that drains takes nothing new: what it does not hold it has dropped,
// or will when it arrives. Results come before the state that omits them.
void Farm::LoseUntaken(const Worker& worker, std::span<const HeldLease> held) {
  std::set<std::string> untaken = worker.leases;
  for (const HeldLease& one : held) untaken.erase(one.lease_id);
  for (const std::string& lease_id : untaken) {
    --items_.at(leases_.at(lease_id).candidate_id)->losses;  // no fault
    Lose(lease_id);
  }
}

bool Farm::WasGranted(const Item& item, const Worker& worker,
                      const WorkerResult& result) const {
  // An id stands for one attempt; 0 says nothing about it.
  const auto agrees = [&](uint32_t attempt) {
    return result.attempt == attempt || result.attempt == 0;
  };
  const auto held = leases_.find(result.lease_id);
  if (held != leases_.end()) {
    return held->second.candidate_id == result.candidate_id &&
           held->second.worker == worker.name && agrees(item.attempts);
  }
  for (const Item::LostLease& lost : item.lost_leases) {
    if (lost.lease_id != result.lease_id) continue;
    return lost.device_id == worker.device_id && agrees(lost.attempt);
  }
  return ProvesLease(options_.lease_key, result.lease_id,
                     {.candidate_id = result.candidate_id,
                      .attempt = result.attempt,
                      .device_id = worker.device_id});
}

void Farm::OnResult(int64_t session, WorkerResult result) {
  MutexLock lock(mutex_);
  Worker* worker = FindSession(session);
  if (worker == nullptr) return;
  worker->last_seen = clock_.Now();
  auto found = items_.find(result.candidate_id);
  if (found == items_.end()) {
    worker->link->SendAck(result.lease_id, /*superseded=*/true);
    return;
  }
  Item& item = *found->second;
  const bool current = item.lease_id == result.lease_id;
  if (item.state == Item::State::kCommitting ||
      item.state == Item::State::kDoubted) {
    // The same result once more (after a reconnect) is acknowledged with the
    // first one; any other came too late.
    if (!current) worker->link->SendAck(result.lease_id, /*superseded=*/true);
    return;
  }
  if (!WasGranted(item, *worker, result)) {
    Log(LogLevel::kWarning, "farm",
        absl::StrCat("device ", worker->name, " has a result of ",
                     result.candidate_id.substr(0, 12),
                     " under a lease that it was not granted"),
        {{"device", worker->name}, {"lease", result.lease_id}});
    worker->link->SendAck(result.lease_id, /*superseded=*/true);
    return;
  }
  if (!current) {
    const auto& lost = item.lost_leases;
    const bool granted_here =
        std::any_of(lost.begin(), lost.end(), [&](const Item::LostLease& one) {
          return one.lease_id == result.lease_id;
        });
    const bool replaced =
        granted_here && (item.state == Item::State::kLeased ||
                         lost.back().lease_id != result.lease_id);
    if (replaced) {
      worker->link->SendAck(result.lease_id, /*superseded=*/true);
      return;
    }
    // Lost but not granted again, or granted by a former process.
  }
  CheckBelievable(item.work, options_.fingerprint, result.measurement);
  if (item.state == Item::State::kLeased) {
    const std::string lease_id = item.lease_id;
    auto lease = leases_.find(lease_id);
    if (!current && lease != leases_.end()) {
      Worker& holder = *workers_.at(lease->second.worker);
      if (holder.session != 0) holder.link->SendCancel(lease_id);
    }
    if (lease != leases_.end()) {
      Charge(lease->second, item, *workers_.at(lease->second.worker));
    }
    DropLease(lease_id);
  }
  const absl::Duration now = clock_.Monotonic();
  worker->last_report = now;
  worker->device_state = result.measurement.device_state;
  item.lease_id = result.lease_id;
  item.reported_by = worker->name;
  if (item.work.purpose == Purpose::kCanary) {
    TakeCanary(item, *worker, std::move(result.measurement));
    Refresh(*worker);
    Grant();
    return;
  }
  worker->reported_at.push_back(now);
  while (now - worker->reported_at.front() > options_.timeouts.rate_window) {
    worker->reported_at.pop_front();
  }
  if (!Doubt(item, *worker, result.measurement)) {
    Report(item, *worker, std::move(result.measurement));
  }
  Refresh(*worker);
  Grant();
}

void Farm::Report(Item& item, const Worker& worker, Measurement measurement) {
  SetState(item, Item::State::kCommitting);
  if (sink_ == nullptr) return;
  sink_->OnResult(Completion{
      .item = item.work,
      .measurement = std::move(measurement),
      .device_id = worker.device_id,
      .device_model = worker.device_model,
      .unsteady = worker.health.state() == DeviceHealth::State::kUnsteady,
      .trusted = worker.health.state() == DeviceHealth::State::kSteady,
  });
}

void Farm::Disconnect(int64_t session) {
  MutexLock lock(mutex_);
  Worker* worker = FindSession(session);
  if (worker == nullptr) return;
  sessions_.erase(session);
  worker->session = 0;
  worker->link.reset();
  worker->has_unknown_leases = false;
  worker->offline_reason = "its connection ended";
  worker->health.OnDisconnect(clock_.Monotonic());
  Refresh(*worker);
  SettleDoubts(*worker, /*trusted=*/false);
  Note(*worker, "disconnect", worker->offline_reason);
  LogInfo(absl::StrCat("device ", worker->name, " disconnected"),
          {{"device", worker->name}});
}

void Farm::CloseAll(const absl::Status& why) {
  MutexLock lock(mutex_);
  for (auto& [name, worker] : workers_) {
    if (worker->session == 0) continue;
    worker->link->Close(why);
    worker->session = 0;
    worker->link.reset();
    Refresh(*worker);
  }
  sessions_.clear();
}

// --- Work --------------------------------------------------------------------

absl::Status Farm::Add(WorkItem work, Where where) {
  MutexLock lock(mutex_);
  if (items_.contains(work.candidate_id)) {
    return absl::AlreadyExistsError(
        absl::StrCat("candidate ", work.candidate_id, " is in the farm"));
  }
  QueueOf(work.queue);
  Item& item = NewItem(std::move(work));
  if (where == Where::kHeldFromFormerProcess) {
    SetState(item, Item::State::kHeld);
    item.held_since = clock_.Monotonic();
  } else {
    MakeReady(item, where == Where::kFront);
  }
  Grant();
  return absl::OkStatus();
}

void Farm::OpenQueue(const std::string& queue, const QueueTerms& terms) {
  MutexLock lock(mutex_);
  Queue& entry = QueueOf(queue);
  entry.terms = terms;
  index_.SetTerms(queue, terms.user, terms.requirements);
  shares_.Open(queue, terms.user, terms.priority, entry.urgent,
               clock_.Monotonic());
}

Farm::Queue& Farm::QueueOf(const std::string& name) {
  const auto [at, is_new] = queues_.try_emplace(name);
  if (is_new) shares_.Open(name, "", 0, false, clock_.Monotonic());
  return at->second;
}

void Farm::SetUrgent(const std::string& queue) {
  MutexLock lock(mutex_);
  Queue& entry = QueueOf(queue);
  entry.urgent = true;
  shares_.Open(queue, entry.terms.user, entry.terms.priority, true,
               clock_.Monotonic());
}

void Farm::RemoveQueue(const std::string& queue) {
  MutexLock lock(mutex_);
  for (auto it = items_.begin(); it != items_.end();) {
    Item& item = *(it++)->second;
    if (item.work.queue != queue || item.state == Item::State::kCommitting) {
      continue;
    }
    if (item.state == Item::State::kLeased) {
      const auto lease = leases_.find(item.lease_id);
      if (lease != leases_.end()) {
        Worker& holder = *workers_.at(lease->second.worker);
        if (holder.session != 0) holder.link->SendCancel(item.lease_id);
      }
      DropLease(item.lease_id);
    }
    if (item.state == Item::State::kDoubted) {
      Worker& holder = *workers_.at(item.reported_by);
      holder.doubted.erase(item.work.candidate_id);
      if (holder.session != 0) holder.link->SendAck(item.lease_id, true);
    }
    EraseItem(item);
  }
  queues_.erase(queue);
  index_.RemoveQueue(queue);
  shares_.Close(queue);
  Grant();
}

void Farm::Committed(std::span<const Commit> commits) {
  MutexLock lock(mutex_);
  const bool was_behind = committing_ >= options_.timeouts.commit_backlog;
  for (const Commit& commit : commits) {
    auto it = items_.find(commit.candidate_id);
    if (it == items_.end()) continue;
    Item& item = *it->second;
    const auto worker = workers_.find(item.reported_by);
    if (worker != workers_.end() && worker->second->session != 0) {
      farm::WorkerLink& link = *worker->second->link;
      link.SendAck(item.lease_id, commit.superseded);
      if (worker->second->draining) link.FlushAcks(absl::ZeroDuration());
    }
    EraseItem(item);
  }
  if (was_behind) Grant();
}

void Farm::NoteTime(const std::string& task_id, const std::string& device_id,
                    double seconds) {
  MutexLock lock(mutex_);
  best_[task_id].Note(device_id, seconds);
}

QueueCounts Farm::Counts(const std::string& queue) const {
  MutexLock lock(mutex_);
  const auto found = counts_.find(queue);
  return found == counts_.end() ? QueueCounts() : found->second;
}

// --- Leases ------------------------------------------------------------------

void Farm::Lose(const std::string& lease_id, bool hung) {
  const ActiveLease lease = leases_.at(lease_id);
  Item& item = *items_.at(lease.candidate_id);
  Worker& worker = *workers_.at(lease.worker);
  Charge(lease, item, worker);
  DropLease(lease_id);
  if (item.work.purpose == Purpose::kCanary) {
    LoseCanary(lease.candidate_id, worker, hung);
    return;
  }
  item.lost_leases.push_back({.lease_id = lease_id,
                              .device_id = worker.device_id,
                              .attempt = item.attempts});
  item.lease_id.clear();
  ++item.losses;
  if (lease.phase == Phase::kRunning) ++item.running_losses;
  LogInfo(
      absl::StrCat("lease of ", lease.candidate_id.substr(0, 12), " on ",
                   worker.name, " lost (attempt ", item.attempts, ", ",
                   item.running_losses, " while running)"),
      {{"device", worker.name}, {"lease", lease_id}, {"job", item.work.queue}});
  const bool while_running =
      item.running_losses >= options_.timeouts.max_running_losses;
  if (while_running || item.losses >= options_.timeouts.max_losses) {
    Measurement lost;
    lost.status = database::Status::kDeviceLost;
    lost.error = absl::StrCat(
        "the device was lost ",
        while_running ? item.running_losses : item.losses,
        while_running ? " times while it ran" : " times while it held",
        " the candidate, last ", worker.name);
    lost.isolation = worker.properties.isolation;
    lost.emulated = worker.properties.emulated;
    lost.cores = item.work.target.cores;
    lost.fingerprint = options_.fingerprint;
    Report(item, worker, std::move(lost));
    return;
  }
  MakeReady(item, /*front=*/true);
}

void Farm::EnterPhase(ActiveLease& lease, Phase phase) {
  const auto build_limit = [&](const ActiveLease& of) {
    return items_.at(of.candidate_id)->work.options.build_timeout +
           options_.timeouts.phase_grace;
  };
  const auto run_limit = [&](const ActiveLease& of) {
    return items_.at(of.candidate_id)->work.options.run_timeout +
           options_.timeouts.phase_grace;
  };
  absl::Duration limit;
  switch (phase) {
    case Phase::kBuilding:
      limit = build_limit(lease);
      break;
    case Phase::kRunning:
      limit = run_limit(lease);
      break;
    case Phase::kGranted:
    case Phase::kBuilt: {
      // It waits for what the worker took before it. That may include leases
      // of a former server process, whose limits are not known here, so every
      // place counts as the longest.
      const Worker& worker = *workers_.at(lease.worker);
      for (const std::string& id : worker.leases) {
        const ActiveLease& other = leases_.at(id);
        limit = std::max(limit, build_limit(other) + run_limit(other));
      }
      limit *=
          std::max(worker.capacity, static_cast<int>(worker.leases.size()));
      break;
    }
  }
  lease.phase = phase;
  lease.phase_ends = clock_.Monotonic() + limit;
}

void Farm::ExpireLeases() {
  const absl::Duration now = clock_.Monotonic();
  std::vector<std::string> lost;
  for (const auto& [id, lease] : leases_) {
    if (now >= lease.expires || now > lease.phase_ends) lost.push_back(id);
  }
  std::sort(lost.begin(), lost.end());  // the map has no order of its own
  for (const std::string& id : lost) {
    const Worker& worker = *workers_.at(leases_.at(id).worker);
    if (worker.session != 0) worker.link->SendCancel(id);
    Lose(id, worker.session != 0 && now < leases_.at(id).expires);
  }
}

void Farm::ReleaseHeld() {
  if (held_.empty()) return;
  const absl::Duration now = clock_.Monotonic();
  bool still_working = false;
  for (const auto& [name, worker] : workers_) {
    still_working |= worker->session != 0 && worker->has_unknown_leases;
  }
  const absl::Duration hold = still_working ? options_.timeouts.former_hold_max
                                            : options_.timeouts.former_hold;
  for (auto it = held_.begin(); it != held_.end();) {
    Item& item = *items_.at(*it++);
    if (now - item.held_since >= hold) MakeReady(item, /*front=*/true);
  }
}

void Farm::Charge(const ActiveLease& lease, const Item& item, Worker& worker) {
  const auto queue = queues_.find(item.work.queue);
  if (queue == queues_.end()) return;
  // A device does one thing at a time: what it reported before had the time
  // until then.
  const absl::Duration from = std::max(lease.granted_at, worker.last_report);
  shares_.Settle(queue->second.terms.user, item.work.queue, lease.charged,
                 std::max(clock_.Monotonic() - from, absl::ZeroDuration()));
}

void Farm::Tick() {
  MutexLock lock(mutex_);
  ExpireLeases();
  ReleaseHeld();
  ExpireReservations();
  for (const auto& [session, worker] : sessions_) {
    if (!worker->clogged || worker->link->Clogged()) continue;
    worker->clogged = false;
    Refresh(*worker);
  }
  Grant();
  for (const auto& [session, worker] : sessions_) {
    worker->link->FlushAcks(options_.timeouts.ack_delay);
  }
}

}  // namespace tilefarm::farm
