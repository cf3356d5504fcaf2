// Which queue is served next: fair shares of device time between users,
// priorities with aging between the queues of one user.
//
// Users: start-time fair queueing (Goyal, Vin, Cheng 1996). Each user has a
// virtual time that grows with the device time used; the user with the least
// virtual time is next. A new user starts with the current virtual time,
// without a claim on the past. A waiting user therefore gets a turn after at
// most one lease of each other user, whatever they have queued.
//
// Queues of one user: urgent ones first, then by priority, which grows by one
// for every `aging` that the queue has waited. A queue of low priority
// therefore waits at most (difference + 1) * aging for its next turn. Equal
// queues take turns.
//
// Not thread-safe.
#ifndef TILEFARM_SERVER_FARM_SHARES_H_
#define TILEFARM_SERVER_FARM_SHARES_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>

#include "absl/time/time.h"

namespace tilefarm::farm {

inline constexpr int kLowestPriority = -10;
inline constexpr int kHighestPriority = 10;

class Shares {
 public:
  explicit Shares(absl::Duration aging) : aging_(aging) {}

  // Opens the queue, or changes its user, priority and urgency.
  void Open(const std::string& queue, const std::string& user, int priority,
            bool urgent, absl::Duration now);
  void Close(const std::string& queue);

  // The queue to be served first, of open queues in order of name; null: the
  // list is empty.
  const std::string* First(std::span<const std::string* const> queues,
                           absl::Duration now) const;

  // The queue got a lease. Returns the device time that its user is charged in
  // advance, to be given to Settle together with the time used.
  absl::Duration Grant(const std::string& queue, absl::Duration now);
  // The queue may be closed by now.
  void Settle(const std::string& user, const std::string& queue,
              absl::Duration charged, absl::Duration used);

 private:
  struct Queue {
    std::string user;
    int priority = 0;
    bool urgent = false;
    absl::Duration served_at;  // when it was last served, or opened
    int64_t turn = 0;          // of the last lease
    absl::Duration typical;    // use of device time; zero: not known
  };
  struct User {
    absl::Duration virtual_time;
    int64_t turn = 0;
    int queues = 0;
  };

  // The least key is served first.
  using Key = std::tuple<absl::Duration, int64_t, bool, int64_t, int64_t>;
  Key KeyOf(const std::string& queue, absl::Duration now) const;

  const absl::Duration aging_;
  std::map<std::string, Queue> queues_;
  std::map<std::string, User> users_;
  absl::Duration virtual_now_;
  int64_t turns_ = 0;
};

}  // namespace tilefarm::farm

#endif  // TILEFARM_SERVER_FARM_SHARES_H_
