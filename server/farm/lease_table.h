// Every candidate in the farm, and which device holds a lease of it.
//
//               Add             Grant
//   (new) ------------> ready -----------> leased
//   (former) --> held --->^  ^--- Lose -----'  |
//               Release   |                    | Accept, or the last Lose
//                         |     Doubt          v
//                         |  .--------- committing --- Erase -->
//                 Retract |  v            ^
//                        doubted ---------'
//                                Confirm
//
// A lease passes through the phases granted, building, built and running, and
// ends when its result is accepted, when it is lost or when its candidate is
// erased. It is lost when its worker does not renew it in time, restarts, or
// exceeds the limit of a phase. Build and run have the candidate's own limits;
// the two waiting phases have the limits of everything that the worker may
// hold.
//
// The first result of a candidate whose lease was not replaced is accepted. The
// lease may be lost meanwhile, as long as the candidate was not granted again,
// and it may come from a former server process (lease_id.h).
//
// The table records grants and decides about results. It does not choose who
// gets a candidate (scheduler.h) and does not talk to workers (farm.h).
//
// Owned by Farm, whose lock guards it: not thread-safe. Candidates and leases
// that a method is given must exist, and a candidate must be in the state that
// the method starts from; anything else is a bug of the caller.
#ifndef TILEFARM_SERVER_FARM_LEASE_TABLE_H_
#define TILEFARM_SERVER_FARM_LEASE_TABLE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "server/farm/lease.h"
#include "server/farm/timeouts.h"
#include "server/farm/work.h"

namespace tilefarm::farm {

// Candidates of one queue.
struct QueueCounts {
  int ready = 0;   // waiting for a device
  int leased = 0;  // on a device
  int held = 0;    // granted by a former server process
  int committing = 0;
  int outstanding() const { return ready + leased + held + committing; }
};

// Leases by phase and candidates by state.
struct LeaseFigures {
  int leases_granted = 0, leases_building = 0;
  int leases_built = 0, leases_running = 0;
  int candidates_held = 0, candidates_ready = 0, candidates_leased = 0;
  int candidates_doubted = 0, candidates_committing = 0;
};

class LeaseTable {
 public:
  struct Options {
    Timeouts timeouts;
    // The database's key for lease ids. Empty: no lease of a former process is
    // believed.
    std::string lease_key;
    // Replaces MakeLeaseId in tests.
    std::function<std::string()> new_lease_id;
    Clock* clock = &Clock::Real();
  };

  // A device that may hold leases.
  struct Holder {
    std::string name;
    std::string device_id;
    int capacity = 0;  // leases that it can hold
  };

  enum class State { kHeld, kReady, kLeased, kDoubted, kCommitting };

  struct LostLease {
    std::string lease_id;
    std::string device_id;
    uint32_t attempt = 0;
  };

  struct Candidate {
    WorkItem work;
    State state = State::kReady;
    // The current lease, or the one whose result was accepted.
    std::string lease_id;
    // Leases of this process that were lost, in order.
    std::vector<LostLease> lost_leases;
    uint32_t attempts = 0;
    int running_losses = 0;
    int losses = 0;  // in any phase
    absl::Duration held_since;
    Stages stages;
    // The device whose result was accepted, by name and id; empty: none.
    std::string reported_by;
    std::string reported_by_id;
    Measurement doubted;  // in kDoubted
    int doubts = 0;       // how often a result was taken back
  };

  struct ActiveLease {
    std::string lease_id;
    std::string candidate_id;
    std::string device;  // name
    std::string device_id;
    Phase phase = Phase::kGranted;
    absl::Duration phase_ends;  // the lease is lost after, even if renewed
    absl::Duration expires;
    absl::Duration granted_at;
    absl::Duration charged;  // device time charged to its user in advance
  };

  explicit LeaseTable(Options options);

  // --- Candidates ---
  bool Contains(const std::string& candidate_id) const {
    return candidates_.contains(candidate_id);
  }
  // Null: the candidate is not in the farm. Valid until it is erased.
  const Candidate* Find(const std::string& candidate_id) const;
  // `state` is kReady or kHeld. The candidate must be new.
  const Candidate& Add(WorkItem work, State state);
  // Ends the candidate's lease, where it has one.
  void Erase(const std::string& candidate_id);
  // In no particular order.
  std::vector<std::string> CandidatesOf(const std::string& queue) const;
  // Candidates that have been held for `hold` or longer, by id.
  std::vector<std::string> HeldFor(absl::Duration hold) const;
  // From kHeld to kReady.
  void Release(const std::string& candidate_id);

  // --- Leases ---
  // From kReady to kLeased. `charged` is kept for when the lease ends.
  Lease Grant(const std::string& candidate_id, const Holder& to,
              absl::Duration charged);
  const ActiveLease* FindLease(const std::string& lease_id) const;
  // Takes a worker's word that it holds the lease: renews it and enters the
  // phase. Phases only go forward, so that toggling between them gains no time.
  // Nothing happens where another device holds the lease. False: no such lease.
  bool Renew(const HeldLease& lease, const Holder& by);
  int CountOf(const std::string& device) const;
  std::vector<std::string> LeasesOf(const std::string& device) const;
  // Leases that were not renewed in time or exceed the limit of a phase, by id.
  std::vector<std::string> Expired() const;

  struct Loss {
    ActiveLease lease;
    // After max_losses, or max_running_losses while running, the candidate is
    // not tried again: it is in kCommitting instead of kReady.
    bool given_up = false;
    std::string error;  // if given up: the error of its record
  };
  // From kLeased to kReady. `counts`: the loss may be the candidate's fault.
  Loss Lose(const std::string& lease_id, bool counts);

  // --- Results ---
  enum class Verdict {
    kAccepted,
    // It was accepted before, and is acknowledged once it is committed.
    kRepeated,
    // Its lease was replaced, the candidate has another result already, or it
    // is not in the farm.
    kSuperseded,
    // The device was not granted this attempt under this lease.
    kNotGranted,
  };
  Verdict Judge(const WorkerResult& result, const Holder& from) const;
  // For a result that Judge finds kAccepted: to kCommitting. Returns the lease
  // of the candidate that ends by this, which may be another device's; nullopt:
  // the candidate had none.
  std::optional<ActiveLease> Accept(const WorkerResult& result,
                                    const Holder& from);
  // From kCommitting to kDoubted: the measurement waits for its device's next
  // canary.
  void Doubt(const std::string& candidate_id, Measurement measurement);
  std::vector<std::string> DoubtedOf(const std::string& device) const;
  // From kDoubted to kCommitting. Returns the measurement.
  Measurement Confirm(const std::string& candidate_id);
  // From kDoubted to kReady: its lease counts as lost. `counts`: one more of
  // the candidate's HealthRules::max_doubts.
  void Retract(const std::string& candidate_id, bool counts);

  // --- Figures ---
  QueueCounts Counts(const std::string& queue) const;
  int committing() const { return committing_; }
  LeaseFigures Figures() const;

 private:
  Candidate& Get(const std::string& candidate_id);
  void SetState(Candidate& candidate, State state);
  // Adds `change` to the candidates of the queue that are in the state.
  void Count(const std::string& queue, State state, int change);
  // The lease is over, whatever becomes of its candidate.
  ActiveLease End(const std::string& lease_id);
  // The limit of the phase counts from now.
  void EnterPhase(ActiveLease& lease, Phase phase, int capacity);
  absl::Duration BuildLimit(const ActiveLease& lease) const;
  absl::Duration RunLimit(const ActiveLease& lease) const;
  // Whether the device was granted the lease that the result is of.
  bool WasGranted(const Candidate& candidate, const WorkerResult& result,
                  const Holder& from) const;

  const Options options_;
  Clock& clock_;
  // By candidate id.
  std::unordered_map<std::string, std::unique_ptr<Candidate>> candidates_;
  // By lease id.
  std::unordered_map<std::string, ActiveLease> leases_;
  // Lease ids and ids of doubted candidates, by name of the device.
  std::map<std::string, std::set<std::string>> leases_of_;
  std::map<std::string, std::set<std::string>> doubted_of_;
  std::map<std::string, QueueCounts> counts_;  // by queue
  std::set<std::string> held_;                 // candidate ids
  int committing_ = 0;
};

}  // namespace tilefarm::farm

#endif  // TILEFARM_SERVER_FARM_LEASE_TABLE_H_
