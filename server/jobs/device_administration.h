// Keeps the state of devices in the database: operators' orders are stored
// before they take effect, events of the farm go into the audit log, and
// records that were measured while a device was not well are measured again.
//
//   operator --> Drain, Reserve, ... --> store, then farm
//   farm --OnDeviceEvent--> queue --Flush--> audit log
//   canary --OnCanary: good: all records so far are trusted
//                      bad:  those since the last good canary are suspect
//                      good again: suspect records are measured again there
#ifndef TILEFARM_SERVER_JOBS_DEVICE_ADMINISTRATION_H_
#define TILEFARM_SERVER_JOBS_DEVICE_ADMINISTRATION_H_

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "database/store.h"
#include "server/farm/farm.h"

namespace tilefarm::jobs {

// Thread-safe. The caller calls Flush periodically; only Flush writes events.
class DeviceAdministration : public farm::DeviceListener {
 public:
  // All outlive it.
  DeviceAdministration(database::Store& store, farm::Farm& farm,
                       std::string fingerprint, Clock& clock);
  ~DeviceAdministration() override;

  // Tells the farm what the store knows. To be called before workers connect.
  absl::Status Recover();

  // Operators' orders. NotFound: no such device. InvalidArgument: an invalid
  // text or time. FailedPrecondition: see Farm::Forget. On success the order
  // and its entry in the audit log are durable.
  absl::Status SetOrder(const std::string& name, farm::Order order,
                        const std::string& actor, const std::string& reason);
  absl::Status Reserve(const std::string& name, const std::string& user,
                       absl::Duration time, const std::string& actor);
  absl::Status Release(const std::string& name, const std::string& actor);
  absl::Status Forget(const std::string& name, const std::string& actor);
  // The latest `limit` entries, oldest first; an empty name: of all devices.
  // NotFound: no device and no entry has the name.
  absl::StatusOr<std::vector<database::AuditEntry>> Log(const std::string& name,
                                                        int64_t limit);

  void OnDeviceEvent(const farm::DeviceEvent& event) override;
  // A canary's result; see RecordListener.
  void OnCanary(const std::string& device_id, bool trusted);
  // The result of a kRemeasure is stored.
  void OnRemeasured(const farm::WorkItem& item);

  // Writes the audit log and queues a few re-measurements. Always called by the
  // same thread.
  void Flush();

 private:
  struct Remeasuring {
    std::string device_id;
    bool loaded = false;
    std::vector<database::Record> waiting;
    int outstanding = 0;  // in the farm
  };

  database::DeviceTables& tables() const { return store_.device_tables(); }
  absl::StatusOr<database::DeviceRow> RowOf(const std::string& name);
  database::AuditEntry Entry(const std::string& actor,
                             const std::string& action, const std::string& name,
                             const std::string& detail) const;
  absl::Status FlushEvents();
  void StoreSeen(const std::set<std::string>& names);
  void StoreCanaries();
  bool LoadSuspects(Remeasuring& work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StopRemeasuring(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void QueueSome();

  database::Store& store_;
  farm::Farm& farm_;
  const std::string fingerprint_;
  Clock& clock_;

  // Held for a whole order, so that store and farm agree.
  Mutex order_mutex_;
  // The farm waits for this mutex: nothing else is called while it is held.
  Mutex events_mutex_;
  std::deque<farm::DeviceEvent> events_ ABSL_GUARDED_BY(events_mutex_);
  Mutex mutex_ ABSL_ACQUIRED_AFTER(order_mutex_);
  // By device id.
  std::map<std::string, database::CanaryRow> canaries_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> changed_canaries_ ABSL_GUARDED_BY(mutex_);
  // By device name.
  std::map<std::string, Remeasuring> remeasuring_ ABSL_GUARDED_BY(mutex_);
  // The last write of the audit log failed. Used by Flush alone.
  bool events_wait_ = false;
};

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_DEVICE_ADMINISTRATION_H_
