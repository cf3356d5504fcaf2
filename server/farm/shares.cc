#include "server/farm/shares.h"

#include <algorithm>
#include <utility>

namespace tilefarm::farm {
namespace {

// The charge for a lease before any was settled.
constexpr absl::Duration kFirstGuess = absl::Milliseconds(200);
// Weight of the newest lease in the average of a queue.
constexpr double kNewest = 0.25;

}  // namespace

void Shares::Open(const std::string& queue, const std::string& user,
                  int priority, bool urgent, absl::Duration now) {
  // Forgets users without queues who owe no device time.
  std::erase_if(users_, [&](const auto& entry) {
    return entry.second.queues == 0 &&
           entry.second.virtual_time <= virtual_now_;
  });
  const auto [at, is_new] = queues_.try_emplace(queue);
  Queue& entry = at->second;
  if (is_new || entry.user != user) {
    if (!is_new && --users_[entry.user].queues == 0) users_.erase(entry.user);
    const auto [person, is_first] = users_.try_emplace(user);
    if (is_first) person->second.virtual_time = virtual_now_;
    ++person->second.queues;
  }
  if (is_new) entry.served_at = now;
  entry.user = user;
  entry.priority = std::clamp(priority, kLowestPriority, kHighestPriority);
  entry.urgent = urgent;
}

void Shares::Close(const std::string& queue) {
  const auto at = queues_.find(queue);
  if (at == queues_.end()) return;
  const auto person = users_.find(at->second.user);
  queues_.erase(at);
  if (--person->second.queues > 0) return;
  // A user who owes device time is kept, so that submitting jobs one after the
  // other does not avoid the shares.
  if (person->second.virtual_time <= virtual_now_) users_.erase(person);
}

Shares::Key Shares::KeyOf(const std::string& name, absl::Duration now) const {
  const Queue& queue = queues_.at(name);
  const User& user = users_.at(queue.user);
  const int64_t aged = queue.priority + (now - queue.served_at) / aging_;
  return {std::max(user.virtual_time, virtual_now_), user.turn, !queue.urgent,
          -aged, queue.turn};
}

const std::string* Shares::First(std::span<const std::string* const> queues,
                                 absl::Duration now) const {
  const std::string* first = nullptr;
  Key least;
  for (const std::string* name : queues) {
    Key key = KeyOf(*name, now);
    if (first != nullptr && key >= least) continue;
    first = name;
    least = std::move(key);
  }
  return first;
}

absl::Duration Shares::Grant(const std::string& queue, absl::Duration now) {
  Queue& entry = queues_.at(queue);
  User& user = users_.at(entry.user);
  entry.served_at = now;
  entry.turn = user.turn = ++turns_;
  const absl::Duration charge =
      entry.typical == absl::ZeroDuration() ? kFirstGuess : entry.typical;
  virtual_now_ = std::max(user.virtual_time, virtual_now_);
  user.virtual_time = virtual_now_ + charge;
  return charge;
}

void Shares::Settle(const std::string& user, const std::string& queue,
                    absl::Duration charged, absl::Duration used) {
  const auto person = users_.find(user);
  if (person != users_.end()) {
    person->second.virtual_time += used - charged;
    if (person->second.queues == 0 &&
        person->second.virtual_time <= virtual_now_) {
      users_.erase(person);
    }
  }
  const auto at = queues_.find(queue);
  if (at == queues_.end()) return;
  absl::Duration& typical = at->second.typical;
  typical = typical == absl::ZeroDuration()
                ? used
                : (1 - kNewest) * typical + kNewest * used;
}

}  // namespace tilefarm::farm
