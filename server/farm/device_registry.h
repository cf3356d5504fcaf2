// The devices of the farm: which are known, which are connected, what they are,
// how well they are, and what operators decided about them.
//
// A device is known by its name from its first connection, or from the database
// when the server starts, until an operator forgets it. A connection is a
// session, with a number that is never used again; a device has one at most.
// Hardware that changes under a name keeps the name and the operators'
// decisions, and begins with no health of its own (DeviceId).
//
// The registry says when a device may get leases and when its next canary is
// due. It does not know leases or candidates (lease_table.h, scheduler.h): the
// caller says how many leases a device holds.
//
// Owned by Farm, whose lock guards it: not thread-safe. A name that a method is
// given must be known unless the method says otherwise.
#ifndef TILEFARM_SERVER_FARM_DEVICE_REGISTRY_H_
#define TILEFARM_SERVER_FARM_DEVICE_REGISTRY_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "compiler/target/target.h"
#include "proto/tilefarm/v1/protocol_version.h"
#include "server/farm/device.h"
#include "server/farm/health.h"
#include "server/farm/timeouts.h"
#include "server/farm/worker_link.h"

namespace tilefarm::farm {

using v1::kProtocolVersion;

// The first message of a worker.
struct WorkerHello {
  uint32_t protocol_version = 0;
  std::string name;
  std::string boot_id;
  std::string fingerprint;
  // Name of the credential that it was admitted with; empty: none was needed.
  std::string owner;
  DeviceProperties device;
};

// What happened to a device by itself, for the audit log.
struct DeviceEvent {
  absl::Time at;
  std::string device;  // name
  // "connect", "disconnect", "release" (a reservation ran out), or the action
  // of a HealthChange.
  std::string action;
  std::string detail;
};

// Called with the farm's lock held: only enqueues.
class DeviceListener {
 public:
  virtual ~DeviceListener() = default;
  virtual void OnDeviceEvent(const DeviceEvent& event) = 0;
};

class DeviceRegistry {
 public:
  struct Options {
    Timeouts timeouts;
    HealthRules health;
    // Whether there is a canary for a device's target. Null: for none.
    std::function<bool(const target::Target& device)> has_canary;
    // The server's compiler; workers with another one get no leases.
    std::string fingerprint;
    // Bounds on the number of known names: of one owner, and of all.
    int most_devices_of_owner = 1024;
    int most_devices = 8192;
    Clock* clock = &Clock::Real();
  };

  struct Device {
    // --- As announced; empty: not connected since the server started ---
    std::string boot_id;
    DeviceProperties properties;
    target::Target target;
    std::string device_id;  // DeviceId
    std::string device_model;
    std::string incompatible;  // why it gets no leases; empty: it does

    // --- The connection ---
    int64_t session = 0;  // 0: not connected
    std::shared_ptr<WorkerLink> link;
    bool draining = false;
    int capacity = 0;      // leases that the worker wants to hold at once
    bool clogged = false;  // it does not read what it was sent
    // It works on leases that this process did not grant.
    bool has_unknown_leases = false;
    std::string offline_reason;

    // --- History ---
    absl::Time last_seen;
    std::deque<absl::Duration> reported_at;  // within Timeouts::rate_window
    absl::Duration last_report = -absl::InfiniteDuration();
    absl::Duration busy;       // sum of the times in which it measured
    std::string device_state;  // JSON, of the latest measurement
    DeviceHealth health;
    // When its canary is due; infinite while it cannot take one.
    absl::Duration canary_at = absl::InfiniteDuration();

    KnownDevice known;  // with its name, and operators' decisions

    const std::string& name() const { return known.name; }
    bool connected() const { return session != 0; }
    // Nothing but its health keeps it from getting leases.
    bool accepts() const {
      return connected() && incompatible.empty() && !draining &&
             known.order == Order::kNone;
    }
    bool has_slot(int leases) const { return !clogged && leases < capacity; }
    // It gets leases, or will when its first canary passes.
    bool is_promising(absl::Duration now) const {
      return accepts() && health.promising(now);
    }
  };

  explicit DeviceRegistry(Options options);

  void SetListener(DeviceListener* listener) { listener_ = listener; }

  // --- Queries ---
  // Null: there is no such device or session. Valid until it is forgotten.
  const Device* Find(const std::string& name) const;
  const Device* FindSession(int64_t session) const;
  // By name.
  const std::map<std::string, Device>& devices() const { return devices_; }
  // What people see of it.
  DeviceStatus Status(const std::string& name, int leases) const;
  // Some connected device has Device::has_unknown_leases.
  bool AnyUnknownLeases() const;

  // --- Connections ---
  // InvalidArgument: no name, boot id or target; FailedPrecondition: another
  // protocol version. Returns the target. Needs no lock.
  static absl::StatusOr<target::Target> CheckHello(const WorkerHello& hello);
  // ResourceExhausted: one more device would be too many.
  absl::Status CheckRoom(const WorkerHello& hello) const;
  // Whether whatever the device held is gone: its worker has another boot id,
  // or it is another device under the name. False where the device has not
  // been connected before.
  bool IsRestart(const WorkerHello& hello) const;
  // Begins a session and closes the stream of the one that it replaces. Until
  // OnState is called the device has no capacity: results that it kept from
  // before arrive first, and their candidates must not be granted again between
  // them.
  const Device& Connect(const WorkerHello& hello, const target::Target& target,
                        std::shared_ptr<WorkerLink> link);
  // The stream of the session, which must exist, has ended.
  void Disconnect(int64_t session);
  // Closes the streams of all connected devices and ends their sessions.
  void CloseAll(const absl::Status& why);

  // --- What a connected device says and does ---
  void OnState(const std::string& name, bool draining, int capacity,
               bool has_unknown_leases);
  void Seen(const std::string& name);
  // Some result arrived: the device measured from `running` until now. Negative
  // infinity: it did not measure, or nobody knows since when.
  void OnReport(const std::string& name, const std::string& device_state,
                absl::Duration running);
  void SetClogged(const std::string& name, bool clogged);

  // --- Health ---
  void OnCanaryGranted(const std::string& name);
  void OnCanary(const std::string& name, const CanaryResult& result);
  // The canary will not come back, for no fault of the device.
  void OnCanaryLost(const std::string& name);
  // The outcome of a candidate that is no canary. True: it should not count
  // before the next canary has passed (DeviceHealth::OnResult).
  bool OnOutcome(const std::string& name, bool ok, bool crashed);
  // Best known time of the device's canary; 0: not known.
  double CanarySeconds(const std::string& device_id) const;
  void SetCanarySeconds(const std::string& device_id, double seconds);

  // --- Availability ---
  // To be called after every change to the device or to the number of its
  // leases. Returns what the device may get now, and records when that will
  // change by time alone.
  Availability Refresh(const std::string& name, int leases);
  // Devices that may be available again without a change, because their rest
  // ends: by name.
  const std::set<std::string>& resting() const { return resting_; }
  // Devices whose canary is due and that can take one, by name.
  std::set<std::string> DueCanaries() const;

  // --- What operators decide ---
  // A device that may connect later, as the database remembers it.
  void Know(const KnownDevice& device);
  // NotFound: no such device. Order::kNone resets the device's health.
  absl::Status SetOrder(const std::string& name, Order order,
                        const std::string& reason);
  absl::Status Reserve(const std::string& name, const std::string& user,
                       absl::Time until);
  // NotFound; FailedPrecondition while it is connected.
  absl::Status CheckForget(const std::string& name) const;
  void Forget(const std::string& name);
  // Ends reservations whose time is over. Returns the devices' names.
  std::vector<std::string> ExpireReservations();

 private:
  Device& Get(const std::string& name) { return devices_.at(name); }
  void Note(const Device& device, const std::string& action,
            const std::string& detail);
  void Note(const Device& device, const std::optional<HealthChange>& change);
  // Fills in state and reason.
  void FillState(const Device& device, int leases, DeviceStatus& status) const;

  const Options options_;
  Clock& clock_;
  DeviceListener* listener_ = nullptr;
  int64_t next_session_ = 1;
  std::map<std::string, Device> devices_;  // by name
  std::unordered_map<int64_t, Device*> sessions_;
  std::set<std::string> resting_;  // names
  // Devices that can take a canary: when it is due, and the name.
  std::set<std::pair<absl::Duration, std::string>> canaries_;
  std::map<std::string, double> canary_seconds_;  // by device id
};

}  // namespace tilefarm::farm

#endif  // TILEFARM_SERVER_FARM_DEVICE_REGISTRY_H_
