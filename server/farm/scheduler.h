// Which ready candidate goes to which device next.
//
// Ready candidates wait in queues, one for each job and target. A device gets a
// candidate of the queue whose turn it is (shares.h: fair shares of device time
// between users, priorities between the queues of one user), among the queues
// that have one which the device fits (grant_index.h). All free devices are
// served in rounds, so that several share what there is.
//
// The scheduler chooses and forgets: who holds what is in the lease table, and
// whether a device is well is in the registry. A candidate that it returns is
// no longer with it; Push brings it back.
//
// Owned by Farm, whose lock guards it: not thread-safe. No method fails: a
// queue or device that is not known has nothing and gets nothing.
#ifndef TILEFARM_SERVER_FARM_SCHEDULER_H_
#define TILEFARM_SERVER_FARM_SCHEDULER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "absl/time/time.h"
#include "base/clock.h"
#include "compiler/target/target.h"
#include "server/farm/device.h"
#include "server/farm/grant_index.h"
#include "server/farm/requirement.h"
#include "server/farm/shares.h"
#include "server/farm/work.h"

namespace tilefarm::farm {

// The owner of a queue, and what it demands of a device.
struct QueueTerms {
  std::string user;
  int priority = 0;  // among the queues of the same user
  Requirements requirements;
};

class Scheduler {
 public:
  Scheduler(absl::Duration priority_aging, Clock& clock);

  // --- Queues ---
  // Before the queue's first candidate, or to change its terms. A queue that
  // was never opened belongs to nobody and demands nothing.
  void OpenQueue(const std::string& queue, const QueueTerms& terms);
  // The queue is served before the other queues of its user.
  void SetUrgent(const std::string& queue);
  // Its ready candidates go with it.
  void RemoveQueue(const std::string& queue);

  // --- Ready candidates, by queue and candidate id ---
  // `front`: before all other candidates of the queue. It must not wait
  // already.
  void Push(const WorkItem& work, bool front);
  // Nothing happens where it does not wait.
  void Remove(const WorkItem& work);

  // --- Devices, by name ---
  // What the device is. A new one is not available.
  void SetDevice(const std::string& name, const GrantIndex::Device& device);
  void SetAvailability(const std::string& name,
                       const Availability& availability);
  void ForgetDevice(const std::string& name);
  // DeviceFits for a known device. `wanted_key` is wanted.Key().
  bool Fits(const std::string& name, const target::Target& wanted,
            const std::string& wanted_key) const {
    return index_.Fits(name, wanted, wanted_key);
  }
  // Leases for the target that available devices can hold for such a queue.
  int64_t SlotsFor(const target::Target& target, const QueueTerms& terms) const;

  // --- Grants ---
  struct Grant {
    std::string device;
    std::string candidate_id;
    // Device time that the user was charged in advance, to be given to Settle.
    absl::Duration charged;
  };
  // Rounds over the free devices by name, each of which gets at most one
  // candidate a round.
  struct Rounds {
    std::string last_device;
    bool granted = false;  // in this round
  };
  // The next grant; nullopt: there is none. The caller updates the device's
  // availability before it calls again, each time with the same `rounds`.
  std::optional<Grant> Next(Rounds& rounds);
  // A lease of the queue ended after it took `used` of a device's time. Returns
  // the user who is charged; empty: the queue was removed, and nothing happens.
  std::string Settle(const std::string& queue, absl::Duration charged,
                     absl::Duration used);

 private:
  struct Queue {
    QueueTerms terms;
    bool urgent = false;
    // Places of ready candidates, by candidate id.
    std::unordered_map<std::string, GrantIndex::Place> ready;
  };

  Queue& QueueOf(const std::string& name);
  std::optional<Grant> GrantTo(const std::string& device);

  Clock& clock_;
  std::map<std::string, Queue> queues_;
  Shares shares_;
  GrantIndex index_;
};

}  // namespace tilefarm::farm

#endif  // TILEFARM_SERVER_FARM_SCHEDULER_H_
