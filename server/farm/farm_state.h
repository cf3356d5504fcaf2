// The farm's tables; private to farm*.cc.
#ifndef TILEFARM_SERVER_FARM_FARM_STATE_H_
#define TILEFARM_SERVER_FARM_FARM_STATE_H_

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "server/farm/farm.h"

namespace tilefarm::farm {

struct Farm::ActiveLease {
  std::string candidate_id;
  std::string worker;  // name
  Phase phase = Phase::kGranted;
  absl::Duration phase_ends;  // it is lost after, although renewed
  absl::Duration expires;
  absl::Duration granted_at;
  absl::Duration charged;  // to its user, in advance
};

enum class Farm::ItemState {
  kNew,
  kHeld,
  kReady,
  kLeased,
  kDoubted,  // reported, and waits for the device's canary
  kCommitting,
};

struct Farm::Item {
  using State = ItemState;

  WorkItem work;
  GrantIndex::Demand demand;
  State state = State::kNew;  // changed by SetState and MakeReady alone
  GrantIndex::Place place;    // while kReady
  std::string lease_id;       // the current one, or the one reported
  // Leases of this process that were lost, in order.
  struct LostLease {
    std::string lease_id;
    std::string device_id;
    uint32_t attempt = 0;
  };
  std::vector<LostLease> lost_leases;
  uint32_t attempts = 0;
  int running_losses = 0;
  int losses = 0;  // in any phase
  absl::Duration held_since;
  std::string reported_by;  // name of the worker; empty: by nobody
  Measurement doubted;      // while kDoubted
  int doubts = 0;           // so often it was taken back
};

struct Farm::Worker {
  std::string name;
  std::string boot_id;
  DeviceProperties properties;
  target::Target target;
  std::string incompatible;  // why it gets no leases; empty: it does
  int64_t session = 0;       // 0: not connected
  std::shared_ptr<WorkerLink> link;
  bool draining = false;
  // Leases it can hold, itself said so.
  int capacity = 0;
  // It does not read what it was sent.
  bool clogged = false;
  // It holds leases that this process did not grant.
  bool has_unknown_leases = false;
  std::set<std::string> leases;
  absl::Time last_seen;
  std::string offline_reason;
  std::deque<absl::Duration> reported_at;  // within the rate window
  absl::Duration last_report = -absl::InfiniteDuration();
  std::string device_state;  // of the latest measurement

  KnownDevice known;
  DeviceHealth health;
  std::string device_id;  // that `health` is about; empty: never connected
  std::string device_model;
  absl::Duration canary_at = absl::InfiniteDuration();  // in canaries_
  std::set<std::string> doubted;                        // candidate ids

  bool accepts() const {
    return session != 0 && incompatible.empty() && !draining &&
           known.order == Order::kNone;
  }
  bool takes_leases(absl::Duration now) const {
    return accepts() && health.works(now);
  }
  bool has_slot() const {
    return !clogged && static_cast<int>(leases.size()) < capacity;
  }
  // Takes leases, or will once its first canary has passed.
  bool is_promising(absl::Duration now) const {
    return accepts() && health.promising(now);
  }
};

struct Farm::Queue {
  QueueTerms terms;
  bool urgent = false;
};

}  // namespace tilefarm::farm

#endif  // TILEFARM_SERVER_FARM_FARM_STATE_H_
