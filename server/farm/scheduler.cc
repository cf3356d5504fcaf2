#include "server/farm/scheduler.h"

#include <utility>

#include "database/record.h"

namespace tilefarm::farm {

Scheduler::Scheduler(absl::Duration priority_aging, Clock& clock)
    : clock_(clock), shares_(priority_aging) {}

// --- Queues ------------------------------------------------------------------

Scheduler::Queue& Scheduler::QueueOf(const std::string& name) {
  const auto [at, is_new] = queues_.try_emplace(name);
  if (is_new) {
    shares_.Open(name, /*user=*/"", /*priority=*/0, /*urgent=*/false,
                 clock_.Monotonic());
  }
  return at->second;
}

void Scheduler::OpenQueue(const std::string& queue, const QueueTerms& terms) {
  Queue& entry = QueueOf(queue);
  entry.terms = terms;
  index_.SetTerms(queue, terms.user, terms.requirements);
  shares_.Open(queue, terms.user, terms.priority, entry.urgent,
               clock_.Monotonic());
}

void Scheduler::SetUrgent(const std::string& queue) {
  Queue& entry = QueueOf(queue);
  entry.urgent = true;
  shares_.Open(queue, entry.terms.user, entry.terms.priority, /*urgent=*/true,
               clock_.Monotonic());
}

void Scheduler::RemoveQueue(const std::string& queue) {
  queues_.erase(queue);
  index_.RemoveQueue(queue);
  shares_.Close(queue);
}

// --- Ready candidates --------------------------------------------------------

void Scheduler::Push(const WorkItem& work, bool front) {
  Queue& queue = QueueOf(work.queue);
  queue.ready[work.candidate_id] =
      index_.Push(work.queue, work.candidate_id,
                  {.target_key = work.target.Key(),
                   .device = work.device,
                   .kernels = database::LibraryOf(work.trace)},
                  work.target, front);
}

void Scheduler::Remove(const WorkItem& work) {
  const auto queue = queues_.find(work.queue);
  if (queue == queues_.end()) return;
  const auto place = queue->second.ready.find(work.candidate_id);
  if (place == queue->second.ready.end()) return;
  index_.Remove(place->second);
  queue->second.ready.erase(place);
}

// --- Devices -----------------------------------------------------------------

void Scheduler::SetDevice(const std::string& name,
                          const GrantIndex::Device& device) {
  index_.SetDevice(name, device);
}

void Scheduler::SetAvailability(const std::string& name,
                                const Availability& availability) {
  index_.SetState(name, availability.works, availability.free,
                  availability.slots);
}

void Scheduler::ForgetDevice(const std::string& name) {
  index_.ForgetDevice(name);
}

int64_t Scheduler::SlotsFor(const target::Target& target,
                            const QueueTerms& terms) const {
  return index_.SlotsFor(terms.user, terms.requirements, target);
}

// --- Grants ------------------------------------------------------------------

std::optional<Scheduler::Grant> Scheduler::GrantTo(const std::string& device) {
  const absl::Duration now = clock_.Monotonic();
  const std::string* const first = shares_.First(index_.QueuesFor(device), now);
  if (first == nullptr) return std::nullopt;
  const std::string queue = *first;
  auto candidate_id = index_.Take(queue, device);
  if (!candidate_id.has_value()) return std::nullopt;
  queues_.at(queue).ready.erase(*candidate_id);
  return Grant{.device = device,
               .candidate_id = *std::move(candidate_id),
               .charged = shares_.Grant(queue, now)};
}

std::optional<Scheduler::Grant> Scheduler::Next(Rounds& rounds) {
  while (index_.has_ready()) {
    const auto device = index_.NextDevice(rounds.last_device);
    if (!device.has_value()) {
      if (!std::exchange(rounds, {}).granted) return std::nullopt;
      continue;
    }
    rounds.last_device = *device;
    auto grant = GrantTo(*device);
    if (!grant.has_value()) continue;
    rounds.granted = true;
    return grant;
  }
  return std::nullopt;
}

std::string Scheduler::Settle(const std::string& queue, absl::Duration charged,
                              absl::Duration used) {
  const auto found = queues_.find(queue);
  if (found == queues_.end()) return "";
  const std::string& user = found->second.terms.user;
  shares_.Settle(user, queue, charged, used);
  return user;
}

}  // namespace tilefarm::farm
