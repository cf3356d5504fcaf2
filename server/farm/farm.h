// The farm: which devices there are, what waits to be measured, and who
// measures what. Pure logic under one lock: no threads, no wire, time from a
// Clock.
//
//            Add                Grant (idle slot that fits)
//   (new) ---------> ready -----------------------> leased
//   (former) -> held --^  ^----- lost, requeued -----'  |
//                                                       | result, or third
//                                                       v loss while running
//            Committed: acknowledged  <---------- committing
//
// A lease is granted, building, built (it waits for the device's cores),
// running, then reported, lost or cancelled. It is lost when it is not renewed
// in time, when its worker restarts, or when a phase exceeds its limit: the
// candidate's own while it is built or runs, those of all that the worker may
// hold while it waits. The first result of a candidate
// whose lease was not replaced counts, also if a former server process granted
// it (lease_id.h) or the lease was lost but not granted again; others are
// acknowledged as superseded, so that workers' spools drain.
#ifndef TILEFARM_SERVER_FARM_FARM_H_
#define TILEFARM_SERVER_FARM_FARM_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "proto/tilefarm/v1/protocol_version.h"
#include "server/farm/confirmed_best.h"
#include "server/farm/device.h"
#include "server/farm/grant_index.h"
#include "server/farm/health.h"
#include "server/farm/requirement.h"
#include "server/farm/shares.h"
#include "server/farm/timeouts.h"
#include "server/farm/work.h"

namespace tilefarm::farm {

using v1::kProtocolVersion;

// In the order in which a lease goes through them. What is granted or built
// waits for what else the worker holds.
enum class Phase { kGranted, kBuilding, kBuilt, kRunning };

// A candidate as handed to one worker.
struct Lease {
  std::string lease_id;  // 128 random bits in hexadecimal
  uint32_t attempt = 1;
  WorkItem item;
  double best_seconds = 0;  // of its task so far; 0: none
};

struct HeldLease {
  std::string lease_id;
  uint32_t attempt = 0;
  Phase phase = Phase::kGranted;
  bool reported = false;  // done: its result waits to be sent or acknowledged
};

struct WorkerHello {
  uint32_t protocol_version = 0;
  std::string name;
  std::string boot_id;
  std::string fingerprint;
  // The name of the credential that it came with; empty: nobody proved one.
  std::string owner;
  DeviceProperties device;
};

struct WorkerResult {
  std::string lease_id;
  uint32_t attempt = 1;  // 0: not said
  std::string candidate_id;
  Measurement measurement;
};

// The way to one connected worker. Called with the farm's lock held: the
// methods only enqueue, never block, and never call the farm.
class WorkerLink {
 public:
  virtual ~WorkerLink() = default;
  virtual void SendLease(const Lease& lease) = 0;
  virtual void SendCancel(const std::string& lease_id) = 0;
  // May wait for a message to go with ...
  virtual void SendAck(const std::string& lease_id, bool superseded) = 0;
  // ... which those are sent without that have waited for so long.
  virtual void FlushAcks(absl::Duration waited) = 0;
  // So much waits to be read by the worker that nothing may be handed out to
  // it.
  virtual bool Clogged() { return false; }
  // Ends the stream; nothing is sent after.
  virtual void Close(const absl::Status& why) = 0;
};

// Where accepted results go. Called with the farm's lock held, under the same
// rule; Farm::Committed is called once the result is durable.
class ResultSink {
 public:
  virtual ~ResultSink() = default;
  virtual void OnResult(Completion completion) = 0;
};

// What the farm found out or did by itself, for the audit log.
struct DeviceEvent {
  absl::Time at;
  std::string device;  // name
  // "connect", "disconnect", "release" (a reservation ran out), or a
  // HealthChange's.
  std::string action;
  std::string detail;
};

// Called with the farm's lock held: only enqueues.
class DeviceListener {
 public:
  virtual ~DeviceListener() = default;
  virtual void OnDeviceEvent(const DeviceEvent& event) = 0;
};

// Whose queue it is, and what it demands of a device.
struct QueueTerms {
  std::string user;
  int priority = 0;  // among the user's own
  Requirements requirements;
};

struct FarmOptions {
  Timeouts timeouts;
  HealthRules health;
  // The canary for a device's target: what to build and run, and the limits.
  // Null, or nullopt: such devices are trusted without.
  std::function<std::optional<WorkItem>(const target::Target& device)> canary;
  Clock* clock = &Clock::Real();
  // The server's compiler; workers of another get no leases.
  std::string fingerprint;
  // The database's key for lease ids (lease_id.h). Empty: results of a former
  // process's leases are not taken.
  std::string lease_key;
  // In place of MakeLeaseId, for tests.
  std::function<std::string()> new_lease_id;
  // Names of devices, connected or not: of one owner, and in all.
  int most_devices_of_owner = 1024;
  int most_devices = 8192;
};

struct QueueCounts {
  int ready = 0;   // waiting for a device
  int leased = 0;  // on a device
  int held = 0;    // of a former server process
  int committing = 0;
  int outstanding() const { return ready + leased + held + committing; }
};

// How much there is of what, for metrics.
struct FarmFigures {
  int leases_granted = 0, leases_building = 0;
  int leases_built = 0, leases_running = 0;
  int candidates_held = 0, candidates_ready = 0, candidates_leased = 0;
  int candidates_doubted = 0, candidates_committing = 0;
  // Known times of canaries, by device name.
  std::vector<std::pair<std::string, double>> canary_seconds;
};

enum class Where { kBack, kFront, kHeldFromFormerProcess };

// Thread-safe.
class Farm {
 public:
  explicit Farm(FarmOptions options);
  ~Farm();
  // Before the first result.
  void SetSink(ResultSink* sink);
  // Before the first connection.
  void SetListener(DeviceListener* listener);

  // --- Workers ---
  // The session that the worker's further messages name. A connected worker of
  // the same name is replaced: its stream is closed; its leases are kept where
  // the boot id is the same, lost otherwise. InvalidArgument: no name, boot id
  // or target; FailedPrecondition: another protocol version;
  // ResourceExhausted: too many devices.
  absl::StatusOr<int64_t> Connect(const WorkerHello& hello,
                                  std::shared_ptr<WorkerLink> link);
  // Renews the leases held. `slots`: leases that the worker wants at once,
  // those held included. Messages of a replaced session are ignored.
  void OnState(int64_t session, std::span<const HeldLease> held, bool draining,
               int slots);
  // A result that does not belong to a lease of this device, or could not come
  // from it, is acknowledged as superseded and changes nothing.
  void OnResult(int64_t session, WorkerResult result);
  // The stream broke; leases stay until they expire.
  void Disconnect(int64_t session);
  // Closes every stream.
  void CloseAll(const absl::Status& why);

  // --- Work ---
  // AlreadyExists where the candidate is in the farm.
  absl::Status Add(WorkItem item, Where where = Where::kBack);
  // Before the queue's first item; otherwise it is nobody's and demands
  // nothing. Queues are served as shares.h says.
  void OpenQueue(const std::string& queue, const QueueTerms& terms);
  // Queues served before others of the same user: short requests that someone
  // waits for.
  void SetUrgent(const std::string& queue);
  // Forgets what is not yet reported and cancels its leases.
  void RemoveQueue(const std::string& queue);
  // The result is durable (or another was there first): acknowledges it. While
  // Timeouts::commit_backlog results are not, no leases are handed out.
  struct Commit {
    std::string candidate_id;
    bool superseded = false;
  };
  void Committed(std::span<const Commit> commits);
  void Committed(const std::string& candidate_id, bool superseded) {
    const Commit one{candidate_id, superseded};
    Committed({&one, 1});
  }
  // A median of a task, measured in full and verified. The best that is
  // confirmed (confirmed_best.h) goes with its leases.
  void NoteTime(const std::string& task_id, const std::string& device_id,
                double seconds);
  QueueCounts Counts(const std::string& queue) const;

  // --- Devices ---
  // Leases that the connected devices which fit can hold together.
  int SlotsFor(const target::Target& target,
               const QueueTerms& terms = {}) const;
  // Caches of the first device, by name, that is connected and fits; nullopt
  // where there is none.
  std::optional<target::CacheSizes> CachesFor(
      const target::Target& target, const QueueTerms& terms = {}) const;
  // The libraries of the same device.
  std::optional<std::vector<std::string>> LibrariesFor(
      const target::Target& target, const QueueTerms& terms = {}) const;
  // Why SlotsFor is 0, for people.
  std::string WhyNoDevice(const target::Target& target,
                          const QueueTerms& terms = {}) const;
  std::vector<DeviceStatus> Devices() const;
  FarmFigures Figures() const;  // farm_figures.cc

  // --- What operators decide (farm_orders.cc); NotFound: no such device ---
  // At the start: a device that may connect later.
  void Know(const KnownDevice& device);
  // ... and the best time of its canary, by device id.
  void KnowCanary(const std::string& device_id, double seconds);
  double CanarySeconds(const std::string& device_id) const;  // 0: not known
  // Drained and quarantined devices finish what they hold and get nothing new.
  // Without an order the device is as its canary finds it, at once.
  absl::Status SetOrder(const std::string& name, Order order,
                        const std::string& reason);
  // Only this user's queues are measured there; an empty user: everyone's.
  absl::Status Reserve(const std::string& name, const std::string& user,
                       absl::Time until);
  // FailedPrecondition while it is connected.
  absl::Status Forget(const std::string& name);

  // Expires leases and grants what can be granted.
  void Tick();

 private:
  struct ActiveLease;
  struct Item;
  struct Worker;
  struct Queue;
  enum class ItemState;

  Worker* FindSession(int64_t session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // From now on the phase's limit counts (Timeouts::phase_grace).
  void EnterPhase(ActiveLease& lease, Phase phase)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `hung`: the worker is there, but what it does takes too long.
  void Lose(const std::string& lease_id, bool hung = false)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LoseUntaken(const Worker& worker, std::span<const HeldLease> held)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ExpireLeases() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseHeld() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Report(Item& item, const Worker& worker, Measurement measurement)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Queue& QueueOf(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the queue's work may go to the device at all.
  bool Admits(const Worker& worker, const QueueTerms& terms) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // --- Granting (farm_grant.cc) ---
  Item& NewItem(WorkItem work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of an item that is not to be ready; see MakeReady.
  void SetState(Item& item, ItemState state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeReady(Item& item, bool front) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EraseItem(Item& item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // After every change to what the device is, holds or may do.
  void Classify(const Worker& worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Refresh(Worker& worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Lease MakeLease(Item& item, Worker& worker)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropLease(const std::string& lease_id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Grant() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool GrantOne(Worker& worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The device time of an ended lease goes to its user's account.
  void Charge(const ActiveLease& lease, const Item& item, Worker& worker)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // --- Health (farm_health.cc) ---
  void Note(const Worker& worker, const std::optional<HealthChange>& change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Note(const Worker& worker, const std::string& action,
            const std::string& detail) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HealthOnConnect(Worker& worker, bool restarted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool GrantCanary(Worker& worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeCanary(Item& item, Worker& worker, Measurement measurement)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LoseCanary(const std::string& candidate_id, Worker& worker, bool hung)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True where the result waits for the device's next canary.
  bool Doubt(Item& item, Worker& worker, Measurement& measurement)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What waited counts, or is measured again.
  void SettleDoubts(Worker& worker, bool trusted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ExpireReservations() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FillState(const Worker& worker, absl::Duration now,
                 DeviceStatus& status) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string NewLeaseId(const Item& item, const Worker& worker) const;
  absl::Status CheckDeviceCount(const WorkerHello& hello) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether this device was granted the lease that the result is of.
  bool WasGranted(const Item& item, const Worker& worker,
                  const WorkerResult& result) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const FarmOptions options_;
  Clock& clock_;

  mutable Mutex mutex_;
  ResultSink* sink_ ABSL_GUARDED_BY(mutex_) = nullptr;
  DeviceListener* listener_ ABSL_GUARDED_BY(mutex_) = nullptr;
  int64_t next_session_ ABSL_GUARDED_BY(mutex_) = 1;
  // By name, candidate id, lease id, queue name, task id.
  std::map<std::string, std::unique_ptr<Worker>> workers_
      ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::unique_ptr<Item>> items_
      ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, ActiveLease> leases_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Queue> queues_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, ConfirmedBest> best_ ABSL_GUARDED_BY(mutex_);
  Shares shares_ ABSL_GUARDED_BY(mutex_);
  // What would else be found by looking at every worker and item.
  GrantIndex index_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<int64_t, Worker*> sessions_ ABSL_GUARDED_BY(mutex_);
  int committing_ ABSL_GUARDED_BY(mutex_) = 0;  // items, of every queue
  std::map<std::string, QueueCounts> counts_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> held_ ABSL_GUARDED_BY(mutex_);  // candidate ids
  // When canaries are due of devices that can take one, and who rests: names.
  std::set<std::pair<absl::Duration, std::string>> canaries_
      ABSL_GUARDED_BY(mutex_);
  std::set<std::string> resting_ ABSL_GUARDED_BY(mutex_);
  // Best medians of canaries, by device id.
  std::map<std::string, double> canary_seconds_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tilefarm::farm

#endif  // TILEFARM_SERVER_FARM_FARM_H_
