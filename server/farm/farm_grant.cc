// The farm's side of handing out: the states of items, and the index that says
// who may get what (grant_index.h).
#include <algorithm>
#include <string>
#include <utility>

#include "database/record.h"
#include "server/farm/farm.h"
#include "server/farm/farm_state.h"

namespace tilefarm::farm {

// --- Items -------------------------------------------------------------------

Farm::Item& Farm::NewItem(WorkItem work) {
  std::unique_ptr<Item>& slot = items_[work.candidate_id];
  slot = std::make_unique<Item>();
  slot->demand = {.target_key = work.target.Key(),
                  .device = work.device,
                  .kernels = database::LibraryOf(work.trace)};
  slot->work = std::move(work);
  return *slot;
}

void Farm::SetState(Item& item, ItemState state) {
  const auto count_of = [](QueueCounts& counts, Item::State of) -> int& {
    switch (of) {
      case Item::State::kHeld:
        return counts.held;
      case Item::State::kLeased:
        return counts.leased;
      case Item::State::kDoubted:
      case Item::State::kCommitting:
        return counts.committing;
      default:
        return counts.ready;
    }
  };
  if (item.state == Item::State::kReady && item.place.queue != nullptr) {
    index_.Remove(std::exchange(item.place, {}));
  }
  if (item.state == Item::State::kHeld) held_.erase(item.work.candidate_id);
  committing_ += (state == Item::State::kCommitting) -
                 (item.state == Item::State::kCommitting);
  if (state == Item::State::kHeld) held_.insert(item.work.candidate_id);
  const auto counts = counts_.try_emplace(item.work.queue).first;
  if (item.state != Item::State::kNew) --count_of(counts->second, item.state);
  if (state != Item::State::kNew) ++count_of(counts->second, state);
  if (counts->second.outstanding() == 0) counts_.erase(counts);
  item.state = state;
}

void Farm::MakeReady(Item& item, bool front) {
  SetState(item, Item::State::kReady);
  QueueOf(item.work.queue);
  item.place = index_.Push(item.work.queue, item.work.candidate_id, item.demand,
                           item.work.target, front);
}

void Farm::EraseItem(Item& item) {
  SetState(item, Item::State::kNew);
  items_.erase(std::string(item.work.candidate_id));
}

// --- Devices -----------------------------------------------------------------

void Farm::Classify(const Worker& worker) {
  if (worker.device_id.empty()) return;
  index_.SetDevice(worker.name, {.target = worker.target,
                                 .properties = worker.properties,
                                 .reserved_for = worker.known.reserved_for});
}

void Farm::Refresh(Worker& worker) {
  const absl::Duration now = clock_.Monotonic();
  const bool works = worker.takes_leases(now);
  index_.SetState(worker.name, works, works && worker.has_slot(),
                  worker.is_promising(now) ? worker.capacity : 0);
  // The one change that time alone makes is the end of a rest.
  if (!works && worker.accepts() &&
      worker.health.promising(absl::InfiniteDuration()) !=
          worker.health.promising(now)) {
    resting_.insert(worker.name);
  } else {
    resting_.erase(worker.name);
  }
  const absl::Duration canary_at = worker.accepts() && worker.has_slot()
                                       ? worker.health.next_canary()
                                       : absl::InfiniteDuration();
  if (canary_at == worker.canary_at) return;
  canaries_.erase({worker.canary_at, worker.name});
  if (canary_at != absl::InfiniteDuration()) {
    canaries_.emplace(canary_at, worker.name);
  }
  worker.canary_at = canary_at;
}

// --- Leases ------------------------------------------------------------------

Lease Farm::MakeLease(Item& item, Worker& worker) {
  Lease lease;
  lease.attempt = ++item.attempts;
  lease.lease_id = NewLeaseId(item, worker);
  lease.item = item.work;
  SetState(item, Item::State::kLeased);
  item.lease_id = lease.lease_id;
  const absl::Duration now = clock_.Monotonic();
  ActiveLease& active = leases_[lease.lease_id];
  active = {
      .candidate_id = item.work.candidate_id,
      .worker = worker.name,
      .expires = now + options_.timeouts.lease_duration,
      .granted_at = now,
  };
  worker.leases.insert(lease.lease_id);
  EnterPhase(active, Phase::kGranted);
  Refresh(worker);
  return lease;
}

void Farm::DropLease(const std::string& lease_id) {
  auto it = leases_.find(lease_id);
  if (it == leases_.end()) return;
  Worker& worker = *workers_.at(it->second.worker);
  worker.leases.erase(lease_id);
  leases_.erase(it);
  Refresh(worker);
}

bool Farm::GrantOne(Worker& worker) {
  const absl::Duration now = clock_.Monotonic();
  const std::string* const first =
      shares_.First(index_.QueuesFor(worker.name), now);
  if (first == nullptr) return false;
  const std::string queue = *first;
  const auto id = index_.Take(queue, worker.name);
  if (!id.has_value()) return false;
  Item& item = *items_.at(*id);
  item.place = {};
  Lease lease = MakeLease(item, worker);
  leases_[lease.lease_id].charged = shares_.Grant(queue, now);
  if (item.work.purpose == Purpose::kTrial) {
    const auto best = best_.find(item.work.task_id);
    if (best != best_.end()) {
      lease.best_seconds = best->second.For(worker.device_id);
    }
  }
  worker.link->SendLease(lease);
  if (worker.link->Clogged()) {
    worker.clogged = true;
    Refresh(worker);
  }
  return true;
}

void Farm::Grant() {
  const absl::Duration now = clock_.Monotonic();
  const std::set<std::string> resting = resting_;
  for (const std::string& name : resting) Refresh(*workers_.at(name));
  std::set<std::string> due;
  for (const auto& [at, name] : canaries_) {
    if (at > now) break;
    due.insert(name);
  }
  for (const std::string& name : due) GrantCanary(*workers_.at(name));
  // Results come in as fast as leases go out; what the disk cannot keep up with
  // would fill the memory.
  if (committing_ >= options_.timeouts.commit_backlog) return;
  // One lease a device and round, so that several devices share what there is.
  bool granted = index_.has_ready();
  while (granted) {
    granted = false;
    std::string after;
    while (const auto name = index_.NextDevice(after)) {
      granted |= GrantOne(*workers_.at(*name));
      after = *name;
    }
  }
}

}  // namespace tilefarm::farm
