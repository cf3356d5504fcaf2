#include "server/farm/lease_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/farm/lease_id.h"

namespace tilefarm::farm {
namespace {

template <typename Map>
std::vector<std::string> ValuesOf(const Map& map, const std::string& key) {
  const auto found = map.find(key);
  if (found == map.end()) return {};
  return {found->second.begin(), found->second.end()};
}

// Removes the value, and the key with its last value.
template <typename Map>
void EraseValue(Map& map, const std::string& key, const std::string& value) {
  const auto found = map.find(key);
  if (found == map.end()) return;
  found->second.erase(value);
  if (found->second.empty()) map.erase(found);
}

}  // namespace

LeaseTable::LeaseTable(Options options)
    : options_(std::move(options)), clock_(*options_.clock) {}

// --- Candidates --------------------------------------------------------------

LeaseTable::Candidate& LeaseTable::Get(const std::string& candidate_id) {
  return *candidates_.at(candidate_id);
}

const LeaseTable::Candidate* LeaseTable::Find(
    const std::string& candidate_id) const {
  const auto found = candidates_.find(candidate_id);
  return found == candidates_.end() ? nullptr : found->second.get();
}

void LeaseTable::Count(const std::string& queue, State state, int change) {
  const auto at = counts_.try_emplace(queue).first;
  QueueCounts& counts = at->second;
  switch (state) {
    case State::kHeld:
      counts.held += change;
      break;
    case State::kReady:
      counts.ready += change;
      break;
    case State::kLeased:
      counts.leased += change;
      break;
    case State::kDoubted:
      counts.committing += change;
      break;
    case State::kCommitting:
      counts.committing += change;
      committing_ += change;
      break;
  }
  if (counts.outstanding() == 0) counts_.erase(at);
}

void LeaseTable::SetState(Candidate& candidate, State state) {
  if (candidate.state == State::kHeld) {
    held_.erase(candidate.work.candidate_id);
  }
  Count(candidate.work.queue, state, +1);
  Count(candidate.work.queue, std::exchange(candidate.state, state), -1);
}

const LeaseTable::Candidate& LeaseTable::Add(WorkItem work, State state) {
  std::unique_ptr<Candidate>& slot = candidates_[work.candidate_id];
  slot = std::make_unique<Candidate>();
  slot->work = std::move(work);
  slot->state = state;
  slot->stages.queued = clock_.Monotonic();
  if (state == State::kHeld) {
    slot->held_since = slot->stages.queued;
    held_.insert(slot->work.candidate_id);
  }
  Count(slot->work.queue, state, +1);
  return *slot;
}

void LeaseTable::Erase(const std::string& candidate_id) {
  const auto found = candidates_.find(candidate_id);
  const Candidate& candidate = *found->second;
  if (candidate.state == State::kLeased) End(candidate.lease_id);
  if (candidate.state == State::kDoubted) {
    EraseValue(doubted_of_, candidate.reported_by, found->first);
  }
  if (candidate.state == State::kHeld) held_.erase(found->first);
  Count(candidate.work.queue, candidate.state, -1);
  candidates_.erase(found);
}

std::vector<std::string> LeaseTable::CandidatesOf(
    const std::string& queue) const {
  std::vector<std::string> ids;
  for (const auto& [id, candidate] : candidates_) {
    if (candidate->work.queue == queue) ids.push_back(id);
  }
  return ids;
}

std::vector<std::string> LeaseTable::HeldFor(absl::Duration hold) const {
  const absl::Duration now = clock_.Monotonic();
  std::vector<std::string> ids;
  for (const std::string& id : held_) {
    if (now - candidates_.at(id)->held_since >= hold) ids.push_back(id);
  }
  return ids;
}

void LeaseTable::Release(const std::string& candidate_id) {
  SetState(Get(candidate_id), State::kReady);
}

// --- Leases ------------------------------------------------------------------

Lease LeaseTable::Grant(const std::string& candidate_id, const Holder& to,
                        absl::Duration charged) {
  Candidate& candidate = Get(candidate_id);
  Lease lease;
  lease.attempt = ++candidate.attempts;
  lease.lease_id =
      options_.new_lease_id
          ? options_.new_lease_id()
          : MakeLeaseId(options_.lease_key, {.candidate_id = candidate_id,
                                             .attempt = candidate.attempts,
                                             .device_id = to.device_id});
  lease.item = candidate.work;
  SetState(candidate, State::kLeased);
  candidate.lease_id = lease.lease_id;
  const absl::Duration now = clock_.Monotonic();
  candidate.stages = {.queued = candidate.stages.queued, .leased = now};
  ActiveLease& active = leases_[lease.lease_id];
  active = {
      .lease_id = lease.lease_id,
      .candidate_id = candidate_id,
      .device = to.name,
      .device_id = to.device_id,
      .expires = now + options_.timeouts.lease_duration,
      .granted_at = now,
      .charged = charged,
  };
  leases_of_[to.name].insert(lease.lease_id);
  EnterPhase(active, Phase::kGranted, to.capacity);
  return lease;
}

const LeaseTable::ActiveLease* LeaseTable::FindLease(
    const std::string& lease_id) const {
  const auto found = leases_.find(lease_id);
  return found == leases_.end() ? nullptr : &found->second;
}

absl::Duration LeaseTable::BuildLimit(const ActiveLease& lease) const {
  return candidates_.at(lease.candidate_id)->work.options.build_timeout +
         options_.timeouts.phase_grace;
}

absl::Duration LeaseTable::RunLimit(const ActiveLease& lease) const {
  return candidates_.at(lease.candidate_id)->work.options.run_timeout +
         options_.timeouts.phase_grace;
}

void LeaseTable::EnterPhase(ActiveLease& lease, Phase phase, int capacity) {
  const absl::Duration now = clock_.Monotonic();
  Stages& stages = Get(lease.candidate_id).stages;
  absl::Duration limit;
  switch (phase) {
    case Phase::kBuilding:
      limit = BuildLimit(lease);
      stages.building = now;
      break;
    case Phase::kRunning:
      limit = RunLimit(lease);
      stages.running = now;
      break;
    case Phase::kBuilt:
      stages.built = now;
      [[fallthrough]];
    case Phase::kGranted: {
      // The candidate waits for those that the worker took before it. Some of
      // these may be leases of a former server process, whose limits are not
      // known here, so each of the worker's places counts as the longest.
      const std::set<std::string>& ids = leases_of_.at(lease.device);
      for (const std::string& id : ids) {
        const ActiveLease& other = leases_.at(id);
        limit = std::max(limit, BuildLimit(other) + RunLimit(other));
      }
      limit *= std::max(capacity, static_cast<int>(ids.size()));
      break;
    }
  }
  lease.phase = phase;
  lease.phase_ends = now + limit;
}

bool LeaseTable::Renew(const HeldLease& lease, const Holder& by) {
  const auto found = leases_.find(lease.lease_id);
  if (found == leases_.end()) return false;
  ActiveLease& active = found->second;
  if (active.device != by.name) return true;
  active.expires = clock_.Monotonic() + options_.timeouts.lease_duration;
  if (active.phase < lease.phase) EnterPhase(active, lease.phase, by.capacity);
  return true;
}

int LeaseTable::CountOf(const std::string& device) const {
  const auto found = leases_of_.find(device);
  return found == leases_of_.end() ? 0 : static_cast<int>(found->second.size());
}

std::vector<std::string> LeaseTable::LeasesOf(const std::string& device) const {
  return ValuesOf(leases_of_, device);
}

std::vector<std::string> LeaseTable::Expired() const {
  const absl::Duration now = clock_.Monotonic();
  std::vector<std::string> ids;
  for (const auto& [id, lease] : leases_) {
    if (now >= lease.expires || now > lease.phase_ends) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());  // the map has no order of its own
  return ids;
}

LeaseTable::ActiveLease LeaseTable::End(const std::string& lease_id) {
  const auto found = leases_.find(lease_id);
  ActiveLease ended = std::move(found->second);
  leases_.erase(found);
  EraseValue(leases_of_, ended.device, ended.lease_id);
  return ended;
}

LeaseTable::Loss LeaseTable::Lose(const std::string& lease_id, bool counts) {
  Loss loss;
  loss.lease = End(lease_id);
  const ActiveLease& lease = loss.lease;
  Candidate& candidate = Get(lease.candidate_id);
  candidate.lost_leases.push_back({.lease_id = lease.lease_id,
                                   .device_id = lease.device_id,
                                   .attempt = candidate.attempts});
  candidate.lease_id.clear();
  if (counts) ++candidate.losses;
  if (lease.phase == Phase::kRunning) ++candidate.running_losses;
  const bool while_running =
      candidate.running_losses >= options_.timeouts.max_running_losses;
  loss.given_up =
      while_running || candidate.losses >= options_.timeouts.max_losses;
  if (loss.given_up) {
    loss.error = absl::StrCat(
        "the device was lost ",
        while_running ? candidate.running_losses : candidate.losses,
        while_running ? " times while it ran" : " times while it held",
        " the candidate, last ", lease.device);
  }
  SetState(candidate, loss.given_up ? State::kCommitting : State::kReady);
  return loss;
}

// --- Results -----------------------------------------------------------------

bool LeaseTable::WasGranted(const Candidate& candidate,
                            const WorkerResult& result,
                            const Holder& from) const {
  // A lease id stands for one attempt; a result may leave the attempt out.
  const auto agrees = [&](uint32_t attempt) {
    return result.attempt == attempt || result.attempt == 0;
  };
  const auto active = leases_.find(result.lease_id);
  if (active != leases_.end()) {
    return active->second.candidate_id == result.candidate_id &&
           active->second.device == from.name && agrees(candidate.attempts);
  }
  for (const LostLease& lost : candidate.lost_leases) {
    if (lost.lease_id != result.lease_id) continue;
    return lost.device_id == from.device_id && agrees(lost.attempt);
  }
  return ProvesLease(options_.lease_key, result.lease_id,
                     {.candidate_id = result.candidate_id,
                      .attempt = result.attempt,
                      .device_id = from.device_id});
}

LeaseTable::Verdict LeaseTable::Judge(const WorkerResult& result,
                                      const Holder& from) const {
  const Candidate* const found = Find(result.candidate_id);
  if (found == nullptr) return Verdict::kSuperseded;
  const Candidate& candidate = *found;
  const bool current = candidate.lease_id == result.lease_id;
  if (candidate.state == State::kCommitting ||
      candidate.state == State::kDoubted) {
    return current ? Verdict::kRepeated : Verdict::kSuperseded;
  }
  if (!WasGranted(candidate, result, from)) return Verdict::kNotGranted;
  if (current) return Verdict::kAccepted;
  // The lease was lost, or a former process granted it.
  const std::vector<LostLease>& lost = candidate.lost_leases;
  const bool granted_here = std::any_of(
      lost.begin(), lost.end(),
      [&](const LostLease& one) { return one.lease_id == result.lease_id; });
  const bool replaced =
      granted_here && (candidate.state == State::kLeased ||
                       lost.back().lease_id != result.lease_id);
  return replaced ? Verdict::kSuperseded : Verdict::kAccepted;
}

std::optional<LeaseTable::ActiveLease> LeaseTable::Accept(
    const WorkerResult& result, const Holder& from) {
  Candidate& candidate = Get(result.candidate_id);
  std::optional<ActiveLease> ended;
  if (candidate.state == State::kLeased) ended = End(candidate.lease_id);
  candidate.lease_id = result.lease_id;
  candidate.stages.reported = clock_.Monotonic();
  candidate.reported_by = from.name;
  candidate.reported_by_id = from.device_id;
  SetState(candidate, State::kCommitting);
  return ended;
}

void LeaseTable::Doubt(const std::string& candidate_id,
                       Measurement measurement) {
  Candidate& candidate = Get(candidate_id);
  SetState(candidate, State::kDoubted);
  candidate.doubted = std::move(measurement);
  doubted_of_[candidate.reported_by].insert(candidate_id);
}

std::vector<std::string> LeaseTable::DoubtedOf(
    const std::string& device) const {
  return ValuesOf(doubted_of_, device);
}

Measurement LeaseTable::Confirm(const std::string& candidate_id) {
  Candidate& candidate = Get(candidate_id);
  EraseValue(doubted_of_, candidate.reported_by, candidate_id);
  SetState(candidate, State::kCommitting);
  return std::exchange(candidate.doubted, {});
}

void LeaseTable::Retract(const std::string& candidate_id, bool counts) {
  Candidate& candidate = Get(candidate_id);
  EraseValue(doubted_of_, candidate.reported_by, candidate_id);
  if (counts) ++candidate.doubts;
  candidate.lost_leases.push_back(
      {.lease_id = std::exchange(candidate.lease_id, {}),
       .device_id = std::exchange(candidate.reported_by_id, {}),
       .attempt = candidate.attempts});
  candidate.reported_by.clear();
  candidate.doubted = {};
  SetState(candidate, State::kReady);
}

// --- Figures -----------------------------------------------------------------

QueueCounts LeaseTable::Counts(const std::string& queue) const {
  const auto found = counts_.find(queue);
  return found == counts_.end() ? QueueCounts() : found->second;
}

LeaseFigures LeaseTable::Figures() const {
  LeaseFigures figures;
  for (const auto& [id, lease] : leases_) {
    switch (lease.phase) {
      case Phase::kGranted:
        ++figures.leases_granted;
        break;
      case Phase::kBuilding:
        ++figures.leases_building;
        break;
      case Phase::kBuilt:
        ++figures.leases_built;
        break;
      case Phase::kRunning:
        ++figures.leases_running;
        break;
    }
  }
  for (const auto& [id, candidate] : candidates_) {
    switch (candidate->state) {
      case State::kHeld:
        ++figures.candidates_held;
        break;
      case State::kReady:
        ++figures.candidates_ready;
        break;
      case State::kLeased:
        ++figures.candidates_leased;
        break;
      case State::kDoubted:
        ++figures.candidates_doubted;
        break;
      case State::kCommitting:
        ++figures.candidates_committing;
        break;
    }
  }
  return figures;
}

}  // namespace tilefarm::farm
