// Where devices meet the database: what operators decide is stored before it
// holds, what the farm finds out goes into the audit log, and what was measured
// while a device was not well is measured again.
//
//   operator --> Drain, Reserve, ... --> store, then farm
//   farm --OnDeviceEvent--> queue --Flush--> audit log
//   canary --OnCanary: good: records up to here hold
//                      bad:  those since the last good one are suspect
//                      good again: they are queued, on the same device
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

// Thread-safe. Flush writes; whoever drives it calls it again and again.
class DeviceAdministration : public farm::DeviceListener {
 public:
  // All outlive it.
  DeviceAdministration(database::Store& store, farm::Farm& farm,
                       std::string fingerprint, Clock& clock);
  ~DeviceAdministration() override;

  // Tells the farm what the store knows. Before workers connect.
  absl::Status Recover();

  // What operators ask for. NotFound: no such device. InvalidArgument: a text
  // or time that is none. FailedPrecondition: see Farm::Forget. Otherwise
  // durable on return, with its entry in the audit log.
  absl::Status SetOrder(const std::string& name, farm::Order order,
                        const std::string& actor, const std::string& reason);
  absl::Status Reserve(const std::string& name, const std::string& user,
                       absl::Duration time, const std::string& actor);
  absl::Status Release(const std::string& name, const std::string& actor);
  absl::Status Forget(const std::string& name, const std::string& actor);
  // The latest entries, oldest first; an empty name: of every device.
  // NotFound: neither a device nor an entry has the name.
  absl::StatusOr<std::vector<database::AuditEntry>> Log(const std::string& name,
                                                        int64_t limit);

  void OnDeviceEvent(const farm::DeviceEvent& event) override;
  // A canary's result; see RecordListener.
  void OnCanary(const std::string& device_id, bool trusted);
  // A kRemeasure is stored.
  void OnRemeasured(const farm::WorkItem& item);

  // Writes the audit log; queues a few re-measurements. Of one thread.
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

  // Operators one at a time, so that store and farm agree.
  Mutex order_mutex_;
  // The farm waits for this one: nothing is called while it is held.
  Mutex events_mutex_;
  std::deque<farm::DeviceEvent> events_ ABSL_GUARDED_BY(events_mutex_);
  Mutex mutex_ ABSL_ACQUIRED_AFTER(order_mutex_);
  // By device id.
  std::map<std::string, database::CanaryRow> canaries_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> changed_canaries_ ABSL_GUARDED_BY(mutex_);
  // By device name.
  std::map<std::string, Remeasuring> remeasuring_ ABSL_GUARDED_BY(mutex_);
  // The audit log could not be written the last time; Flush alone.
  bool events_wait_ = false;
};

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_DEVICE_ADMINISTRATION_H_
