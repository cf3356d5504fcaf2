// The farm as services and jobs see it: workers connect, candidates are added,
// devices get them as leases, and results come back.
//
//                                Farm
//          lock; talks to workers; hands results to the ResultSink
//             |                    |                    |
//     DeviceRegistry           Scheduler            LeaseTable
//     who is connected,        which ready          who holds what, in which
//     and how well it is       candidate goes       phase, until when; which
//                              to which device      result is accepted
//
// The three parts do not know each other. Farm calls one after another under
// its lock, so that an event is seen by all of them or by none: a result ends a
// lease, settles its device time, frees a place on the device and leads to the
// next grant. Farm adds what needs several parts: canaries, results that wait
// for one (health.h), the answers about devices, and the audit log.
//
// One lock, no threads, no wire, time from a Clock.
#ifndef TILEFARM_SERVER_FARM_FARM_H_
#define TILEFARM_SERVER_FARM_FARM_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "server/farm/confirmed_best.h"
#include "server/farm/device.h"
#include "server/farm/device_registry.h"
#include "server/farm/health.h"
#include "server/farm/lease.h"
#include "server/farm/lease_table.h"
#include "server/farm/scheduler.h"
#include "server/farm/timeouts.h"
#include "server/farm/work.h"
#include "server/farm/worker_link.h"

namespace tilefarm::farm {

// Where accepted results go. Called with the farm's lock held: only enqueues,
// and never calls the farm. Farm::Committed is called when the result is
// durable.
class ResultSink {
 public:
  virtual ~ResultSink() = default;
  virtual void OnResult(Completion completion) = 0;
};

struct FarmOptions {
  Timeouts timeouts;
  HealthRules health;
  // The canary for a device's target: what to build and run, and the limits.
  // Null, or nullopt: such devices are trusted without one.
  std::function<std::optional<WorkItem>(const target::Target& device)> canary;
  Clock* clock = &Clock::Real();
  // The server's compiler; workers with another one get no leases.
  std::string fingerprint;
  // The database's key for lease ids (lease_id.h). Empty: results of a former
  // process's leases are not accepted.
  std::string lease_key;
  // Replaces MakeLeaseId in tests.
  std::function<std::string()> new_lease_id;
  // Bounds on the names of devices, connected or not: of one owner, and in all.
  int most_devices_of_owner = 1024;
  int most_devices = 8192;
};

// Counts for metrics.
struct FarmFigures : LeaseFigures {
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
  // Returns the session that the worker's further messages name. A connected
  // worker of the same name is replaced: its stream is closed; its leases are
  // kept if the boot id is the same, and lost otherwise. InvalidArgument: no
  // name, boot id or target; FailedPrecondition: another protocol version;
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
  // AlreadyExists: the candidate is in the farm.
  absl::Status Add(WorkItem item, Where where = Where::kBack);
  // Scheduler::OpenQueue, SetUrgent.
  void OpenQueue(const std::string& queue, const QueueTerms& terms);
  void SetUrgent(const std::string& queue);
  // Forgets candidates that have no accepted result and cancels their leases.
  void RemoveQueue(const std::string& queue);
  // The result is durable, or another was there first: acknowledges it. While
  // Timeouts::commit_backlog results are not durable, no leases are granted.
  struct Commit {
    std::string candidate_id;
    bool superseded = false;
  };
  void Committed(std::span<const Commit> commits);
  void Committed(const std::string& candidate_id, bool superseded) {
    const Commit one{candidate_id, superseded};
    Committed({&one, 1});
  }
  // A median of a race (WorkItem), measured in full and verified. The confirmed
  // best time (confirmed_best.h) is sent with the race's leases.
  void NoteTime(const std::string& race, const std::string& device_id,
                double seconds);
  QueueCounts Counts(const std::string& queue) const;
  // The name of the device that has the lease, where the lease is a comparison
  // of this artifact; empty: there is none.
  std::string HolderOfArtifact(const std::string& lease_id,
                               const std::string& sha256) const;

  // --- Devices (farm_devices.cc) ---
  // Leases that the connected devices which fit can hold together.
  int SlotsFor(const target::Target& target,
               const QueueTerms& terms = {}) const;
  // Caches of the first device, by name, that is connected and fits; nullopt:
  // there is none.
  std::optional<target::CacheSizes> CachesFor(
      const target::Target& target, const QueueTerms& terms = {}) const;
  // The libraries of the same device.
  std::optional<std::vector<std::string>> LibrariesFor(
      const target::Target& target, const QueueTerms& terms = {}) const;
  // A device that may get such work, for those who choose one themselves.
  struct Choice {
    std::string name;
    std::string device_class;  // DeviceClass
    std::string device_model;  // devices of one class have the same
    bool idle = false;
    bool unsteady = false;
  };
  // The idle ones first, then by number of leases and by name.
  std::vector<Choice> Choices(const target::Target& target,
                              const QueueTerms& terms = {}) const;
  // Why SlotsFor is 0, for people.
  std::string WhyNoDevice(const target::Target& target,
                          const QueueTerms& terms = {}) const;
  std::vector<DeviceStatus> Devices() const;
  // Device time of each user since the last call.
  std::map<std::string, absl::Duration> TakeDeviceTime();
  FarmFigures Figures() const;

  // --- What operators decide (farm_devices.cc); NotFound: no such device ---
  // At the start: a device that may connect later.
  void Know(const KnownDevice& device);
  // The best time of its canary, by device id; 0: not known.
  void KnowCanary(const std::string& device_id, double seconds);
  double CanarySeconds(const std::string& device_id) const;
  // Drained and quarantined devices finish what they hold and get nothing new.
  // Without an order the device gets a canary at once, which decides.
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
  using Device = DeviceRegistry::Device;
  using Candidate = LeaseTable::Candidate;

  // --- Leases ---
  void GrantAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Grant(const Scheduler::Grant& grant)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  enum class Loss {
    kWorkerGone,
    kHung,     // the worker is there, but a phase takes too long
    kUntaken,  // the worker drains and has not begun; no fault of anybody
  };
  void Lose(const std::string& lease_id, Loss loss)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ExpireLeases() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseHeld() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tells the scheduler of a candidate that is ready again.
  void MakeReady(const std::string& candidate_id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Charges the user of an ended lease for the device time that it took, and
  // frees its place on the device.
  void Settle(const LeaseTable::ActiveLease& ended)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Hands the measurement of a candidate that is committing to the sink.
  void Deliver(const Candidate& candidate, const Device& device,
               Measurement measurement) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // --- Canaries and doubts (farm_health.cc) ---
  void GrantCanary(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LoseCanary(const std::string& candidate_id, const std::string& device,
                  Loss loss) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeCanary(const Candidate& candidate, const Device& device,
                  Measurement measurement)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The result of a candidate that is no canary: it is delivered, or waits for
  // the device's next canary.
  void TakeResult(const Candidate& candidate, const Device& device,
                  Measurement measurement)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Results that waited are delivered, or their candidates measured again.
  void SettleDoubts(const Device& device, bool trusted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // --- Devices ---
  LeaseTable::Holder HolderOf(const Device& device) const;
  // After every change to what the device may get.
  void Refresh(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // After every change to what the device is, or to its reservation.
  void Classify(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether work with these terms may go to the device at all.
  static bool Admits(const Device& device, const QueueTerms& terms);
  // The first device, by name, that may get such work; null: there is none.
  const Device* FirstFit(const target::Target& target,
                         const QueueTerms& terms) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const FarmOptions options_;
  Clock& clock_;

  mutable Mutex mutex_;
  ResultSink* sink_ ABSL_GUARDED_BY(mutex_) = nullptr;
  DeviceRegistry registry_ ABSL_GUARDED_BY(mutex_);
  LeaseTable leases_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, absl::Duration> device_time_ ABSL_GUARDED_BY(mutex_);
  Scheduler scheduler_ ABSL_GUARDED_BY(mutex_);
  // By task id.
  std::map<std::string, ConfirmedBest> best_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tilefarm::farm

#endif  // TILEFARM_SERVER_FARM_FARM_H_
